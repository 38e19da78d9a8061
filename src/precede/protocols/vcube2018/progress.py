"""Vector clocks as sets of sources: one operation compares the entries of many sources (decision 0012).

`lacking[n - first]` are the sources of which fewer than n messages are counted. The entries of a message that
are still missing are then those that its row and `lacking[n - first]` both have. There are sets for the latest
`KEPT_ROWS` numbers only. Above them every source is lacking; below them `_below` has a count for each source.
"""

from __future__ import annotations

from typing import Any, final

from precede.core.identity import NodeId
from precede.protocols.vcube2018.prepared import Prepared, Slot, new_set, slot_of
from precede.protocols.vcube2018.sources import (
    Mask,
    Row,
    Share,
    SourceSet,
    everybody_of,
    highest_of,
    sources_of,
)

KEPT_ROWS = 64


@final
class Progress:
    """A vector clock: the messages counted of each source, without gaps; `counted` is their sum."""

    __slots__ = ("_below", "_everybody", "_positions", "counted", "first", "lacking")

    def __init__(self, positions: int, lacking: list[SourceSet] | None = None) -> None:
        self.first = 1
        self.counted = 0
        self._everybody: Any = everybody_of(positions)
        self.lacking: list[SourceSet] = [new_set(self._everybody)] if lacking is None else lacking
        self._positions = positions
        self._below: list[int] = []

    def passes(self, message: Prepared) -> bool:
        """Count a message if it is new and everything it depends on is counted. True if it was counted.

        After False the message may still be countable: one outside the kept rows needs the slow path.
        """
        at = message.number - self.first
        lacking = self.lacking
        if at < 0 or at >= len(lacking):
            return False
        row, needs = lacking[at], message.needs
        if needs is not None:
            if not row.take(message.source, needs):
                return False
        elif row.has(message.source) and not self.lacked(message.rows):
            row.remove(message.source)
        else:
            return False
        self.counted += 1
        return True

    def advance(self, message: Prepared) -> None:
        self.counted += 1
        number = message.number
        at = number - self.first
        if at >= len(self.lacking):
            self._open_rows(number, message.source)
        elif at >= 0:
            self.lacking[at].remove(message.source)
        else:
            self._below[message.source] = number

    def has(self, number: int, source: NodeId) -> bool:
        at = number - self.first
        if 0 <= at < len(self.lacking):
            return not self.lacking[at].has(source)
        return not self.row(number) >> source & 1

    def lacked(self, rows: list[Row]) -> Slot:
        """Return one message that these vector entries name and that is not counted yet; 0 if there is none."""
        lacking, first = self.lacking, self.first
        for row in rows:
            at = row.number - first
            if 0 <= at < len(lacking):
                source = lacking[at].highest(row)
            else:
                absent: Any = row.mask & self.row(row.number)
                source = int(absent.bit_length()) - 1
            if source >= 0:
                return slot_of(source, row.number)
        return 0

    def row(self, number: int) -> Mask:
        """Return the mask of the sources of which fewer than `number` messages are counted."""
        at = number - self.first
        if at >= len(self.lacking):
            return self._everybody
        return self.lacking[at].mask() if at >= 0 else self._row_below(number)

    def count(self, source: NodeId) -> int:
        for at in range(len(self.lacking) - 1, -1, -1):
            if not self.lacking[at].has(source):
                return self.first + at
        return self._below[source] if self._below else 0

    def counts(self) -> list[int]:
        counts = self._below[:] if self._below else [0] * self._positions
        for at in range(len(self.lacking)):
            _raise(counts, self._everybody ^ self.row(self.first + at), self.first + at)
        return counts

    def copy(self) -> Progress:
        """Return a copy for `since`. Its masks are integers: copies of nodes that counted nothing share one."""
        masks = [row.mask() for row in self.lacking] if self.counted else [self._everybody]
        copied = Progress(self._positions, [SourceSet(mask) for mask in masks])
        copied.first, copied.counted, copied._below = self.first, self.counted, self._below[:]
        return copied

    def since(self, earlier: Progress) -> list[Row]:
        """Return the entries that differ from an earlier state, as rows ascending by number (Birman)."""
        added: Any = self._everybody ^ earlier._everybody
        changed: Any = 0
        masks: list[Any] = [row.mask() for row in self.lacking]
        for at in range(len(masks)):
            changed |= masks[at] ^ (earlier.row(self.first + at) | added)
        rows: list[Row] = []
        above: Any = self._everybody
        for at in range(len(masks) - 1, -1, -1):
            row: Any = masks[at]
            exactly: Any = (above ^ row) & changed
            if exactly:
                rows.append(Row(self.first + at, exactly))
            above = row
        if self._below:
            rows += self._behind(earlier)
        return sorted(rows, key=_by_number)

    def _behind(self, earlier: Progress) -> list[Row]:
        """Return the entries that differ from an earlier state and whose numbers are below the kept rows."""
        rows: dict[int, Any] = {}
        for source in sources_of(self.lacking[0].mask()):
            count = self._below[source]
            if count != (earlier.count(source) if source < earlier._positions else 0):
                rows[count] = rows.get(count, 0) | 1 << source
        return [Row(count, rows[count]) for count in rows]

    def _row_below(self, number: int) -> Mask:
        """Return `row` for a number below the kept rows. This compares the counts one by one."""
        fewer: Any = self.lacking[0].mask()
        for source in sources_of(fewer):
            if self._below[source] >= number:
                fewer ^= 1 << source
        return fewer

    def _open_rows(self, number: int, source: NodeId) -> None:
        """Add rows up to a new highest number, which only this source has; drop the oldest rows."""
        lacking = self.lacking
        begin = max(self.first + len(lacking), number - KEPT_ROWS + 1)
        spare = min(len(lacking), max(number - KEPT_ROWS + 1 - self.first, 0))
        if spare and not self._below:
            self._below = [0] * self._positions
        for at in range(spare):
            _raise(self._below, self._everybody ^ lacking[at].mask(), self.first + at)
        del lacking[:spare]
        self.first = begin - len(lacking)
        for _ in range(begin, number + 1):
            lacking.append(new_set(self._everybody ^ 1 << source))

    def widen(self, positions: int) -> None:
        """Add sources with higher numbers, of which nothing is counted yet."""
        if positions <= self._positions:
            return
        added: Any = (1 << positions) - (1 << self._positions)
        if self._below:
            self._below.extend([0] * (positions - self._positions))
        self._positions = positions
        self._everybody |= added
        self.lacking = [new_set(row.mask() | added) for row in self.lacking]

    def jump(self, source: NodeId, count: int) -> None:
        """Count a source's messages up to `count` at once: a node that joins does not deliver them."""
        before = self.count(source)
        if count <= before:
            return
        self.counted += count - before
        if count < self.first:
            self._below[source] = count
            return
        for at in range(min(len(self.lacking), count - self.first + 1)):
            if self.lacking[at].has(source):
                self.lacking[at].remove(source)
        self._open_rows(count, source)


@final
class Ahead:
    """The messages received without a gap and not delivered yet: *vector_max* minus *vector_clock*.

    `rows` has their sources by number, and `_latest` is the one with `_number`, which was looked up last.
    `_spare` is an empty set, to be used again.
    """

    __slots__ = ("_latest", "_number", "_spare", "rows")

    def __init__(self) -> None:
        self.rows: dict[int, SourceSet] = {}
        self._number = 0
        self._latest: SourceSet | None = None
        self._spare: SourceSet | None = None

    def of(self, number: int) -> SourceSet | None:
        """Return the sources of the messages with this number; None if there is none."""
        if number != self._number:
            row = self.rows.get(number)
            if row is None:
                return None
            self._number, self._latest = number, row
        return self._latest

    def add(self, number: int, source: NodeId) -> None:
        """Add the message with this number of a source."""
        row = self.of(number)
        if row is None:
            row = new_set(0) if self._spare is None else self._spare
            self.rows[number] = row
            self._spare = None
        row.add(source)

    def remove(self, number: int, source: NodeId) -> None:
        """Remove a message that waited for its turn and is delivered now."""
        row = self.of(number)
        assert row is not None
        row.remove(source)
        if not row.size:
            self._spare = row
            self._number, self._latest = 0, None
            del self.rows[number]

    def cut(self, source: NodeId, number: int) -> None:
        """Remove the waiting messages of a source from this number on: one before them is lost."""
        for later in [later for later, row in self.rows.items() if later >= number and row.has(source)]:
            self.remove(later, source)

    def received(self, delivered: Progress) -> list[int]:
        """Return *vector_max*: the number of messages received without a gap of each source."""
        counts = delivered.counts()
        for number in sorted(self.rows):
            _raise(counts, self.rows[number].mask(), number)
        return counts


@final
class Missing:
    """The messages not received yet."""

    __slots__ = ("_ahead", "_delivered")

    def __init__(self, delivered: Progress, ahead: Ahead) -> None:
        self._delivered = delivered
        self._ahead = ahead

    def one_of(self, rows: list[Row], share: Share) -> Slot:
        """Return one message of these entries that is missing and whose source is in `share`; 0 if none is."""
        lacking, first = self._delivered.lacking, self._delivered.first
        for row in rows:
            received = self._ahead.of(row.number)
            at = row.number - first
            if 0 <= at < len(lacking):
                source = lacking[at].highest_beside(row, received, share)
            else:
                missing: Any = row.mask & self._delivered.row(row.number)
                if received is not None:
                    missing &= ~received.mask()
                source = highest_of(missing, share)
            if source >= 0:
                return slot_of(source, row.number)
        return 0


def _raise(counts: list[int], mask: Mask, number: int) -> None:
    """Set the count of each source in the mask to `number`."""
    for source in sources_of(mask):
        counts[source] = number


def _by_number(row: Row) -> int:
    return row.number
