"""PRS for messages to all nodes: one row instead of N (Prakash, Raynal, Singhal 1997, section 8.2).

All destinations have the same constraints, so one set of tuples suffices: the direct predecessors of a message,
at most one for each process. A tuple that names a message of the receiver is satisfied when the receiver sends
that message. All nodes must be known from the beginning: a constraint holds for every node, also for one to
which the named message was never sent.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from mypy_extensions import mypyc_attr

from precede.core.errors import Refused
from precede.core.identity import NodeId
from precede.protocols.multicast.address_book import AddressBook
from precede.protocols.multicast.packets import INTEGER_BYTES, MulticastPacket, Stamp
from precede.protocols.multicast.process import Process
from precede.protocols.multicast.rule import Rule
from precede.protocols.multicast.vectors import SparseVector, minus_max
from precede.protocols.prs1997.packets import BroadcastPacket, BroadcastStamp


@mypyc_attr(allow_interpreted_subclasses=True)
class BroadcastRule(Rule):
    """The algorithm of section 5.2 with one row for all destinations."""

    packet: ClassVar[type[MulticastPacket]] = BroadcastPacket
    names_messages: ClassVar[bool] = True

    def __init__(self, me: Process) -> None:
        self.me = me
        self.reached = {}
        self.row: SparseVector = {}

    def check(self, to: Sequence[NodeId], book: AddressBook) -> None:
        if len(to) != len(book.others()):
            raise Refused("case = 'broadcast' sends to everybody: for destination sets use case = 'multicast'")

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
        self.reached[source] = number
        self.row = {**minus_max(self.row, stamp.row), source: number}
        return (source,)

    def forget(self, node: NodeId, incarnation: int) -> None:
        """Do nothing: the row names sources, not destinations, and a sent message stays a predecessor."""

    def save(self) -> Any:
        return [self.row, dict(self.reached)]

    def load(self, state: Any) -> None:
        self.row, self.reached = msgspec.convert(state, tuple[SparseVector, SparseVector])

    def sizes(self) -> Mapping[str, int]:
        return {"barrier_tuples": len(self.row), "delivered_entries": len(self.reached)}
