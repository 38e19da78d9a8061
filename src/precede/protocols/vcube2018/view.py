"""Which nodes work, as one VCube node knows it (vcube2018, section 2).

As in VCube, each node has an event counter: an even count means that it works, an odd one that it crashed or
left. A larger count is more recent.
"""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from precede.core.identity import NodeId
from precede.protocols.vcube2018.packets import Events, Report


class View:
    """The event counters of all nodes: as `events`, and as the mask `live` of the nodes that work."""

    def __init__(self, nodes: Iterable[NodeId]) -> None:
        self._counts: dict[NodeId, int] = dict.fromkeys(sorted(nodes), 0)
        self._update()

    def merge(self, events: Events) -> bool:
        """Take over larger counts from another view. Returns True if there were any."""
        news = [(node, count) for node, count in events if count > self._counts.get(node, -1)]
        self._counts.update(news)
        if news:
            self._update()
        return bool(news)

    def mark_gone(self, node: NodeId) -> bool:
        """Record that a node crashed or left. Return False if it was not known as working."""
        return self.is_working(node) and self.merge(((node, self._counts[node] + 1),))

    def is_working(self, node: NodeId) -> bool:
        return bool(self.live >> node & 1)

    def is_gone(self, node: NodeId) -> bool:
        return self._counts.get(node, 0) % 2 == 1

    def _update(self) -> None:
        self.events: Events = tuple(sorted(self._counts.items()))
        self.live = sum(1 << node for node, count in self.events if count % 2 == 0)
        self.positions = self.events[-1][0] + 1


def combine(reports: Sequence[Report]) -> Report:
    """Combine the reports of several groups of nodes, which have the same view, into one."""
    return Report(
        reports[0].events,
        all(report.settled for report in reports),
        tuple(min(column) for column in zip_longest(*(report.low for report in reports), fillvalue=0)),
        tuple(max(column) for column in zip_longest(*(report.high for report in reports), fillvalue=0)),
        tuple(sorted({slot for report in reports for slot in report.early})),
    )
