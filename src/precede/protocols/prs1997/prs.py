"""PRS: adaptive causal ordering by causal barriers (Prakash, Raynal, Singhal 1997, section 5.2).

The paper keeps N x N arrays; we keep maps with only what is there, because processes come and go and most
pairs never meet: `barrier` is CB_i by destination, `delivered` is Delivered_i by destination. A row, once
made, is never changed, so a message's barrier is a copy of the outer map alone. The broadcast form of section
8.2 is in `prs_broadcast`, the optimal pruning of Kshemkalyani and Singhal in `optimal_pruning`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

import msgspec

from precede.core.errors import BadInput
from precede.core.identity import MessageId, NodeId
from precede.core.node import Context, Node
from precede.protocols.multicast.node import MulticastNode
from precede.protocols.multicast.rule import (
    INTEGER_BYTES,
    LIFE_SHIFT,
    NODE_MASK,
    LifePacket,
    MulticastPacket,
    Process,
    Rule,
    Stamp,
    message_of,
    node_of,
    process_of,
)
from precede.protocols.outbox import AckPacket
from precede.protocols.prs1997.broadcast_rule import BroadcastPacket, BroadcastRule
from precede.protocols.prs1997.options import Encoding, PrsOptions
from precede.protocols.prs1997.pruning_rule import OptimalPacket, OptimalRule
from precede.protocols.registry import Entry

Row: TypeAlias = dict[Process, int]
"""A set of tuples (source, number), at most one for each source."""


EMPTY: Final[Row] = {}
WORD_BITS: Final = 8 * INTEGER_BYTES


class PrsStamp(Stamp, frozen=True, gc=False):
    """CB_M: for each destination, after which messages to it this one comes."""

    barrier: dict[Process, Row]


class PrsPacket(MulticastPacket, frozen=True, gc=False):
    """SEND(M, i, sent_i, destination(M), CB_i)."""

    kind: ClassVar[str] = "prs"
    stamp: PrsStamp

    def constraints(self) -> dict[NodeId, list[MessageId]]:
        """CB_M in names: by destination, the messages that come first."""
        return {
            node_of(to): sorted([message_of(source, number) for source, number in row.items()])
            for to, row in self.stamp.barrier.items()
        }


class PrsRule(Rule):
    """The algorithm as printed. Step numbers are the paper's."""

    packet = PrsPacket
    names_messages = True

    def __init__(self, me: Process, encoding: Encoding) -> None:
        self.me = me
        self.reached = {}
        self.barrier: dict[Process, Row] = {}
        self.delivered: dict[Process, Row] = {me: self.reached}
        self._encoding = encoding

    def stamp(self, number: int, destinations: tuple[Process, ...], population: int) -> Sequence[Stamp]:
        stamp = self._stamp(population)
        self._sent({self.me: number}, destinations)
        return (stamp,)

    def _stamp(self, population: int) -> PrsStamp:
        """The sizes: pairs under a heading for each row, or section 7.1's bit map followed by the numbers."""
        barrier = dict(self.barrier)
        tuples = sum(map(len, barrier.values()))
        if self._encoding == "tuples":
            return PrsStamp(2 * tuples, tuples, INTEGER_BYTES * (2 * tuples + 2 * len(barrier)), barrier)
        bits = population * population
        integers = tuples + -(-bits // WORD_BITS)
        return PrsStamp(integers, tuples, INTEGER_BYTES * tuples + -(-bits // 8), barrier)

    def _sent(self, row: Row, destinations: tuple[Process, ...]) -> None:
        """Send, step 3: future messages to them come after this one, which comes after all the row had."""
        for destination in destinations:
            self.barrier[destination] = row

    def needs(self, stamp: PrsStamp) -> Mapping[Process, int]:
        """Reception, step 1: CB_M[i] against Delivered_i[., i]."""
        return stamp.barrier.get(self.me, EMPTY)

    def deliver(
        self, source: Process, number: int, destinations: tuple[Process, ...], stamp: PrsStamp
    ) -> Iterable[Process]:
        """Steps 3 to 8.

        The paper's step 8 goes over all rows after each delivery and removes what is known to be delivered. We
        never put it in (steps 5 and 6); what step 4 learns is about the sender alone, and step 7 removes it.
        """
        theirs = stamp.barrier
        told = theirs.get(source, EMPTY)
        self.reached[source] = number  # step 3
        if told:
            self._note_delivered(source, told)  # step 4
        self._merge_destinations(source, number, destinations, theirs)  # step 5
        self._merge_others(source, set(destinations), theirs)  # step 6
        if source in self.barrier:
            self._merge_source(source, told)  # step 7
        return (source,)

    def _note_delivered(self, source: Process, row: Row) -> None:
        """Step 4: what had been delivered to the sender when it sent."""
        known = self.delivered.setdefault(source, {})
        for other, number in row.items():
            if known.get(other, 0) < number:
                known[other] = number

    def _merge_destinations(
        self, source: Process, number: int, destinations: tuple[Process, ...], theirs: Mapping[Process, Row]
    ) -> None:
        """Step 5: for its destinations the message itself replaces what it came after."""
        mine, delivered = self.barrier, self.delivered
        alone = {source: number}
        for destination in destinations:
            row = mine.get(destination)
            if row:
                row = minus_max(row, theirs.get(destination, EMPTY))
            if destination != self.me and delivered.get(destination, EMPTY).get(source, 0) >= number:
                self._keep(destination, row)
            else:
                mine[destination] = {**row, source: number} if row else alone

    def _merge_others(self, source: Process, destinations: set[Process], theirs: Mapping[Process, Row]) -> None:
        """Step 6: constraints for processes that did not get the message."""
        mine, delivered = self.barrier, self.delivered
        for destination, row in theirs.items():
            if destination in destinations or destination == source:
                continue
            old = mine.get(destination, EMPTY)
            if old is not row:
                known = delivered.get(destination)
                fresh = minus_max(row, known) if known else row
                mine[destination] = union_max(old, fresh)
                if not mine[destination]:
                    del mine[destination]

    def _merge_source(self, source: Process, told: Row) -> None:
        """Step 7: the sender has delivered what its own row names."""
        self._keep(source, minus_max(self.barrier[source], told))

    def _keep(self, destination: Process, row: Row | None) -> None:
        if row:
            self.barrier[destination] = row
        else:
            self.barrier.pop(destination, None)

    def forget(self, node: NodeId, life: int) -> None:
        for registry in (self.barrier, self.delivered):
            for process in [process for process in registry if process & NODE_MASK == node]:
                if process >> LIFE_SHIFT < life and process != self.me:
                    del registry[process]

    def save(self) -> Any:
        return [dict(self.barrier), {process: dict(row) for process, row in self.delivered.items()}]

    def load(self, state: Any) -> None:
        self.barrier, self.delivered = msgspec.convert(state, tuple[dict[Process, Row], dict[Process, Row]])
        self.reached = self.delivered.setdefault(self.me, {})

    def sizes(self) -> Mapping[str, int]:
        return {
            "barrier_tuples": sum(map(len, self.barrier.values())),
            "delivered_entries": sum(map(len, self.delivered.values())),
        }


class FatRule(PrsRule):
    """Not the paper's algorithm: a reading that comes nearer to some of its figures, for experiments only.

    Sending adds to a row instead of replacing it, step 7 unites instead of removing, step 8 is left out. It
    carries more, never less, so it delivers the same messages at the same instants.
    """

    def _sent(self, row: Row, destinations: tuple[Process, ...]) -> None:
        for destination in destinations:
            self.barrier[destination] = union_max(self.barrier.get(destination, EMPTY), row)

    def _note_delivered(self, source: Process, row: Row) -> None:
        """Learns nothing, so nothing is ever collected; step 7 below, where the row may be new."""
        self.barrier[source] = union_max(self.barrier.get(source, EMPTY), row)

    def _merge_source(self, source: Process, told: Row) -> None:
        """Nothing is removed."""


def union_max(a: Row, b: Row) -> Row:
    """The paper's ∪max: of two tuples of one source the later."""
    if not a or a is b:
        return b
    later = {source: number for source, number in b.items() if a.get(source, 0) < number}
    return {**a, **later} if later else a


def minus_max(a: Row, b: Row) -> Row:
    """The paper's -max: without the tuples that `b` has or has later."""
    if not a or not b:
        return a
    return {source: number for source, number in a.items() if b.get(source, 0) < number}


def build(role: str, context: Context[PrsOptions]) -> Node:
    """The node, with the rule its options name."""
    me = process_of(context.node, context.incarnation)
    pruning, case = context.options.pruning, context.options.case
    encoding = context.options.encoding
    if case == "broadcast":
        if pruning != "printed" or encoding != "tuples":
            raise BadInput("case = 'broadcast' goes with pruning = 'printed' and encoding = 'tuples'")
        return MulticastNode(context, BroadcastRule(me))
    if pruning == "optimal":
        if encoding != "tuples":
            raise BadInput("pruning = 'optimal' has no bit map form")
        return MulticastNode(context, OptimalRule(me))
    return MulticastNode(context, (PrsRule if pruning == "printed" else FatRule)(me, encoding))


ENTRY: Final = Entry(
    name="prs",
    title="adaptive causal ordering (Prakash, Raynal, Singhal): multicast to any destination set",
    paper="prs1997",
    order="multicast",
    worlds=("point_to_point",),
    options=PrsOptions,
    build=build,
    packets=(PrsPacket, BroadcastPacket, OptimalPacket, LifePacket, AckPacket),
)
