"""Messages that wait for a message which no working node has: they are given up everywhere (decision 0011).

If all nodes have held the same view for longer than a packet is in flight, no packet of a crashed source is in
flight any more. A message of that source that is in no report is then lost, and a message that waits for it is
an orphan. Every node comes to the same result, because it depends only on what none of them has.
"""

from collections.abc import Mapping

from precede.core.identity import NodeId
from precede.protocols.vcube2018.awaited import Pending
from precede.protocols.vcube2018.packets import Report, StampedMessage
from precede.protocols.vcube2018.prepared import Prepared, Slot, slot_of
from precede.protocols.vcube2018.progress import Progress
from precede.protocols.vcube2018.sources import sources_of
from precede.protocols.vcube2018.view import View


class Orphans:
    """Finds orphans. `limits` has, for a source with given-up messages, the last number before them."""

    def __init__(self, view: View, delivered: Progress) -> None:
        self._view = view
        self._delivered = delivered
        self.limits: dict[NodeId, int] = {}

    def is_given_up(self, source: NodeId, number: int) -> bool:
        """Was this message given up?"""
        return number > self.limits.get(source, number)

    def take(self, pending: Mapping[Slot, Pending], report: Report) -> list[StampedMessage]:
        """Give up and return the pending messages that wait for lost messages or for other orphans."""
        orphans: dict[Slot, StampedMessage] = {}
        changed = True
        while changed:
            changed = False
            for slot, waiting in pending.items():
                if slot not in orphans and self._waits_for_lost(waiting.message, report):
                    orphans[slot] = waiting.stamped
                    source, number = waiting.message.source, waiting.message.number
                    self.limits[source] = min(number - 1, self.limits.get(source, number))
                    changed = True
        return list(orphans.values())

    def _waits_for_lost(self, message: Prepared, report: Report) -> bool:
        for row in message.rows:
            for source in sources_of(row.mask & self._delivered.row(row.number)):
                if self._view.is_gone(source) and self._is_lost(source, row.number, report):
                    return True
        return False

    def _is_lost(self, source: NodeId, number: int, report: Report) -> bool:
        """Is a message of this crashed source, up to this number, in no report, or given up before?"""
        if self.is_given_up(source, number):
            return True
        last = report.high[source] if source < len(report.high) else 0
        return any(slot_of(source, lacked) not in report.early for lacked in range(last + 1, number + 1))
