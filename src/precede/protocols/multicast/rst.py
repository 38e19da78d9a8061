"""RST: causal order with a matrix of how many messages each has sent to each (Raynal, Schiper, Toueg 1991).

The rival that PRS is measured against (prs1997, section 3). For a multicast the receiver learns
destination(M) and counts the message for every destination. The matrix is kept by destination, and without
its zeros; its size is counted with them, because the paper sends all N x N integers with every message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

import msgspec

from precede.core.identity import NodeId
from precede.core.node import Context, Node
from precede.protocols.multicast.node import MulticastNode
from precede.protocols.multicast.options import MulticastOptions
from precede.protocols.multicast.rule import (
    INTEGER_BYTES,
    LIFE_SHIFT,
    NODE_MASK,
    LifePacket,
    MulticastPacket,
    Process,
    Rule,
    Stamp,
    process_of,
)
from precede.protocols.outbox import AckPacket
from precede.protocols.registry import Entry

Counts: TypeAlias = dict[Process, int]
NONE: Final[Counts] = {}


class RstStamp(Stamp, frozen=True, gc=False):
    """SENT as it was before the message, by destination and then by sender."""

    sent: dict[Process, Counts]


class RstPacket(MulticastPacket, frozen=True, gc=False):
    """A message with the matrix."""

    kind: ClassVar[str] = "rst"
    stamp: RstStamp


class RstRule(Rule):
    """SENT_i, and DELIV_i in `reached`. Rows are never changed once made, so a stamp shares them."""

    packet = RstPacket

    def __init__(self, me: Process) -> None:
        self.me = me
        self.reached = {}
        self.sent: dict[Process, Counts] = {}

    def stamp(self, number: int, destinations: tuple[Process, ...], population: int) -> Sequence[Stamp]:
        elements = population * population
        stamp = RstStamp(elements, elements, INTEGER_BYTES * elements, dict(self.sent))
        for to in destinations:
            row = self.sent.get(to, NONE)
            self.sent[to] = {**row, self.me: row.get(self.me, 0) + 1}
        return (stamp,)

    def needs(self, stamp: RstStamp) -> Mapping[Process, int]:
        """DELIV_i[k] >= ST_M[k, i] for all k."""
        return stamp.sent.get(self.me, NONE)

    def deliver(
        self, source: Process, number: int, destinations: tuple[Process, ...], stamp: RstStamp
    ) -> Iterable[Process]:
        self.reached[source] = self.reached.get(source, 0) + 1
        theirs, mine = stamp.sent, self.sent
        for to, row in theirs.items():
            mine[to] = _maximum(mine.get(to, NONE), row)
        for to in destinations:
            count = theirs.get(to, NONE).get(source, 0) + 1
            mine[to] = _maximum(mine.get(to, NONE), {source: count})
        return (source,)

    def forget(self, node: NodeId, life: int) -> None:
        for process in [process for process in self.sent if process & NODE_MASK == node]:
            if process >> LIFE_SHIFT < life:
                del self.sent[process]

    def save(self) -> Any:
        return [dict(self.sent), dict(self.reached)]

    def load(self, state: Any) -> None:
        self.sent, self.reached = msgspec.convert(state, tuple[dict[Process, Counts], Counts])

    def sizes(self) -> Mapping[str, int]:
        return {"sent_counts": sum(map(len, self.sent.values())), "delivered_entries": len(self.reached)}


def _maximum(a: Counts, b: Counts) -> Counts:
    if not a or a is b:
        return b
    larger = {sender: count for sender, count in b.items() if a.get(sender, 0) < count}
    return {**a, **larger} if larger else a


def build(role: str, context: Context[MulticastOptions]) -> Node:
    """The node of the registry."""
    return MulticastNode(context, RstRule(process_of(context.node, context.incarnation)))


ENTRY: Final = Entry(
    name="rst",
    title="causal order with a matrix of sent counts (Raynal, Schiper, Toueg): rival of PRS",
    paper="prs1997",
    order="multicast",
    worlds=("point_to_point",),
    options=MulticastOptions,
    build=build,
    packets=(RstPacket, LifePacket, AckPacket),
)
