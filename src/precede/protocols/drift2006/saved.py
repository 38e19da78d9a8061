"""What a DRIFT node persists, read back after a restart.

Every flood in hand is persisted before anything that follows from it is said: a voter's floor promises to the
others that it holds what lies below. A crash may fall between any two of these writes, so each is one step from
one whole state to another: a group is entered with its view and sources at once, and left with a word of where
to; what is cut off is put down for the next stream before it goes from the old one. What a torn list of writes
left half done is finished by the restart (`Entrance.start`).
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from precede.core.effects import Key
from precede.core.messages import Message
from precede.core.node import Saved, restore
from precede.protocols.drift2006.packets import Flood, ViewRecord
from precede.protocols.floods.reliable_floods import StreamId

Place: TypeAlias = tuple[int, ViewRecord, tuple[StreamId, ...]]
"""A group, the view in which this node entered it, and the sources that it had then."""

BY_STREAM: Final = ("admitted", "ended", "done", "held")
OF_GROUP: Final = ("view", "vote", "own", "restamp")
"""What belongs to a group: by stream, and once."""


class SavedState(Struct, frozen=True):
    """In a group. `admitted` has the timestamp of each stream's admission, `done` its last delivered flood."""

    group: int
    view: ViewRecord
    admitted: dict[StreamId, int]
    ended: dict[StreamId, int]
    done: dict[StreamId, tuple[int, int]]
    held: list[Flood]
    own: StreamId | None
    restamp: tuple[Message, ...]

    @classmethod
    def read(cls, saved: Saved) -> SavedState:
        group, entered, sources = restore(saved, "group", Place, (0, ViewRecord(0, (), ()), ()))  # type: ignore[arg-type]
        later = restore(saved, "view", tuple[int, ViewRecord], (group, entered))
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
            view=later[1] if later[0] == group and later[1].number > entered.number else entered,
            admitted=dict(sorted({**dict.fromkeys(sources, 0), **by_stream["admitted"]}.items())),
            ended=dict(sorted(by_stream["ended"].items())),
            done={id: (int(value[0]), int(value[1])) for id, value in sorted(by_stream["done"].items())},
            held=held,
            own=restore(saved, "own", tuple[int, int] | None, None),  # type: ignore[arg-type]
            restamp=restore(saved, "restamp", tuple[Message, ...], ()),
        )


def leftovers(saved: Saved) -> list[Key]:
    """What is still there of a group that this node was about to leave, or to enter, when it went down."""
    return [key for key in saved if (key[0] in BY_STREAM if type(key) is tuple else key in OF_GROUP)]
