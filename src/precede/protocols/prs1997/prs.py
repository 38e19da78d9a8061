"""PRS: adaptive causal ordering by causal barriers (Prakash, Raynal, Singhal 1997, section 5.2).

The paper keeps N x N arrays; we keep maps without empty elements, because processes come and go and most pairs
never exchange a message. `barrier` is CB_i: by destination, the messages that must be delivered there before
the next message of this process. `delivered` is Delivered_i: by destination, the messages known to be delivered
there. A row is replaced, never changed, so a message's barrier is a copy of the outer map alone. The broadcast
form of section 8.2 is in `broadcast_rule`, the optimal pruning of Kshemkalyani and Singhal in `pruning_rule`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec
from mypy_extensions import mypyc_attr

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.node import Context, Node
from precede.protocols.acknowledgement import AckPacket
from precede.protocols.multicast.node import MulticastNode
from precede.protocols.multicast.packets import INTEGER_BYTES, LifePacket, MulticastPacket, Stamp
from precede.protocols.multicast.process import Process, is_before, process_of
from precede.protocols.multicast.rule import Rule
from precede.protocols.multicast.vectors import EMPTY, minus_max, union_max
from precede.protocols.prs1997.broadcast_rule import BroadcastRule
from precede.protocols.prs1997.options import Encoding, PrsOptions
from precede.protocols.prs1997.packets import BroadcastPacket, OptimalPacket, PrsPacket, PrsStamp, Row
from precede.protocols.prs1997.pruning_rule import OptimalRule
from precede.protocols.registry import Entry

WORD_BITS: Final = 8 * INTEGER_BYTES


@mypyc_attr(allow_interpreted_subclasses=True)
class PrsRule(Rule):
    """The algorithm of section 5.2, with the paper's step numbers."""

    packet: ClassVar[type[MulticastPacket]] = PrsPacket
    names_messages: ClassVar[bool] = True

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
        """Return the barrier with its size: pairs and a heading for each row, or section 7.1's bit map."""
        barrier = dict(self.barrier)
        tuples = sum(map(len, barrier.values()))
        if self._encoding == "tuples":
            return PrsStamp(2 * tuples, tuples, INTEGER_BYTES * (2 * tuples + 2 * len(barrier)), barrier)
        bits = population * population
        integers = tuples + -(-bits // WORD_BITS)
        return PrsStamp(integers, tuples, INTEGER_BYTES * tuples + -(-bits // 8), barrier)

    def _sent(self, row: Row, destinations: tuple[Process, ...]) -> None:
        """Send, step 3: replace the rows of these destinations by `row`, so that later messages follow it."""
        for destination in destinations:
            self.barrier[destination] = row

    def needs(self, stamp: PrsStamp) -> Mapping[Process, int]:
        """Return CB_M[i]: by source, the last message that must be delivered here first (reception, step 1)."""
        return stamp.barrier.get(self.me, EMPTY)

    def deliver(
        self, source: Process, number: int, destinations: tuple[Process, ...], stamp: PrsStamp
    ) -> Iterable[Process]:
        """Update the state after a delivery (steps 3 to 8). Returns the source, whose `reached` grew.

        The paper's step 8 removes tuples that are known to be delivered from all rows after each delivery. We
        never add them in steps 5 and 6, because that makes the loop over all rows needless: step 4 learns only
        about the sender, and step 7 removes the tuples of the sender's row.
        """
        theirs = stamp.barrier
        sender_row = theirs.get(source, EMPTY)
        self.reached[source] = number  # step 3
        if sender_row:
            self._note_delivered(source, sender_row)  # step 4
        self._merge_destinations(source, number, destinations, theirs)  # step 5
        self._merge_others(source, set(destinations), theirs)  # step 6
        if source in self.barrier:
            self._merge_source(source, sender_row)  # step 7
        return (source,)

    def _note_delivered(self, source: Process, row: Row) -> None:
        """Step 4: record the messages that were delivered to the sender when it sent."""
        delivered = self.delivered.setdefault(source, {})
        for other, number in row.items():
            if delivered.get(other, 0) < number:
                delivered[other] = number

    def _merge_destinations(
        self, source: Process, number: int, destinations: tuple[Process, ...], theirs: Mapping[Process, Row]
    ) -> None:
        """Step 5: in the barrier rows of its destinations the message replaces its predecessors."""
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
        """Step 6: merge the barrier rows of processes that are not destinations of the message."""
        mine, delivered = self.barrier, self.delivered
        for destination, row in theirs.items():
            if destination in destinations or destination == source:
                continue
            old = mine.get(destination, EMPTY)
            if old is not row:
                already_delivered = delivered.get(destination)
                fresh = minus_max(row, already_delivered) if already_delivered else row
                mine[destination] = union_max(old, fresh)
                if not mine[destination]:
                    del mine[destination]

    def _merge_source(self, source: Process, sender_row: Row) -> None:
        """Step 7: remove from the sender's row the messages that the sender has delivered."""
        self._keep(source, minus_max(self.barrier[source], sender_row))

    def _keep(self, destination: Process, row: Row | None) -> None:
        if row:
            self.barrier[destination] = row
        else:
            self.barrier.pop(destination, None)

    def forget(self, node: NodeId, incarnation: int) -> None:
        for registry in (self.barrier, self.delivered):
            for process in [process for process in registry if is_before(process, node, incarnation)]:
                if process != self.me:
                    del registry[process]

    def save(self) -> Any:
        return dict(self.barrier), {process: dict(row) for process, row in self.delivered.items()}

    def load(self, state: Any) -> None:
        self.barrier, self.delivered = msgspec.convert(state, tuple[dict[Process, Row], dict[Process, Row]])
        self.reached = self.delivered.setdefault(self.me, {})

    def sizes(self) -> Mapping[str, int]:
        return {
            "barrier_tuples": sum(map(len, self.barrier.values())),
            "delivered_entries": sum(map(len, self.delivered.values())),
        }


@mypyc_attr(allow_interpreted_subclasses=True)
class FatRule(PrsRule):
    """Another reading of section 5.2, for experiments only: its sizes come nearer to some published figures.

    Sending adds to a row instead of replacing it, step 7 unites instead of removing, and step 8 is left out. A
    barrier has more tuples than printed, never fewer, so messages are delivered at the same instants.
    """

    def _sent(self, row: Row, destinations: tuple[Process, ...]) -> None:
        for destination in destinations:
            self.barrier[destination] = union_max(self.barrier.get(destination, EMPTY), row)

    def _note_delivered(self, source: Process, row: Row) -> None:
        """Record no deliveries, so that no tuple is removed; unite the sender's rows (step 7)."""
        self.barrier[source] = union_max(self.barrier.get(source, EMPTY), row)

    def _merge_source(self, source: Process, sender_row: Row) -> None:
        """Remove nothing, unlike step 7 of the printed algorithm."""


def build(role: str, context: Context[PrsOptions]) -> Node:
    """Make a node with the rule that its options name. Raises BadInput if the options do not fit together."""
    me = process_of(context.node, context.incarnation)
    pruning, case = context.options.pruning, context.options.case
    encoding = context.options.encoding
    if case == "broadcast":
        if pruning != "printed" or encoding != "tuples":
            raise BadInput("case = 'broadcast' needs pruning = 'printed' and encoding = 'tuples'")
        return MulticastNode(context, BroadcastRule(me))
    if pruning == "optimal":
        if encoding != "tuples":
            raise BadInput("pruning = 'optimal' needs encoding = 'tuples'")
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
