"""CPU seconds and memory of this process and all its descendants: Java, Spark's Python workers."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil

SAMPLE_S = 0.5
_SIGCHLD_BIT = 1 << 16


def cpu_s() -> float:
    """User and system seconds of all these processes so far, ended ones included."""
    total = 0.0
    for process in family():
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def java_cpu_s() -> float:
    """CPU seconds of the Java process alone, without its Python workers."""
    return sum(sum(process.cpu_times()[:2]) for process in family() if process.name() == "java")


def memory() -> int:
    """Bytes that these processes hold now; shared memory is counted for each of them."""
    total = 0
    for process in family():
        try:
            total += process.memory_info().rss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return total


def waited_s() -> float:
    """How long the Python workers were ready to run while another process had the core (Linux)."""
    total = 0
    for process in family():
        with suppress(OSError, psutil.NoSuchProcess):
            if process.name() != "java":
                files = list(Path(f"/proc/{process.pid}/task").glob("*/schedstat"))
                total += sum(int(file.read_text().split()[1]) for file in files)
    return total / 1e9


def family() -> list[psutil.Process]:
    """Finds the descendants from parent to child (Linux), because scanning all processes is slow."""
    family, place = [psutil.Process()], 0
    while place < len(family):
        with suppress(OSError, psutil.NoSuchProcess):  # it may end while it is looked at
            for file in Path(f"/proc/{family[place].pid}/task").glob("*/children"):
                family += [psutil.Process(int(pid)) for pid in file.read_text().split()]
        place += 1
    return family


def uncounted() -> dict[psutil.Process, float]:
    """The CPU seconds of living processes whose parent ignores their end, so that nobody adds them up.

    Spark's Python workers are such: what they used is gone when they end.
    """
    found: dict[psutil.Process, float] = {}
    ignoring: dict[int, bool] = {}
    for process in family():
        with suppress(OSError, psutil.NoSuchProcess):
            parent = process.ppid()
            if parent not in ignoring:
                ignoring[parent] = _ignores_children(parent)
            if ignoring[parent]:
                found[process] = sum(process.cpu_times()[:4])
    return found


def _ignores_children(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored.split()[1], 16) & _SIGCHLD_BIT)


class Watched:
    """Measures a block of code: `cpu_s`, `wall_s`, and `peak_bytes` sampled every half second.

    `cpu_s` includes processes whose end nobody counts, up to the last sample before it.
    """

    def __enter__(self) -> Watched:
        self.peak_bytes = 0
        self._uncounted: dict[psutil.Process, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._cpu, self._wall = cpu_s(), time.monotonic()
        self._thread.start()
        return self

    def _sample(self) -> None:
        while not self._over.wait(SAMPLE_S):
            self.peak_bytes = max(self.peak_bytes, memory())
            self._uncounted |= uncounted()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wall_s = time.monotonic() - self._wall
        self._over.set()
        self._thread.join()
        living = uncounted()
        self.cpu_s = cpu_s() - self._cpu
        self.cpu_s += sum(used for process, used in self._uncounted.items() if process not in living)
        self.peak_bytes = max(self.peak_bytes, memory())
