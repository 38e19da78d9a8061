"""The durable state of a node: an SQLite database in WAL mode, and a journal of the latest commits beside it.

It holds the values that the protocol persisted; the delivered messages that are not acknowledged, and those
that are kept (`history/table.py`); the driver's own numbers (incarnation, last accepted message number, latest
clock reading); the rows of the event log that are in no file yet; and, where messages are signed, the links of
own ones and evidence against others. A crash at any byte leaves the last committed state. One process at a time
opens a store: two processes that continued from the same state would give two messages the same number.

The changes of a commit are one record of the journal (`store_journal.py`). Opening a store, reading from it,
closing it, and a long journal write them to the tables.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec

from precede.core.effects import Key
from precede.core.errors import BadInput, StoreFailed
from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.core.messages import Message
from precede.files.private import make_private, private_folder
from precede.runtime.history.database import Database
from precede.runtime.history.kept import Kept, plain_content
from precede.runtime.history.retention import NO_HISTORY, Retention
from precede.runtime.history.table import SCHEMA, DeliveredTable
from precede.runtime.store_journal import Changes, StoreJournal
from precede.runtime.store_lock import StoreLock
from precede.runtime.taken_place import TakenPlace

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS kept (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS driver (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log (place INTEGER PRIMARY KEY AUTOINCREMENT, rows BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS journal (place INTEGER PRIMARY KEY, changes BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS links (incarnation INTEGER, number INTEGER, trailer BLOB NOT NULL,
    link BLOB NOT NULL, PRIMARY KEY (incarnation, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS evidence (place INTEGER PRIMARY KEY AUTOINCREMENT, line BLOB NOT NULL);
"""
_FORMAT: Final = 5
_OLD_FORMAT: Final = 1
"""Format 4 kept no history. Format 3 had its journal in a table, and formats before it had none."""
_JOURNAL_MARK: Final = "journal"
_MOST_JOURNAL_BYTES: Final = 1 << 20


class Store:
    """A node's state on disk. Changes are part of one transaction until `commit`.

    A commit survives the end of the process (`kill -9`); with `synchronous` it also survives a power failure.
    """

    def __init__(
        self, path: Path, *, synchronous: bool = True, incarnation: int = 0, retention: Retention = NO_HISTORY
    ) -> None:
        self.path = path
        self.retention = retention
        self.first_incarnation = incarnation
        self._encode = msgspec.msgpack.Encoder().encode
        self._key = msgspec.msgpack.Decoder(Key)
        self._changes = Changes()
        self._unencoded: dict[Key, Any] = {}
        self._journalled = Changes()
        self._lock: StoreLock | None = None
        self._disowned = False
        try:
            private_folder(path.parent)
            self._lock = StoreLock(path, synchronous=synchronous)
            make_private(path)
            self._database = Database(path, _SCHEMA + SCHEMA, synchronous=synchronous)
            self.rows = DeliveredTable(retention, self._database)
            self._taken = TakenPlace(path.with_name(f"{path.name}-taken"))
            self._journal = StoreJournal(path.with_name(f"{path.name}-journalled"), synchronous=synchronous)
        except (OSError, sqlite3.Error) as error:
            self._unlock()
            raise BadInput(f"{path}: cannot be used as a store: {error}") from error
        self._read_journal()
        written = self.remembered("format", _FORMAT)
        if not _OLD_FORMAT <= written <= _FORMAT:
            self.abandon()
            raise BadInput(
                f"{path}: written by a newer version of Precede (format {written}, this one reads {_FORMAT})"
            )
        self.is_old = written == _OLD_FORMAT
        """True if version 0.1 wrote the store. Then `store_upgrade` has to replace its node ids."""
        if written < _FORMAT:
            self._database.execute("VACUUM")  # from now on the file can shrink
        self.remember("format", _OLD_FORMAT if self.is_old else _FORMAT)
        self._resume_outbox()
        place = self.remembered("place", 0)
        self.is_copy = place not in (0, self._lock.mark) and not self.remembered("moving", 0)
        """True if the store was copied, moved or restored since a process used it (`store_lock`)."""
        self._take_place()

    def _read_journal(self) -> None:
        """Read the changes of a store that was not closed, to be written to its tables."""
        decode = msgspec.msgpack.Decoder(Changes).decode
        for row in self._database.execute("SELECT changes FROM journal ORDER BY place"):  # of format 3
            self._journalled.add(decode(row[0]))
        for record in self._journal.read(self.remembered(_JOURNAL_MARK, 0)):
            self._journalled.add(decode(record))

    def _take_place(self) -> None:
        """Remember the lock's new mark. A crash in between is not taken for a copy."""
        assert self._lock is not None
        self.remember("moving", 1)
        self.commit()
        self.remember("place", self._lock.renew())
        self.remember("moving", 0)
        self.commit()

    def disown(self) -> None:
        """Let the next start take this store for a copy, with the next commit."""
        self._disowned = True
        self.remember("place", -1)

    def begin_incarnation(self, incarnation: int, *, empty: bool = False) -> None:
        """Continue as another incarnation, with everything that the protocol persisted, or `empty`: without it.

        Rows that are in no file yet are dropped: the original has them, and they are not of this incarnation.
        """
        for name, value in (("incarnation", incarnation), ("accepted", 0), ("steps", 0)):
            self.remember(name, value)
        self._write()
        self._database.begin()
        self._database.execute("DELETE FROM log")
        if empty:
            self._database.execute("DELETE FROM kept")
        self.commit()

    def _resume_outbox(self) -> None:
        """Delete the messages that were acknowledged before this start, and continue the places after them.

        The file of acknowledgements counts only if its mark is that of the last start of this very store.
        """
        if self._taken.mark != self.remembered("taken", 0):
            self._taken.place = self.remembered("taken place", 0)
        last = self.rows.open()
        self.last_place: int = max(self._taken.place, last, *self._journalled.delivered)
        self._write()
        mark = secrets.randbits(63)
        self.remember("taken", mark)
        self.commit()
        self._taken.begin(mark, self._taken.place)

    def claim(self, owner: Mapping[str, str]) -> None:
        """Bind a new store to its owner (group, member, protocol). Raise BadInput if it has another one."""
        for role, value in owner.items():
            mark = int.from_bytes(blake2b(value.encode(), digest_size=7).digest(), "big")
            if self.remembered(f"of {role}", mark) != mark:
                self.abandon()
                raise BadInput(f"{self.path}: belongs to another {role} than {value!r}")
            self.remember(f"of {role}", mark)
        self.commit()

    def sources(self) -> set[int]:
        """Return the sources of the messages in the store, as far as its keys and its outbox name them."""
        self._write()
        keys = [msgspec.msgpack.decode(row[0]) for row in self._database.execute("SELECT key FROM kept")]
        named = {key[1] for key in keys if isinstance(key, list) and len(key) > 1 and isinstance(key[1], int)}
        return named | {kept.message.id.source for kept in self.unacknowledged()}

    def rewrite(self, translated: Callable[[Any], Any]) -> None:
        """Replace each persisted key and value, and each message of the outbox, by `translated` of it.

        This is one transaction, which also sets the present format.
        """
        self._write()
        self._database.begin()
        decode, encode = msgspec.msgpack.decode, self._encode
        kept = [
            (decode(key), decode(value)) for key, value in self._database.execute("SELECT key, value FROM kept")
        ]
        self._database.execute("DELETE FROM kept")
        for key, value in kept:
            row = encode(translated(key)), encode(translated(value))
            self._database.execute("INSERT INTO kept VALUES (?, ?)", row)
        for place, message in list(self._database.execute("SELECT place, message FROM outbox")):
            row = encode(translated(decode(message))), place
            self._database.execute("UPDATE outbox SET message = ? WHERE place = ?", row)
        self.remember("format", _FORMAT)
        self.commit()
        self.is_old = False

    def saved(self) -> dict[Key, Any]:
        """Return every value that the protocol persisted and has not deleted, as plain data."""
        self._write()
        rows = self._database.execute("SELECT key, value FROM kept")
        return {self._key.decode(key): msgspec.msgpack.decode(value) for key, value in rows}

    def persist(self, key: Key, value: Any) -> None:
        """Write a value of the protocol, or delete it if it is None, with the next commit."""
        self._unencoded[key] = value  # the commit encodes the last value of each key only

    def deliver(self, message: Message, at: Instant = 0, content: Any = None) -> Kept:
        """Append a delivered message with the next commit. Return it with its place.

        `at` is the local time, `content` that of the effect `Deliver`.
        """
        self.last_place += 1
        plain = plain_content(content)
        self._changes.delivered[self.last_place] = self._encode(message)
        self._changes.extras[self.last_place] = (at, message.id.source, self._encode(plain))
        return Kept(self.last_place, message, at, plain)

    def unacknowledged(self, after: int = 0, most: int = -1) -> list[Kept]:
        """Return the messages behind a place that are not taken, oldest first; at most `most`, if not -1."""
        self._write()
        return self.rows.read(max(after, self._taken.place), most)

    def history(self) -> DeliveredTable:
        """Return the table of delivered messages, up to date."""
        self._write()
        return self.rows

    def tidy(self, now: Instant) -> bool:
        """Evict old messages and let the file shrink. Return False if it is still larger than its quota."""
        self._write()
        self._database.begin()
        quota = self.retention.disk
        excess = 0 if quota is None else self.rows.file_bytes() + self._journal.file_bytes - quota
        self.rows.evict(self._taken.place, now, excess)
        self.commit()
        self.rows.shrink()
        return quota is None or self.rows.file_bytes() + self._journal.file_bytes <= quota

    def acknowledge(self, place: int) -> None:
        """Record at once that a message of the outbox and all before it are taken.

        This survives the end of the process, but does not wait for the disk: after a power failure some
        acknowledged messages may be delivered again.
        """
        try:
            self._taken.write(place)
        except OSError as error:
            raise StoreFailed(f"{self.path}: {error}") from error

    def remember(self, name: str, value: int) -> None:
        """Write one of the driver's own numbers, with the next commit."""
        self._changes.numbers[name] = value

    def remembered(self, name: str, default: int) -> int:
        """Return one of the driver's own numbers, or `default` if it was never written."""
        for changes in (self._changes, self._journalled):
            if name in changes.numbers:
                return changes.numbers[name]
        row = self._database.execute("SELECT value FROM driver WHERE name = ?", (name,)).fetchone()
        return default if row is None else int(row[0])

    def incarnation(self) -> int:
        """Return the incarnation, which is the same after each restart, and record it."""
        incarnation = self.remembered("incarnation", self.first_incarnation)
        self.remember("incarnation", incarnation)
        self.commit()
        return incarnation

    def log(self, rows: bytes) -> None:
        """Append encoded rows of the event log, with the next commit."""
        self._changes.rows.append(rows)

    def logged(self) -> list[tuple[int, bytes]]:
        """Return the encoded rows that are in no file yet, oldest first, each block with its position."""
        self._write()
        return list(self._database.execute("SELECT place, rows FROM log ORDER BY place"))

    def forget_log(self, place: int) -> None:
        """Delete the rows up to a position with the next commit, because a file has them now."""
        self._database.begin()
        self._database.execute("DELETE FROM log WHERE place <= ?", (place,))

    def add_link(self, id: MessageId, trailer: bytes, link: bytes) -> None:
        """Store an own message's nonce and previous hash (`trailer`), and its own hash, with the next
        commit.
        """
        self._changes.links[id.incarnation, id.number] = (trailer, link)
        self.remember("linked incarnation", id.incarnation)
        self.remember("linked number", id.number)

    def link_of(self, id: MessageId) -> tuple[bytes, bytes] | None:
        """Return an own message's nonce and previous hash, and its own hash (`link`); None if unknown."""
        return self._link(id.incarnation, id.number)

    def _link(self, incarnation: int, number: int) -> tuple[bytes, bytes] | None:
        for changes in (self._changes, self._journalled):
            if (incarnation, number) in changes.links:
                return changes.links[incarnation, number]
        query = "SELECT trailer, link FROM links WHERE incarnation = ? AND number = ?"
        row: tuple[bytes, bytes] | None = self._database.execute(query, (incarnation, number)).fetchone()
        return row

    def last_link(self) -> tuple[int, int, bytes] | None:
        """Return incarnation, number and hash of the own message that was added last, or None."""
        last = self.remembered("linked incarnation", 0), self.remembered("linked number", 0)
        known = self._link(*last)
        return None if known is None else (*last, known[1])

    def forget_links(self, incarnation: int, up_to: int) -> None:
        """Delete the hashes of an incarnation's messages up to a number, with the next commit."""
        self._write()
        self._database.begin()
        self._database.execute("DELETE FROM links WHERE incarnation = ? AND number <= ?", (incarnation, up_to))

    def add_evidence(self, line: bytes) -> None:
        """Keep a line of evidence, with the next commit."""
        self._database.begin()
        self._database.execute("INSERT INTO evidence (line) VALUES (?)", (line,))

    def evidence(self) -> list[bytes]:
        """Return the lines of evidence, oldest first."""
        return [row[0] for row in self._database.execute("SELECT line FROM evidence ORDER BY place")]

    @property
    def dirty(self) -> bool:
        """Whether there are changes to commit."""
        return self._database.is_writing or bool(self._unencoded or self._changes)

    def commit(self) -> None:
        """Make all changes durable."""
        if not self.dirty:
            return
        self._encode_values()
        if not self._database.is_writing and self._append():
            return
        self._write()
        mark = secrets.randbits(63)
        self._database.execute("INSERT OR REPLACE INTO driver VALUES (?, ?)", (_JOURNAL_MARK, mark))
        self._database.commit()
        self._journal.begin(mark)

    def _append(self) -> bool:
        """Append the changes to the journal. Return False if it is too long: the tables get them instead."""
        data = self._encode(self._changes)
        if self._journal.size + len(data) > _MOST_JOURNAL_BYTES:
            return False
        try:
            self._journal.append(data)
        except OSError as error:
            raise StoreFailed(f"{self.path}: {error}") from error
        self._journalled.add(self._changes)
        self._changes.clear()
        return True

    def _encode_values(self) -> None:
        values, encode = self._changes.values, self._encode
        for key, value in self._unencoded.items():
            values[encode(key)] = None if value is None else encode(value)
        self._unencoded.clear()

    def _write(self) -> None:
        """Write all changes to the tables, in the transaction that the next commit ends."""
        self._encode_values()
        self._journalled.add(self._changes)
        changes, taken = self._journalled, self._taken.place
        if not changes:
            return
        self._database.begin()
        changes.numbers["taken place"] = (
            taken  # for a copy, to which the file of acknowledgements does not belong
        )
        written = [(key, value) for key, value in changes.values.items() if value is not None]
        deleted = [(key,) for key, value in changes.values.items() if value is None]
        self._database.execute_many("INSERT OR REPLACE INTO kept VALUES (?, ?)", sorted(written))
        self._database.execute_many("DELETE FROM kept WHERE key = ?", deleted)
        self.rows.write(changes.delivered, changes.extras, taken)
        self._database.execute_many(
            "INSERT OR REPLACE INTO driver VALUES (?, ?)", list(changes.numbers.items())
        )
        self._database.execute_many("INSERT INTO log (rows) VALUES (?)", [(rows,) for rows in changes.rows])
        links = [(*place, *link) for place, link in changes.links.items()]
        self._database.execute_many("INSERT OR REPLACE INTO links VALUES (?, ?, ?, ?)", links)
        self._database.execute("DELETE FROM journal")
        self._changes.clear()
        changes.clear()

    def close(self) -> None:
        """Write all changes to the tables, commit and close."""
        if not self._disowned:
            self._take_place()
        self._write()
        self.commit()
        self.abandon()

    def abandon(self) -> None:
        """Close without the changes since the last commit."""
        self._database.close()
        self._taken.close()
        self._journal.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
