"""PRS when every message goes to everybody: one row instead of N (Prakash, Raynal, Singhal 1997, section 8.2).

All destinations have the same constraints, so one set of tuples suffices: the direct predecessors of a
message, at most one for each process. A tuple of the receiver's own messages is met as soon as it is sent.
Everybody must be known from the beginning: a constraint here holds for all, also for one who was never sent
the message it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from precede.core.errors import Refused
from precede.core.identity import NodeId
from precede.protocols.multicast.address_book import AddressBook
from precede.protocols.multicast.rule import INTEGER_BYTES, MulticastPacket, Process, Rule, Stamp


class BroadcastStamp(Stamp, frozen=True, gc=False):
    """The one row of CB_M."""

    row: dict[Process, int]


class BroadcastPacket(MulticastPacket, frozen=True, gc=False):
    """A message to everybody, which comes after those in its row."""

    kind: ClassVar[str] = "prs_broadcast"
    stamp: BroadcastStamp

    @property
    def control_bytes(self) -> int:
        """Without the destinations: everybody knows them."""
        return super().control_bytes - INTEGER_BYTES * len(self.destinations)


class BroadcastRule(Rule):
    """Section 5.2 with all rows the same."""

    packet = BroadcastPacket
    names_messages = True

    def __init__(self, me: Process) -> None:
        self.me = me
        self.reached = {}
        self.row: dict[Process, int] = {}

    def check(self, to: Sequence[NodeId], book: AddressBook) -> None:
        if len(to) != len(book.others()):
            raise Refused("case = 'broadcast' sends to everybody; for destination sets take case = 'multicast'")

    def stamp(self, number: int, destinations: tuple[Process, ...], population: int) -> Sequence[Stamp]:
        tuples = len(self.row)
        stamp = BroadcastStamp(2 * tuples, tuples, INTEGER_BYTES * (2 * tuples + 1), self.row)
        self.row = {self.me: number}
        self.reached[self.me] = number
        return (stamp,)

    def needs(self, stamp: BroadcastStamp) -> Mapping[Process, int]:
        return stamp.row

    def deliver(
        self, source: Process, number: int, destinations: tuple[Process, ...], stamp: BroadcastStamp
    ) -> Iterable[Process]:
        theirs = stamp.row
        self.reached[source] = number
        self.row = {other: last for other, last in self.row.items() if theirs.get(other, 0) < last}
        self.row[source] = number
        return (source,)

    def forget(self, node: NodeId, life: int) -> None:
        """Nothing: the row names sources, and what a source has sent stays sent."""

    def save(self) -> Any:
        return [self.row, dict(self.reached)]

    def load(self, state: Any) -> None:
        self.row, self.reached = msgspec.convert(state, tuple[dict[Process, int], dict[Process, int]])

    def sizes(self) -> Mapping[str, int]:
        return {"barrier_tuples": len(self.row), "delivered_entries": len(self.reached)}
