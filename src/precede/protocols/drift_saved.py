"""What a DRIFT node persists, read back after a restart.

Every flood in hand is persisted before anything that follows from it is said: a voter's floor promises to the
others that it holds what lies below.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from precede.core.messages import Message
from precede.core.node import Saved, restore
from precede.protocols.drift_packets import Flood, ViewRecord
from precede.protocols.floods import StreamId


class SavedState(Struct, frozen=True):
    """`admitted` has the timestamp of each stream's admission, `done` its last delivered flood."""

    group: int
    view: ViewRecord
    admitted: dict[StreamId, int]
    ended: dict[StreamId, int]
    done: dict[StreamId, tuple[int, int]]
    held: list[Flood]
    own: StreamId | None
    lives: int
    clock: int
    number: int
    restamp: tuple[Message, ...]

    @classmethod
    def read(cls, saved: Saved) -> SavedState:
        by_stream: dict[str, dict[StreamId, Any]] = {"admitted": {}, "ended": {}, "done": {}}
        held = []
        for key, value in saved.items():
            if type(key) is tuple and key[0] in by_stream:
                by_stream[str(key[0])][int(key[1]), int(key[2])] = value
            elif type(key) is tuple and key[0] == "held":
                held.append(msgspec.convert(value, Flood))
        held.sort(key=lambda flood: (flood.source, flood.life, flood.number))
        return cls(
            group=restore(saved, "group", int, 0),
            view=restore(saved, "view", ViewRecord, ViewRecord(0, (), ())),
            admitted=dict(sorted(by_stream["admitted"].items())),
            ended=dict(sorted(by_stream["ended"].items())),
            done={id: (int(value[0]), int(value[1])) for id, value in sorted(by_stream["done"].items())},
            held=held,
            own=restore(saved, "own", tuple[int, int] | None, None),  # type: ignore[arg-type]
            lives=restore(saved, "lives", int, 0),
            clock=restore(saved, "clock", int, 0),
            number=restore(saved, "number", int, 0),
            restamp=restore(saved, "restamp", tuple[Message, ...], ()),
        )
