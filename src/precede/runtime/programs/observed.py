"""What programs broadcast and delivered, by their own words, as the rows of an event log.

The order of a node's rows is the order of its output. A broadcast is where the program first acknowledged or
delivered it. If it did neither before it ended, but others delivered the message, the broadcast is where it was
requested: then everything that the log puts before it certainly was before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from precede.core.instants import Instant
from precede.eventlog.schema import BROADCAST, CRASHED, DELIVERED, LEFT, OBSERVED, STARTED
from precede.runtime.programs.program import Misbehaved
from precede.runtime.rows import Row, write_rows

MOST_DELIVERIES: Final = 1_000_000
"""The most deliveries of one node in one emulation."""
_LARGEST: Final = 1 << 53


class Observed:
    """The rows of one node, in segments: one for each start of its program. `durable`: a restart goes on."""

    def __init__(self, name: str, durable: bool) -> None:
        self.name = name
        self.incarnation = -1
        self.deliveries = 0
        self._durable = durable
        self._segments: list[tuple[int, list[Row]]] = []
        self._rows: list[Row] = []

    def started(self, now: Instant) -> None:
        """Write that the program starts; its next incarnation begins unless it keeps its state."""
        self.incarnation = 0 if self._durable else self.incarnation + 1
        self._rows = [(STARTED, now)]
        self._segments.append((self.incarnation, self._rows))

    def ended(self, now: Instant, crashed: bool) -> None:
        """Write that the program ended, by itself or by a kill."""
        self._rows.append((CRASHED if crashed else LEFT, now))

    def requested(self, now: Instant, number: int) -> Broadcast:
        """Write that the program is asked to broadcast a message. Return the request.

        The caller tells it where the broadcast belongs: `happened` (now) or `at_request` (instead of this row).
        """
        self._rows.append((OBSERVED, now, self.name, self.incarnation, number, "requested", None, None))
        return Broadcast(self, number, self._rows, len(self._rows) - 1)

    def delivered(self, now: Instant, broadcast: Broadcast | None, number: int) -> None:
        """Write that the program delivers a message; `broadcast` is None if nobody was asked for it."""
        self.deliveries += 1
        if self.deliveries > MOST_DELIVERIES:
            raise Misbehaved(f"delivers more than {MOST_DELIVERIES:,} messages")
        if broadcast is None:
            source, incarnation = self.name, self.incarnation
        else:
            source, incarnation = broadcast.node.name, broadcast.incarnation
            broadcast.delivered = True
            if broadcast.node is self and broadcast.rows is self._rows:
                broadcast.happened(now)
        self._rows.append((DELIVERED, now, source, incarnation, number, "", None, None))

    def write(self, folder: Path, run_id: str) -> None:
        """Write the rows as files of the node's folder."""
        first = 0
        for incarnation, rows in self._segments:
            write_rows(rows, folder / self.name, run_id, self.name, incarnation, first)
            first += len(rows)


class Broadcast:
    """A message that a program was asked to broadcast: its node, and the row of the request."""

    def __init__(self, node: Observed, number: int, rows: list[Row], place: int) -> None:
        self.node = node
        self.number = number
        self.incarnation = node.incarnation
        self.rows = rows
        self.delivered = False
        self.known = False
        self._place = place

    def happened(self, now: Instant) -> None:
        """Put the broadcast here in the node's order, unless it is known already."""
        if not self.known:
            self.known = True
            row = self.rows[self._place]
            self.rows.append((BROADCAST, now, *row[2:5], "", None, None))

    def at_request(self) -> None:
        """Put the broadcast where it was requested, unless it is known already."""
        if not self.known:
            self.known = True
            row = self.rows[self._place]
            self.rows[self._place] = (BROADCAST, row[1], *row[2:5], "", None, None)


def number_of(value: object) -> int:
    """Return the number that a program names a message by. Raise Misbehaved if it is none."""
    if type(value) is not int or not 0 <= value < _LARGEST:
        raise Misbehaved(f"delivers something that is no message: {str(value)[:60]!r}")
    return value


def place_the_rest(broadcasts: Iterable[Broadcast]) -> None:
    """Put every broadcast that was delivered, but never acknowledged, where it was requested."""
    for broadcast in broadcasts:
        if broadcast.delivered:
            broadcast.at_request()
