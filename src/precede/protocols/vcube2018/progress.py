"""Vector clocks as rows of bit masks: one operation compares the entries of many sources (decision 0012).

`lacking[n - first]` is the mask of the sources of which fewer than n messages are counted. The entries of a
message that are still missing are then `row & lacking[n - first]`. Rows exist for the latest `KEPT_ROWS`
numbers only. Above them every source is lacking; below them `_below` has a count for each source.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, final

from precede.core.identity import NodeId
from precede.protocols.vcube2018.prepared import SOURCE_BITS, Mask, Prepared, Row, Share, Slot, slot_of

KEPT_ROWS = 64


@final
class Progress:
    """A vector clock: the messages counted of each source, without gaps; `counted` is their sum."""

    __slots__ = ("_below", "_everybody", "_positions", "counted", "first", "lacking")

    def __init__(self, positions: int) -> None:
        self.first = 1
        self.counted = 0
        self._everybody: Any = _everybody_of(positions)
        self.lacking: list[Any] = [self._everybody]
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
        row: Any = lacking[at]
        bit: Any = message.bit
        if message.needs:
            if row & message.needs != bit:
                return False
        elif not row & bit or self.lacked(message.rows):
            return False
        lacking[at] = row ^ bit
        self.counted += 1
        return True

    def advance(self, message: Prepared) -> None:
        self.counted += 1
        number = message.number
        at = number - self.first
        if at >= len(self.lacking):
            self._open_rows(number, message.bit)
        elif at >= 0:
            self.lacking[at] ^= message.bit
        else:
            self._below[message.source] = number

    def has(self, number: int, bit: Mask) -> bool:
        return not self.row(number) & bit

    def lacked(self, rows: list[Row]) -> Slot:
        """Return one message that these vector entries name and that is not counted yet; 0 if there is none."""
        lacking, first = self.lacking, self.first
        for row in rows:
            at = row.number - first
            inside = 0 <= at < len(lacking)
            absent: Any = row.mask & (lacking[at] if inside else self.row(row.number))
            if absent:
                highest: int = absent.bit_length() - 1
                return row.number << SOURCE_BITS | highest
        return 0

    def row(self, number: int) -> Mask:
        """Return the mask of the sources of which fewer than `number` messages are counted."""
        at = number - self.first
        if at >= len(self.lacking):
            return self._everybody
        return self.lacking[at] if at >= 0 else self._row_below(number)

    def count(self, source: NodeId) -> int:
        bit: Any = 1 << source
        for at in range(len(self.lacking) - 1, -1, -1):
            if not self.lacking[at] & bit:
                return self.first + at
        return self._below[source] if self._below else 0

    def counts(self) -> list[int]:
        counts = self._below[:] if self._below else [0] * self._positions
        for at in range(len(self.lacking)):
            _raise(counts, self._everybody ^ self.lacking[at], self.first + at)
        return counts

    def copy(self) -> Progress:
        copied = Progress(self._positions)
        copied.first, copied.counted = self.first, self.counted
        copied.lacking, copied._below = self.lacking[:], self._below[:]
        return copied

    def since(self, earlier: Progress) -> list[Row]:
        """Return the entries that differ from an earlier state, as rows ascending by number (Birman)."""
        added: Any = self._everybody ^ earlier._everybody
        changed: Any = 0
        for at in range(len(self.lacking)):
            changed |= self.lacking[at] ^ (earlier.row(self.first + at) | added)
        rows: list[Row] = []
        above: Any = self._everybody
        for at in range(len(self.lacking) - 1, -1, -1):
            row: Any = self.lacking[at]
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
        for source in sources_of(self.lacking[0]):
            count = self._below[source]
            if count != (earlier.count(source) if source < earlier._positions else 0):
                rows[count] = rows.get(count, 0) | 1 << source
        return [Row(count, rows[count]) for count in rows]

    def _row_below(self, number: int) -> Mask:
        """Return `row` for a number below the kept rows. This compares the counts one by one."""
        fewer: Any = self.lacking[0]
        for source in sources_of(fewer):
            if self._below[source] >= number:
                fewer ^= 1 << source
        return fewer

    def _open_rows(self, number: int, bit: Mask) -> None:
        """Add rows up to a new highest number, which only the source with `bit` has; drop the oldest rows."""
        lacking = self.lacking
        begin = max(self.first + len(lacking), number - KEPT_ROWS + 1)
        spare = min(len(lacking), max(number - KEPT_ROWS + 1 - self.first, 0))
        if spare and not self._below:
            self._below = [0] * self._positions
        for at in range(spare):
            _raise(self._below, self._everybody ^ lacking[at], self.first + at)
        del lacking[:spare]
        self.first = begin - len(lacking)
        for _ in range(begin, number + 1):
            lacking.append(self._everybody ^ bit)

    def widen(self, positions: int) -> None:
        """Add sources with higher numbers, of which nothing is counted yet."""
        if positions <= self._positions:
            return
        added: Any = (1 << positions) - (1 << self._positions)
        if self._below:
            self._below.extend([0] * (positions - self._positions))
        self._positions = positions
        self._everybody |= added
        for at in range(len(self.lacking)):
            self.lacking[at] |= added

    def jump(self, source: NodeId, count: int) -> None:
        """Count a source's messages up to `count` at once: a node that joins does not deliver them."""
        before = self.count(source)
        if count <= before:
            return
        self.counted += count - before
        bit: Any = 1 << source
        if count < self.first:
            self._below[source] = count
            return
        for at in range(min(len(self.lacking), count - self.first + 1)):
            self.lacking[at] &= ~bit
        self._open_rows(count, bit)


@final
class Ahead:
    """The messages received without a gap and not delivered yet, as rows: *vector_max* minus *vector_clock*."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: dict[int, Any] = {}

    def add(self, number: int, bit: Mask) -> None:
        """Add the message with this number of the source with this bit."""
        row: Any = self.rows.get(number)
        self.rows[number] = bit if row is None else row | bit

    def remove(self, message: Prepared) -> None:
        """Remove a message that waited for its turn and is delivered now."""
        rest: Any = self.rows[message.number] ^ message.bit
        if rest:
            self.rows[message.number] = rest
        else:
            del self.rows[message.number]

    def cut(self, source: NodeId, number: int) -> None:
        """Remove the waiting messages of a source from this number on: one before them is lost."""
        bit: Any = 1 << source
        for row in [row for row, mask in self.rows.items() if row >= number and mask & bit]:
            self.rows[row] ^= bit
            if not self.rows[row]:
                del self.rows[row]

    def received(self, delivered: Progress) -> list[int]:
        """Return *vector_max*: the number of messages received without a gap of each source."""
        counts = delivered.counts()
        for number in sorted(self.rows):
            _raise(counts, self.rows[number], number)
        return counts


@final
class Missing:
    """The messages not received yet. Its cache of masks is valid until the next message is received."""

    __slots__ = ("_ahead", "_delivered", "_mask", "_number")

    def __init__(self, delivered: Progress, ahead: Ahead) -> None:
        self._delivered = delivered
        self._ahead = ahead
        self._number = 0
        self._mask: Any = 0

    def renew(self) -> None:
        self._number = 0

    def one_of(self, rows: list[Row], share: Share) -> Slot:
        """Return one message of these entries that is missing and whose source is in `share`; 0 if none is."""
        for row in rows:
            if row.number != self._number:
                self._look_up(row.number)
            missing: Any = row.mask & self._mask
            if missing:
                missing = missing >> share.shift & share.mask
                if missing:
                    highest: int = missing.bit_length() - 1
                    return slot_of(highest + share.shift, row.number)
        return 0

    def _look_up(self, number: int) -> None:
        """Cache the mask of the sources whose message with this number is missing."""
        lacking: Any = self._delivered.row(number)
        received: Any = self._ahead.rows.get(number)
        self._number = number
        self._mask = lacking if received is None else lacking ^ (lacking & received)


@lru_cache(maxsize=8)
def _everybody_of(positions: int) -> Mask:
    """Return the mask of all sources. The nodes of a world share it: 16,384 of them would need 36 MB."""
    return (1 << positions) - 1


def sources_of(mask: Mask) -> list[NodeId]:
    digits: str = f"{mask:b}"[::-1]
    return [source for source, digit in enumerate(digits) if digit == "1"]


def _raise(counts: list[int], mask: Mask, number: int) -> None:
    """Set the count of each source in the mask to `number`."""
    for source in sources_of(mask):
        counts[source] = number


def _by_number(row: Row) -> int:
    return row.number
