"""One line on a terminal that says what is under way, how much of it is done, and how long the rest takes.

It is written to standard error, and only if that is a terminal. It appears after a second, so that quick work
stays silent, and it goes when the work is done.
"""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_FIRST_S: Final = 1.0
_EVERY_S: Final = 0.25
_CLEAR: Final = "\r\033[K"
_BLOCK: Final = 1 << 20
_PACKED: Final = (".gz", ".zip", ".bz2", ".xz", ".zst")


class Line:
    """The line of one piece of work. Call it with the units that are done, and all units if they are known.

    A thread writes it, so that it moves while the work does not report.
    """

    def __init__(self, label: str, units: str = "", total: int | None = None) -> None:
        self.label, self._units, self._total = label, units, total
        self._done = 0
        self._first: int | None = None
        self._sample: Callable[[], int] | None = None
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._is_written = False

    def __call__(self, done: int, total: int | None = None) -> None:
        if self._first is None:  # what was done before does not count for the rate
            self._first = done
        self._done = done
        self._total = self._total if total is None else total

    def follow(self, sample: Callable[[], int], total: int | None = None) -> None:
        """Ask a function how much is done, whenever the line is written."""
        self(sample(), total)
        self._sample = sample

    def text(self, now: float, width: int = 1000) -> str:
        """Return the line: counts, rate and time left as far as they are known, and the time that passed.

        If it does not fit into the width, the label is shortened.
        """
        rest = self._rest(now)
        room = max(width - len(rest), 10)
        label = self.label if len(self.label) <= room else f"{self.label[: room - 1]}…"
        return f"{label}{rest}"[:width]

    def _rest(self, now: float) -> str:
        if self._sample is not None:
            self._done = self._sample()
        passed = now - self._began
        if self._first is None:
            return f" ({clock(passed)})"
        rate = (self._done - self._first) / passed if passed > 0 else 0.0
        of, left = "", ""
        if self._total is not None:
            of = f" of {self._total:,}"
            left = f", {clock(max(self._total - self._done, 0) / rate)} left" if rate > 0 else ""
        speed = f", {rate:,.0f}/s" if rate >= 10 else f", {rate:.1f}/s" if rate > 0 else ""
        return f": {self._done:,}{of} {self._units}{speed}{left} ({clock(passed)})"

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Write the line while the block runs, and clear it at the end."""
        thread = threading.Thread(target=self._write_lines, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Clear the line while the block prints something else."""
        with self._lock:
            self._clear()
            yield
            sys.stdout.flush()

    def _write_lines(self) -> None:
        pause = _FIRST_S
        while not self._ended.wait(pause):
            with self._lock:
                width = shutil.get_terminal_size().columns - 1
                self._write(f"{_CLEAR}{self.text(time.monotonic(), width)}")
                self._is_written = True
            pause = _EVERY_S
        self._clear()

    def _clear(self) -> None:
        if self._is_written:
            self._write(_CLEAR)
            self._is_written = False

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


@contextmanager
def working(label: str, units: str = "", total: int | None = None) -> Iterator[Line]:
    """Show progress while the block runs, if standard error is a terminal. Yield the line to report to."""
    line = Line(label, units, total)
    if not sys.stderr.isatty():
        yield line
        return
    with line.shown():
        yield line


def rows_of(path: Path) -> int | None:
    """Return the rows of a log or trace for its progress: of Parquet, or of plain text. None if unknown."""
    if not sys.stderr.isatty() or not path.is_file() or path.suffix in _PACKED:
        return None
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return int(pq.read_metadata(path).num_rows)
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(_BLOCK), b""))


def clock(seconds: float) -> str:
    """Write a duration as hours, minutes and seconds.

    >>> clock(75), clock(7260)
    ('1:15', '2:01:00')
    """
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
