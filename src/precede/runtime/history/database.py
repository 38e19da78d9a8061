"""The SQLite file of a store: its connection, its one open transaction, and its errors as `StoreFailed`."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from precede.core.errors import StoreFailed


class Database:
    """A database in WAL mode. `begin` opens a transaction unless one is open; `commit` ends it."""

    def __init__(self, path: Path, schema: str, *, synchronous: bool) -> None:
        self._path = path
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute(f"PRAGMA synchronous={'FULL' if synchronous else 'OFF'}")
        self._connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # counts for a new file only
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.executescript(schema)
        self.is_writing = False

    def begin(self) -> None:
        if not self.is_writing:
            self.execute("BEGIN")
            self.is_writing = True

    def commit(self) -> None:
        self.execute("COMMIT")
        self.is_writing = False

    def close(self) -> None:
        self._connection.close()

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        try:
            return self._connection.execute(statement, values)
        except sqlite3.Error as error:
            raise StoreFailed(f"{self._path}: {error}") from error

    def execute_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        try:
            self._connection.executemany(statement, rows)
        except sqlite3.Error as error:
            raise StoreFailed(f"{self._path}: {error}") from error

    def run(self, script: str) -> None:
        """Run statements to their end, outside a transaction: `execute` stops a PRAGMA after its first step."""
        try:
            self._connection.executescript(script)
        except sqlite3.Error as error:
            raise StoreFailed(f"{self._path}: {error}") from error
