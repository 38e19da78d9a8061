"""Work at long intervals: evicts old messages, lets the store shrink, deletes old files of the event log."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from precede.core.instants import SECOND, Instant
from precede.runtime.history.retention import Retention
from precede.runtime.notices import Notices

INTERVAL_S: Final = 10.0


class Tidied(Protocol):
    """The part of a store that upkeep needs."""

    def tidy(self, now: Instant) -> bool: ...


class Upkeep:
    """The upkeep of one member. `run` is called often and does its work every ten seconds."""

    def __init__(
        self,
        store: Tidied,
        retention: Retention,
        log: Path | None,
        notices: Notices,
        clock: Callable[[], Instant],
    ) -> None:
        self._store = store
        self._retention = retention
        self._log = log
        self._notices = notices
        self._clock = clock
        self._due_at = time.monotonic() + INTERVAL_S

    def run(self) -> None:
        """Do the work if it is due. Raise StoreFailed if the store cannot be written."""
        if time.monotonic() >= self._due_at:
            self._due_at = time.monotonic() + INTERVAL_S
            self.tidy()

    def tidy(self) -> None:
        if not self._store.tidy(self._clock()):
            text = f"the store takes more than its quota of {self._retention.disk:,} bytes, without any history"
            self._notices.give("store_over_quota", text)
        if self._log is not None:
            rotate(self._log, self._retention, time.time())


def rotate(folder: Path, retention: Retention, now: float) -> int:
    """Delete the oldest files of an event log beyond the retention, never the newest. Return how many."""
    if retention.log_bytes is None and retention.log_age_us is None:
        return 0
    files = sorted((path.stat().st_mtime, path.name, path) for path in folder.glob("events-*.parquet"))
    total = sum(path.stat().st_size for *_, path in files)
    deleted = 0
    for written_at, _, path in files[:-1]:
        is_large = retention.log_bytes is not None and total > retention.log_bytes
        is_old = retention.log_age_us is not None and now - written_at > retention.log_age_us / SECOND
        if not is_large and not is_old:
            break
        total -= path.stat().st_size
        path.unlink()
        deleted += 1
    return deleted
