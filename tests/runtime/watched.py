"""Processes under test: waits for their lines with a time limit; a failure shows the output of all of them."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, ClassVar, NoReturn

import pytest

PATIENCE = 60.0


class Watched:
    """A running process. Threads read both of its pipes, so that it never blocks on a full pipe."""

    all: ClassVar[list[Watched]] = []

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name = name
        self.process = process
        self.printed: list[str] = []
        self._fresh: dict[str, queue.Queue[str | None]] = {"out": queue.Queue(), "err": queue.Queue()}
        for pipe, where in ((process.stdout, "out"), (process.stderr, "err")):
            assert pipe is not None
            threading.Thread(target=self._read, args=(pipe, where), daemon=True).start()
        Watched.all.append(self)

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def line(self, where: str = "out", seconds: float = PATIENCE) -> str:
        """The next line of standard output or error."""
        try:
            line = self._fresh[where].get(timeout=seconds)
        except queue.Empty:
            self.fail(f"wrote no line within {seconds:g} s")
        if line is None:
            self.fail("ended instead of writing a line")
        return line

    def lines(self, count: int) -> list[str]:
        return [self.line() for _ in range(count)]

    def until(self, matches: Callable[[str], bool], where: str = "err", seconds: float = PATIENCE) -> str:
        """The next line for which `matches` is true."""
        deadline = time.monotonic() + seconds
        while not matches(line := self.line(where, max(0.01, deadline - time.monotonic()))):
            pass
        return line

    def ended(self, seconds: float = PATIENCE) -> int:
        """Wait for the end of the process; returns its exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.fail(f"did not end within {seconds:g} s")

    def fail(self, problem: str) -> NoReturn:
        """Fail the test with the last output of every process."""
        report = [f"{self.name} {problem}"]
        for watched in Watched.all:
            state = watched.process.poll()
            report.append(f"--- {watched.name}: {'runs' if state is None else f'ended with {state}'}")
            report += watched.printed[-40:]
        pytest.fail("\n".join(report))

    def _read(self, pipe: IO[str], where: str) -> None:
        for line in pipe:
            self.printed.append(f"[{where}] {line.rstrip()}")
            self._fresh[where].put(line.rstrip("\n"))
        self._fresh[where].put(None)
        pipe.close()


@contextmanager
def running(*arguments: str, program: tuple[str, ...] = ("-m", "precede"), **how: object) -> Iterator[Watched]:
    """Run `precede`, or another Python program, with these arguments; it is killed at the end of the block."""
    process = subprocess.Popen(  # type: ignore[call-overload]
        [sys.executable, *program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )
    watched = Watched(" ".join(arguments[:2]), process)
    try:
        yield watched
    finally:
        process.kill()
        process.wait()
        Watched.all.remove(watched)
