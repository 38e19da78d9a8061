"""Measures the CPU time of calls and remembers the slowest one, with the part that garbage collection took."""

from __future__ import annotations

import gc
from time import thread_time

from msgspec import Struct


class Call(Struct, frozen=True, order=True):
    """One call, and what it cost: CPU of the thread, and how much of it was garbage collection."""

    cpu_s: float = 0.0
    collecting_s: float = 0.0
    combination: str = ""
    what: str = ""

    def __str__(self) -> str:
        return f"{self.combination}: {self.what}: {self.cpu_s:.4f} s, {self.collecting_s:.4f} of it collecting"


class _Collector:
    """The CPU time of all garbage collections so far."""

    def __init__(self) -> None:
        self.spent = self._began = 0.0
        gc.callbacks.append(self._notice)

    def _notice(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._began = thread_time()
        else:
            self.spent += thread_time() - self._began


_COLLECTOR = _Collector()


class Stopwatch:
    """Measures one call after another."""

    def __init__(self, combination: str) -> None:
        self.slowest = Call()
        self._combination = combination
        self._began = self._collected = 0.0

    def start(self) -> None:
        self._collected = _COLLECTOR.spent
        self._began = thread_time()

    def stop(self, what: str) -> None:
        """End the call that `start` began."""
        cpu = thread_time() - self._began
        if cpu > self.slowest.cpu_s:
            self.slowest = Call(cpu, _COLLECTOR.spent - self._collected, self._combination, what)
