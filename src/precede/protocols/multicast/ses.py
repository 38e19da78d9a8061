"""SES: causal order with pairs of destination and vector time (Schiper, Eggli, Sandoz 1989).

The rival that PRS is measured against (prs1997, section 3). A message carries its own vector time and, for each
destination, the vector time that this one must have reached. For a multicast the receiver learns destination(M)
and inserts the pair of every other destination. Vectors are kept without their zeros and counted with them.
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

Time: TypeAlias = dict[Process, int]
NEVER: Final[Time] = {}


class SesStamp(Stamp, frozen=True, gc=False):
    """t_M and V_M."""

    time: Time
    pairs: dict[Process, Time]


class SesPacket(MulticastPacket, frozen=True, gc=False):
    """A message with its vector time and the pairs."""

    kind: ClassVar[str] = "ses"
    stamp: SesStamp


class SesRule(Rule):
    """The local vector time in `reached`, counting sends, and V_P. Shared times are replaced, never changed."""

    packet = SesPacket

    def __init__(self, me: Process) -> None:
        self.me = me
        self.reached = {}
        self.pairs: dict[Process, Time] = {}

    def stamp(self, number: int, destinations: tuple[Process, ...], population: int) -> Sequence[Stamp]:
        self.reached[self.me] = number
        time = dict(self.reached)
        pairs = len(self.pairs)
        integers = pairs * (population + 1) + population
        entries = (pairs + 1) * population
        stamp = SesStamp(integers, entries, INTEGER_BYTES * integers, time, dict(self.pairs))
        self.pairs.update(dict.fromkeys(destinations, time))
        return (stamp,)

    def needs(self, stamp: SesStamp) -> Mapping[Process, int]:
        """The pair of this process, if there is one, is not later than the local time."""
        return stamp.pairs.get(self.me, NEVER)

    def deliver(
        self, source: Process, number: int, destinations: tuple[Process, ...], stamp: SesStamp
    ) -> Iterable[Process]:
        mine = self.pairs
        for to, time in stamp.pairs.items():
            if to != self.me:
                mine[to] = _supremum(mine.get(to, NEVER), time)
        for to in destinations:
            if to != self.me:
                mine[to] = _supremum(mine.get(to, NEVER), stamp.time)
        reached = self.reached
        advanced = [other for other, sends in stamp.time.items() if reached.get(other, 0) < sends]
        for other in advanced:
            reached[other] = stamp.time[other]
        return advanced

    def forget(self, node: NodeId, life: int) -> None:
        for process in [process for process in self.pairs if process & NODE_MASK == node]:
            if process >> LIFE_SHIFT < life:
                del self.pairs[process]

    def save(self) -> Any:
        return [dict(self.pairs), dict(self.reached)]

    def load(self, state: Any) -> None:
        self.pairs, self.reached = msgspec.convert(state, tuple[dict[Process, Time], Time])

    def sizes(self) -> Mapping[str, int]:
        return {"pairs": len(self.pairs), "time_entries": len(self.reached)}


def _supremum(a: Time, b: Time) -> Time:
    if not a or a is b:
        return b
    later = {other: sends for other, sends in b.items() if a.get(other, 0) < sends}
    return {**a, **later} if later else a


def build(role: str, context: Context[MulticastOptions]) -> Node:
    """The node of the registry."""
    return MulticastNode(context, SesRule(process_of(context.node, context.incarnation)))


ENTRY: Final = Entry(
    name="ses",
    title="causal order with pairs of destination and vector time (Schiper, Eggli, Sandoz): rival of PRS",
    paper="prs1997",
    order="multicast",
    worlds=("point_to_point",),
    options=MulticastOptions,
    build=build,
    packets=(SesPacket, LifePacket, AckPacket),
)
