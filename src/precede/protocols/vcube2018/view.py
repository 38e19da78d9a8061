"""What VCube's diagnosis knows and says: who takes part, and how far everybody has come (vcube2018, section 2).

As in VCube, each node counts the events of every other: an even count is a node that works, an odd one a node
that has crashed or left; a larger count is later news. A test's answer brings the tested node's view, and a
report on the whole cluster that it answers for, put together from the reports of its own clusters: what
everybody there has received, what anybody has, and whether all of them have held this very view for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import ClassVar, Final, TypeAlias

from msgspec import Struct

from precede.core.identity import NodeId
from precede.core.messages import EntrySizedPacket, Written
from precede.protocols.vcube2018.packets import StampedMessage, VCubePacket
from precede.protocols.vcube2018.prepared import ENTRY_BYTES, HEADER_BYTES, Slot

Events: TypeAlias = tuple[tuple[NodeId, int], ...]
"""(node, how many times it crashed, left or joined), ascending by node."""

Vector: TypeAlias = tuple[int, ...]


class Report(Struct, frozen=True, array_like=True):
    """On a node and the clusters below it, all of whom held the view `events` when they said this.

    `low` counts what all of them have received without a gap, `high` what one of them has received without a
    gap, and `early` is what any of them has beyond a gap. `settled`: their view had been the same for longer
    than any packet flies.
    """

    events: Events
    settled: bool
    low: Vector
    high: Vector
    early: tuple[Slot, ...]


class _DiagnosisPacket(EntrySizedPacket, frozen=True, gc=False):
    """The size model of VCube's own packets, for the packets of its diagnosis."""

    header_bytes: ClassVar[int] = HEADER_BYTES
    entry_bytes: ClassVar[int] = ENTRY_BYTES


class VCubeTestPacket(_DiagnosisPacket, frozen=True, gc=False):
    """A test or its answer. `have` is what its sender has received, None from one that has not joined yet."""

    kind: ClassVar[str] = "vcube_test"
    number: int
    answer: bool
    events: Events
    have: Vector | None
    report: Report | None

    @property
    def control_entries(self) -> int:
        report = self.report
        reported = 0 if report is None else len(report.low) + len(report.high) + len(report.early)
        return len(self.events) + len(self.have or ()) + reported


class VCubeJoinPacket(_DiagnosisPacket, frozen=True, gc=False):
    """A newcomer whom everybody knows by now asks where to begin."""

    kind: ClassVar[str] = "vcube_join"
    control_entries: ClassVar[int] = 0


class VCubeStatePacket(_DiagnosisPacket, frozen=True, gc=False):
    """Where to begin: what its sponsor has delivered of each source, and what it holds beyond that."""

    kind: ClassVar[str] = "vcube_state"
    delivered: Vector
    content: tuple[StampedMessage, ...]

    def written(self) -> Sequence[Written]:
        return [stamped.written() for stamped in self.content]

    @property
    def payload_bytes(self) -> int:
        return sum(len(stamped.message.payload) for stamped in self.content)

    @property
    def control_entries(self) -> int:
        return len(self.delivered) + sum(one.entries for one in self.content)

    @property
    def messages(self) -> int:
        return len(self.content)


PACKETS: Final = (VCubePacket, VCubeTestPacket, VCubeJoinPacket, VCubeStatePacket)


class View:
    """Who takes part, as far as this node knows."""

    def __init__(self, nodes: Iterable[NodeId]) -> None:
        self._counts: dict[NodeId, int] = dict.fromkeys(sorted(nodes), 0)
        self._settle()

    def merge(self, events: Events) -> bool:
        """Take over later news; True if there was any."""
        news = [(node, count) for node, count in events if count > self._counts.get(node, -1)]
        self._counts.update(news)
        if news:
            self._settle()
        return bool(news)

    def bury(self, node: NodeId) -> bool:
        """A node has crashed or left; True if that is news."""
        return self.works(node) and self.merge(((node, self._counts[node] + 1),))

    def works(self, node: NodeId) -> bool:
        return bool(self.live >> node & 1)

    def buried(self, node: NodeId) -> bool:
        return self._counts.get(node, 0) % 2 == 1

    def _settle(self) -> None:
        self.events: Events = tuple(sorted(self._counts.items()))
        self.live = sum(1 << node for node, count in self.events if count % 2 == 0)
        self.positions = self.events[-1][0] + 1


def combine(reports: Sequence[Report]) -> Report:
    """One report on several parts that hold the same view."""
    return Report(
        reports[0].events,
        all(report.settled for report in reports),
        tuple(min(column) for column in zip_longest(*(report.low for report in reports), fillvalue=0)),
        tuple(max(column) for column in zip_longest(*(report.high for report in reports), fillvalue=0)),
        tuple(sorted({slot for report in reports for slot in report.early})),
    )
