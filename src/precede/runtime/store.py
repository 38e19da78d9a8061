"""What a node must not forget: SQLite in WAL mode, one transaction up to the next outside effect.

Four things live here: what the protocol persisted; the outbox of messages delivered and not yet taken by the
application; the driver's own memory (incarnation, last accepted number, latest clock reading); and rows of the
event log that are in no segment yet. A crash at any byte leaves the last committed state. One process at a time
has it: two that went on from one state would give two messages the same number.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import sys
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec

from precede.core.effects import Key
from precede.core.errors import BadInput
from precede.core.messages import Message

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS kept (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outbox (place INTEGER PRIMARY KEY AUTOINCREMENT, message BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS driver (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log (place INTEGER PRIMARY KEY AUTOINCREMENT, rows BLOB NOT NULL);
"""
_FORMAT: Final = 1
_MOST_LIVES: Final = 30_000


class StoreFailed(RuntimeError):
    """The disk did not take or give something: a member whose memory fails stops, as if it had crashed."""


class Store:
    """A node's memory on disk. Changes gather in one transaction until `commit`.

    Not `synchronous`: a commit survives the end of the process (`kill -9`), not that of the machine.
    """

    def __init__(self, path: Path, *, synchronous: bool = True) -> None:
        self.path = path
        self._encode = msgspec.msgpack.Encoder().encode
        self._key = msgspec.msgpack.Decoder(Key)
        self._dirty = False
        self._lock: int | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(path)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # messages are in it: nobody else's to read
            self._database = sqlite3.connect(path, isolation_level=None)
            self._database.execute(f"PRAGMA synchronous={'FULL' if synchronous else 'OFF'}")
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            self._unlock()
            raise BadInput(f"{path}: cannot be used as a store: {error}") from error
        if self.remembered("format", _FORMAT) != _FORMAT:
            raise BadInput(f"{path}: written by another version (format {self.remembered('format', 0)})")
        self.remember("format", _FORMAT)
        self.commit()

    def belong(self, owner: Mapping[str, str]) -> None:
        """To one member of one group, with one protocol: nobody goes on from a state that is not its own."""
        for what, value in owner.items():
            mark = int.from_bytes(blake2b(value.encode(), digest_size=7).digest(), "big")
            if self.remembered(f"of {what}", mark) != mark:
                self.abandon()
                raise BadInput(f"{self.path}: belongs to another {what} than {value!r}")
            self.remember(f"of {what}", mark)
        self.commit()

    def saved(self) -> dict[Key, Any]:
        """Everything the protocol persisted and has not forgotten, as plain data."""
        rows = self._execute("SELECT key, value FROM kept")
        return {self._key.decode(key): msgspec.msgpack.decode(value) for key, value in rows}

    def persist(self, key: Key, value: Any) -> None:
        """Part of the next commit."""
        self._begin()
        if value is None:
            self._execute("DELETE FROM kept WHERE key = ?", (self._encode(key),))
        else:
            self._execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (self._encode(key), self._encode(value)))

    def deliver(self, message: Message) -> int:
        """Into the outbox, with the next commit; its place there."""
        self._begin()
        cursor = self._execute("INSERT INTO outbox (message) VALUES (?)", (self._encode(message),))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def undelivered(self, after: int = 0, most: int = -1) -> list[tuple[int, Message]]:
        """What the application had not taken behind a place, oldest first, all or so many."""
        asked = "SELECT place, message FROM outbox WHERE place > ? ORDER BY place LIMIT ?"
        rows = self._execute(asked, (after, most))
        return [(place, msgspec.msgpack.decode(message, type=Message)) for place, message in rows]

    def taken(self, place: int) -> None:
        """The application has this one and everything before it."""
        self._begin()
        self._execute("DELETE FROM outbox WHERE place <= ?", (place,))

    def remember(self, name: str, value: int) -> None:
        """The driver's own memory, with the next commit."""
        self._begin()
        self._execute("INSERT OR REPLACE INTO driver VALUES (?, ?)", (name, value))

    def remembered(self, name: str, default: int) -> int:
        row = self._execute("SELECT value FROM driver WHERE name = ?", (name,)).fetchone()
        return default if row is None else int(row[0])

    def log(self, rows: bytes) -> None:
        """Rows of the event log, with the next commit."""
        self._begin()
        self._execute("INSERT INTO log (rows) VALUES (?)", (rows,))

    def logged(self) -> list[tuple[int, bytes]]:
        """The rows that are in no segment yet, oldest first."""
        return list(self._execute("SELECT place, rows FROM log ORDER BY place"))

    def forget_log(self, place: int) -> None:
        """Everything up to here is in a segment; with the next commit."""
        self._begin()
        self._execute("DELETE FROM log WHERE place <= ?", (place,))

    @property
    def dirty(self) -> bool:
        """Is there anything to commit?"""
        return self._dirty

    def commit(self) -> None:
        """Durable from here on."""
        if self._dirty:
            self._execute("COMMIT")
            self._dirty = False

    def close(self) -> None:
        self.commit()
        self.abandon()

    def abandon(self) -> None:
        """Close without the changes since the last commit."""
        self._database.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _begin(self) -> None:
        if not self._dirty:
            self._execute("BEGIN")
            self._dirty = True

    def _execute(self, statement: str, given: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        try:
            return self._database.execute(statement, given)
        except sqlite3.Error as error:
            raise StoreFailed(f"{self.path}: {error}") from error


def _locked(path: Path) -> int | None:
    """A lock that ends with this process, in a file of its own: SQLite's locks go when any file is closed."""
    if sys.platform == "win32":
        return None
    import fcntl

    lock = os.open(path.with_name(f"{path.name}-lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise BadInput(f"{path}: is in use by another process") from None
    return lock


class NoStore:
    """Nothing is kept: a node without a store is a new incarnation each time."""

    dirty = False

    def __init__(self, life: int | None = None) -> None:
        self.life = secrets.randbelow(_MOST_LIVES) + 1 if life is None else life
        self._place = 0
        self._log: list[bytes] = []
        self._memory: dict[str, int] = {}

    def saved(self) -> dict[Key, Any]:
        return {}

    def persist(self, key: Key, value: Any) -> None:
        """Forget it."""

    def deliver(self, message: Message) -> int:
        self._place += 1
        return self._place

    def undelivered(self, after: int = 0, most: int = -1) -> list[tuple[int, Message]]:
        return []

    def taken(self, place: int) -> None:
        """Nothing to mark."""

    def remember(self, name: str, value: int) -> None:
        self._memory[name] = value

    def remembered(self, name: str, default: int) -> int:
        return self._memory.get(name, default)

    def log(self, rows: bytes) -> None:
        """Until the end, in memory."""
        self._log.append(rows)

    def logged(self) -> list[tuple[int, bytes]]:
        return list(enumerate(self._log))

    def forget_log(self, place: int) -> None:
        self._log.clear()

    def commit(self) -> None:
        """Nothing to write."""

    def close(self) -> None:
        """Nothing to close."""

    def abandon(self) -> None:
        """Nothing to lose."""
