"""Judges one side while it is played: the live verifier, fed with the rows of its event log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from precede.witness.live.intake import LEFT, STARTED
from precede.witness.live.live import LiveRun
from precede.witness.live.state import LiveRow
from precede.witness.reading.column_names import BROADCAST, DELIVERED, OTHER
from precede.witness.verdict import Order, Violation

_KINDS: Final = {"broadcast": BROADCAST, "delivered": DELIVERED, "started": STARTED, "left": LEFT}
Rows = Sequence[Mapping[str, Any]]


class Judge:
    """Counts the violations of an order in rows that come in pieces."""

    def __init__(self, order: Order, allow_duplicates: bool) -> None:
        self.order = order
        self.violations = 0
        self._live = LiveRun(order, allow_duplicates)

    def add(self, rows: Rows) -> list[Violation]:
        """Take further rows; return the violations that they prove."""
        proved = self._live.add(
            [(row["node"], row["incarnation"], _live_row(row, self.order == "delta")) for row in rows]
        )
        self.violations += len(proved)
        return proved


def _live_row(row: Mapping[str, Any], timed: bool) -> LiveRow:
    kind = _KINDS.get(row["kind"], OTHER)
    clock = row["clock_us"] if timed else None
    if kind not in (BROADCAST, DELIVERED):
        return LiveRow(row["step"], kind, clock=clock)
    key = (row["message_source"], row["message_incarnation"], row["message_number"])
    if kind == DELIVERED:
        return LiveRow(row["step"], kind, *key, clock=clock)
    deadline = row["deadline_us"] if timed else None
    return LiveRow(row["step"], kind, *key, to=row["destinations"], deadline=deadline, clock=clock)
