"""What a DRIFT node persists, as it is read after a restart.

A node persists every flood before it sends anything that follows from it: a voter's floor promises to the
others that it holds everything below. A crash may fall between any two writes, so each write leads from one
consistent state to another. One write enters a group with its view and sources. Before a node leaves a group,
it writes where it goes. Messages that are cut off are written for the next stream before they are removed from
the old one. A restart finishes an interrupted list of writes (`restart`, `Groups.start_outside`).
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from precede.core.effects import Key
from precede.core.messages import Message
from precede.core.node import Saved, restore
from precede.protocols.drift2006.packets import Flood, Origin, ViewRecord
from precede.protocols.floods.stream import StreamId

GroupRecord: TypeAlias = tuple[int, ViewRecord, tuple[StreamId, ...]]
"""A group, the view in which this node entered it, and its sources at that time."""

BY_STREAM: Final = ("admitted", "ended", "done", "held")
OF_GROUP: Final = ("view", "vote", "own", "restamp", "origin")
"""The names of values saved once per group. `BY_STREAM` has those saved for each stream or flood."""


class SavedState(Struct, frozen=True):
    """The saved state of a node in a group.

    `admitted`: the timestamp of each stream's admission. `ended`: the number of the last flood of each ended
    stream. `done`: number and timestamp of each stream's last delivered flood, and the number of its node's
    last delivered message. `held`: the floods this node holds. `own`: its last stream. `restamp`: its messages
    that are to be multicast again. `origin`: how the founders agreed on the group, if they did.
    """

    group: int
    view: ViewRecord
    admitted: dict[StreamId, int]
    ended: dict[StreamId, int]
    done: dict[StreamId, tuple[int, int, int]]
    held: list[Flood]
    own: StreamId | None
    restamp: tuple[Message, ...]
    origin: Origin | None

    @classmethod
    def read(cls, saved: Saved) -> SavedState:
        """Read the state from the values that were persisted, by key."""
        nowhere: GroupRecord = (0, ViewRecord(0, (), ()), ())
        group, entered, sources = restore(saved, "group", GroupRecord, nowhere)  # type: ignore[arg-type]
        later_group, later_view = restore(saved, "view", tuple[int, ViewRecord], (group, entered))
        is_later = later_group == group and later_view.number > entered.number
        by_stream: dict[str, dict[StreamId, Any]] = {"admitted": {}, "ended": {}, "done": {}}
        held = []
        for key, value in saved.items():
            if type(key) is tuple and key[0] == "held":
                held.append(msgspec.convert(value, Flood))
            elif type(key) is tuple and key[0] in by_stream:
                by_stream[str(key[0])][int(key[1]), int(key[2])] = value
        held.sort(key=lambda flood: (flood.source, flood.serial, flood.number))
        return cls(
            group=group,
            view=later_view if is_later else entered,
            admitted=dict(sorted({**dict.fromkeys(sources, 0), **by_stream["admitted"]}.items())),
            ended=dict(sorted(by_stream["ended"].items())),
            done={
                id: (int(value[0]), int(value[1]), int(value[2]) if len(value) > 2 else 0)
                for id, value in sorted(by_stream["done"].items())
            },
            held=held,
            own=restore(saved, "own", tuple[int, int] | None, None),  # type: ignore[arg-type]
            restamp=restore(saved, "restamp", tuple[Message, ...], ()),
            origin=restore(saved, "origin", Origin | None, None),  # type: ignore[arg-type]
        )


def group_keys(saved: Saved) -> list[Key]:
    """List the saved keys that belong to a group. A node that was leaving or entering one removes them."""
    return [key for key in saved if (key[0] in BY_STREAM if type(key) is tuple else key in OF_GROUP)]
