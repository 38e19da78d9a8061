"""The table of a store with the delivered messages: those that are not taken yet, and those that are kept.

A row has a message, the local time of its delivery, its source, what its source wrote about it, and `total`:
the bytes of all messages up to this one. So each bound of the retention is a place up to which rows are
deleted, and finding it reads only the rows that go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Message
from precede.runtime.history.database import Database
from precede.runtime.history.kept import Kept
from precede.runtime.history.retention import Retention

Extra: TypeAlias = tuple[Instant, NodeId, bytes]
"""Local time of the delivery, source, and the encoded content."""

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS outbox (place INTEGER PRIMARY KEY AUTOINCREMENT, message BLOB NOT NULL,
    at INTEGER NOT NULL DEFAULT 0, source INTEGER NOT NULL DEFAULT -1, content BLOB NOT NULL DEFAULT x'90',
    total INTEGER NOT NULL DEFAULT 0);
"""
_COLUMNS: Final = {
    "at": "INTEGER NOT NULL DEFAULT 0",
    "source": "INTEGER NOT NULL DEFAULT -1",
    "content": "BLOB NOT NULL DEFAULT x'90'",
    "total": "INTEGER NOT NULL DEFAULT 0",
}
_NOTHING: Final[Extra] = (0, -1, b"\x90")
_ROW_BYTES: Final = 32
"""What a row takes beside its message and content, roughly."""
_VACUUM_PAGES: Final = 4_096


class DeliveredTable:
    """The rows of one store."""

    def __init__(self, retention: Retention, database: Database) -> None:
        self._retention = retention
        self._database = database
        self._execute = database.execute
        self._total = 0

    def open(self) -> int:
        """Add the columns that a store of an earlier version lacks. Return the last place, 0 if none."""
        present = [row[1] for row in self._execute("PRAGMA table_info(outbox)")]
        for name, declared in _COLUMNS.items():
            if name not in present:
                self._execute(f"ALTER TABLE outbox ADD COLUMN {name} {declared}")
        row = self._execute("SELECT total FROM outbox ORDER BY place DESC LIMIT 1").fetchone()
        self._total = 0 if row is None else int(row[0])
        last = self._execute("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'").fetchone()
        return 0 if last is None else int(last[0])

    def write(self, delivered: Mapping[int, bytes], extras: Mapping[int, Extra], taken: int) -> None:
        """Insert delivered messages by place, and evict what the retention does not allow.

        Messages that are taken and would be evicted at once are not written.
        """
        last = max(delivered, default=0)
        first = 1 if self._retention.messages is None else last - self._retention.messages + 1
        rows = []
        for place, message in delivered.items():
            if place > taken or place >= first:
                at, source, content = extras.get(place, _NOTHING)
                self._total += len(message) + len(content) + _ROW_BYTES
                rows.append((place, message, at, source, content, self._total))
        self._database.execute_many("INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?)", rows)
        self.evict(taken, max((row[2] for row in rows), default=0))

    def evict(self, taken: int, now: Instant, excess: int = 0) -> int:
        """Delete taken messages beyond the retention, and older ones of at least `excess` bytes.

        Return how many rows were deleted.
        """
        up_to = min(taken, max(self._places_beyond(now, excess)))
        return self._execute("DELETE FROM outbox WHERE place <= ?", (up_to,)).rowcount

    def _places_beyond(self, now: Instant, excess: int) -> Iterable[int]:
        """Yield for each bound the last place that is beyond it."""
        bounds = self._retention
        last = self._one("SELECT MAX(place) FROM outbox")
        yield 0
        if bounds.messages is not None:
            yield last - bounds.messages
        if bounds.bytes is not None:
            before = f"total - length(message) - length(content) - {_ROW_BYTES} >= ?"
            yield self._before(before, self._total - bounds.bytes, last)
        if bounds.age_us is not None:
            yield self._before("at >= ?", now - bounds.age_us, last)
        if excess > 0:
            first = self._one("SELECT total FROM outbox ORDER BY place LIMIT 1")
            yield self._before("total >= ?", first + excess, last)

    def _before(self, condition: str, value: int, last: int) -> int:
        """Return the place before the first row that satisfies a condition; `last` if none does."""
        query = f"SELECT place FROM outbox WHERE {condition} ORDER BY place LIMIT 1"
        row = self._execute(query, (value,)).fetchone()
        return last if row is None else int(row[0]) - 1

    def _one(self, query: str) -> int:
        row = self._execute(query).fetchone()
        return 0 if row is None or row[0] is None else int(row[0])

    def first(self) -> int:
        """Return the first place that is kept, 0 if there is none."""
        return self._one("SELECT MIN(place) FROM outbox")

    def read(self, after: int, most: int = -1, source: NodeId | None = None) -> list[Kept]:
        """Return the messages behind a place, of one source if given, in the order of delivery."""
        return self._kept(
            "place > ? AND (? IS NULL OR source = ?) ORDER BY place", (after, source, source), most
        )

    def place_of_last(self, most: int, source: NodeId | None) -> int:
        """Return the place before the last `most` messages (of one source, if given); 0 if there are fewer."""
        query = "SELECT place FROM outbox WHERE ? IS NULL OR source = ? ORDER BY place DESC LIMIT 1 OFFSET ?"
        row = self._execute(query, (source, source, most - 1)).fetchone()
        return 0 if row is None else int(row[0]) - 1

    def place_at(self, since: Instant) -> int:
        """Return the last place that was delivered before an instant; 0 if there is none."""
        return self._one(f"SELECT MAX(place) FROM outbox WHERE at < {int(since)}")

    def _kept(self, condition: str, values: tuple[Any, ...], most: int) -> list[Kept]:
        query = f"SELECT place, message, at, content FROM outbox WHERE {condition} LIMIT ?"
        decode = msgspec.msgpack.decode
        return [
            Kept(place, decode(message, type=Message), at, decode(content))
            for place, message, at, content in self._execute(query, (*values, most))
        ]

    # -- the file ----------------------------------------------------------------------------------------

    def file_bytes(self) -> int:
        """Return how many bytes of the database file hold data."""
        pages = self._one("PRAGMA page_count") - self._one("PRAGMA freelist_count")
        return pages * self._one("PRAGMA page_size")

    def shrink(self) -> None:
        """Give free pages back to the file system, a bounded number of them. Call it outside a transaction."""
        if self._one("PRAGMA freelist_count"):
            self._database.run(f"PRAGMA incremental_vacuum({_VACUUM_PAGES}); PRAGMA wal_checkpoint(TRUNCATE);")
