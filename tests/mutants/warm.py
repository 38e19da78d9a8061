"""One process that has loaded the project and collected its tests; each mutant is tried in a fork of it.

So a mutant costs its tests and nothing else. The process is pytest, with `Warm` in place of the loop over
tests. A fork is stopped after so much CPU time; wall-clock time counts only where tests wait.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from msgspec import Struct

from tests.mutants.coverage_map import SECONDS_OF_TESTS, Covered, Map
from tests.mutants.making import Mutant
from tests.mutants.probes import install
from tests.mutants.running import ELSEWHERE, Copy, Outcome, append, swarm_of, tests_naming
from tests.mutants.swapping import functions_by_file, outermost, swap

FILE_SECONDS: Final = 25
"""The CPU time that the tests of one file get in the map."""

Write = Callable[[Struct], None]


class Plan(Struct):
    """The work of one process: its share of the map of the tests in `folders`, or of the mutants."""

    stage: str
    share: int
    shares: int
    root: str
    map: str
    results: str
    folders: list[str]
    mutants: list[Mutant]
    """All that were drawn."""
    undecided: list[Mutant]
    until: float
    """Seconds since the epoch at which no further test file, or no further mutant, is begun."""
    test_seconds: float = SECONDS_OF_TESTS
    swarm: bool = True


class Failed(Struct):
    """The test, or the protocol of the swarm, that noticed the fault."""

    by: str


class Warm:
    """The plugin. It needs one thread, or a fork could wait for a lock that nobody holds."""

    def __init__(self, plan: Plan, hits: set[str]) -> None:
        self.plan = plan
        self.root = Path(plan.root)
        self.hits = hits
        self.copy = Copy.there(self.root)
        self.reports: list[pytest.TestReport] = []
        self.items: dict[str, pytest.Item] = {}
        self.functions: dict[str, list[Any]] = {}
        self.loaded: set[str] = set()
        """The mutants whose places ran while modules were loaded."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.reports.append(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        self.functions = functions_by_file(f"{self.root}/src/")
        self.loaded = set(self.hits)
        gc.collect()
        gc.freeze()
        if self.plan.stage == "map":
            self._map()
        else:
            self._judge_all()
        return True

    def _map(self) -> None:
        """Run the tests of each file without a fault, and add what they ran to the map."""
        known = Map(Path(self.plan.map), self.root)
        files: dict[str, list[pytest.Item]] = {}
        for item in self.items.values():
            files.setdefault(item.nodeid.partition("::")[0], []).append(item)
        modules = {mutant.module for mutant in self.plan.mutants}
        missing = [file for file in files if known.lacks(file)]
        missing.sort(key=lambda file: not any(module in known.text(file) for module in modules))
        for file in missing[self.plan.share :: self.plan.shares]:
            if time.time() > self.plan.until:
                return
            began = time.monotonic()

            def run(_write: Write, items: Sequence[pytest.Item] = files[file]) -> None:
                for row in self._covered(items):
                    append(Path(self.plan.map), row)

            self._fork(run, FILE_SECONDS, 4 * FILE_SECONDS)
            known.finish(file)
            print(f"map {time.monotonic() - began:6.1f} s {file}", file=sys.stderr, flush=True)

    def _covered(self, items: Sequence[pytest.Item]) -> Any:
        for item, following in zip(items, [*items[1:], None], strict=True):
            self.hits.clear()
            cpu, wall = time.process_time(), time.monotonic()
            failed = self._fails(item, following)
            cpu, wall = time.process_time() - cpu, time.monotonic() - wall
            yield Covered(item.nodeid, not failed, round(cpu, 4), round(wall, 4), sorted(self.hits))

    def _fails(self, item: pytest.Item, following: pytest.Item | None) -> bool:
        self.reports.clear()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return any(report.failed for report in self.reports)

    def _judge_all(self) -> None:
        known = Map(Path(self.plan.map), self.root)
        todo = self.plan.undecided[self.plan.share :: self.plan.shares]
        for count, mutant in enumerate(todo, 1):
            if time.time() > self.plan.until:
                return
            began = time.monotonic()
            fate, by = self._judge(mutant, known)
            append(Path(self.plan.results), Outcome.of(mutant, fate, by))
            place = f"{mutant.file}:{mutant.line} {mutant.kind}"
            took = time.monotonic() - began
            print(f"{count}/{len(todo)} {took:5.1f} s {fate:9} {place} {by}", file=sys.stderr, flush=True)

    def _judge(self, mutant: Mutant, known: Map) -> tuple[str, str]:
        """Run the tests of a mutant, then worlds of the swarm. Returns its fate and its killer."""
        names = {one.name for one in self.plan.mutants if one.file == mutant.file}
        outside = self._is_outside(mutant)
        chosen = known.tests_of(mutant, names, self.plan.test_seconds, outside)
        tests = [test for test in chosen if test in self.items]
        named = tests_naming(mutant, self.root) if not tests or mutant.file.startswith(tuple(ELSEWHERE)) else []
        with self.copy.bent(mutant):
            while True:
                fate, by = self._tested(mutant, tests, known) if tests else ("", "")
                if named and fate not in ("tests", "time"):
                    fate, by = self.copy.tested(named)
                    if fate == "time":  # whole files, whose time without the fault is not known
                        fate, by = "survived", f"no end of {' '.join(named)}"
                if fate != "tests" or by not in self.items or not self._fails_anyway(by):
                    break
                tests = [test for test in tests if test != by]
                named = []
            if fate not in ("tests", "time"):
                fate, by = self._swarmed(mutant)
        return ("uncovered", "") if fate == "survived" and not tests and not named else (fate, by)

    def _is_outside(self, mutant: Mutant) -> bool:
        """Is a mutant outside of functions, or in one that ran when its module was loaded?"""
        text = self.copy.plain.get(mutant.file) or (self.root / mutant.file).read_text()
        return mutant.name in self.loaded or outermost(text, mutant) is None

    def _tested(self, mutant: Mutant, tests: Sequence[str], known: Map) -> tuple[str, str]:
        """Run tests in a fork with the fault; in a fresh process if the fault is outside of functions."""
        cpu, wall = known.limits(tests)
        swapped = self.copy.root / "swapped"
        swapped.unlink(missing_ok=True)

        def run(write: Write) -> None:
            if self._is_outside(mutant) or not self._swap(mutant):
                return
            swapped.touch()
            items = [self.items[test] for test in tests]
            for item, following in zip(items, [*items[1:], None], strict=True):
                if self._fails(item, following):
                    write(Failed(item.nodeid))
                    return

        rows, ended = self._fork(run, 10 + 5 * cpu, 60 + 20 * wall)
        if not swapped.exists():
            return self.copy.tested(tests)
        if not ended:
            return "time", ""
        return ("tests", rows[0].by) if rows else ("survived", "")

    def _fails_anyway(self, test: str) -> bool:
        """Does a test fail without the fault too? Then it has noticed nothing."""

        def run(write: Write) -> None:
            if self._fails(self.items[test], None):
                write(Failed(test))

        rows, ended = self._fork(run, 600, 600)
        return bool(rows) or not ended

    def _swarmed(self, mutant: Mutant) -> tuple[str, str]:
        work = swarm_of(mutant.file) if self.plan.swarm else []

        def run(write: Write) -> None:
            from precede.experiments.swarm.swarm import run_seed

            for protocol, seed in work if self._swap(mutant) else ():
                if run_seed(protocol, seed).failed:
                    write(Failed(f"{protocol} {seed}"))
                    return

        rows, ended = self._fork(run, 120, 600) if work else ([], True)
        if not ended:
            return "time", "swarm"
        return ("swarm", rows[0].by) if rows else ("survived", "")

    def _swap(self, mutant: Mutant) -> bool:
        path = str(self.root / mutant.file)
        return swap(self.functions.get(path, []), mutant, self.copy.plain[mutant.file], path)

    def _fork(self, work: Callable[[Write], None], cpu: float, wall: float) -> tuple[list[Failed], bool]:
        """Do some work in a fork. Returns what it wrote, and whether it ended in time."""
        scratch = Path(tempfile.mkdtemp(prefix="mutant"))
        rows = scratch / "rows.jsonl"
        child = os.fork()
        if child == 0:
            try:
                _settle(scratch, cpu)
                work(lambda row: append(rows, row))
            except BaseException as error:
                append(rows, Failed(f"{type(error).__name__} outside of tests"))
            finally:
                os._exit(0)
        handle = os.pidfd_open(child)
        try:
            ready, _, _ = select.select([handle], [], [], wall)
        finally:
            os.close(handle)
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        written = rows.read_bytes().splitlines() if rows.exists() else []
        shutil.rmtree(scratch, ignore_errors=True)
        return [msgspec.json.decode(row, type=Failed) for row in written], bool(ready) and code == 0


def _settle(scratch: Path, cpu: float) -> None:
    """Give a fork its own session, limits, output and folder for temporary files."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    limit = int(cpu) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ |= {"TMPDIR": str(scratch), "PYTEST_DEBUG_TEMPROOT": str(scratch)}
    tempfile.tempdir = str(scratch)
    out = os.open(scratch / "printed.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)


def main() -> int:
    """Run the plan in the file that is named. When this process is ended, so is its fork."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    plan = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Plan)
    hits = install(Path(plan.root), plan.mutants)
    arguments = ["-q", "--capture=no", "-p", "no:cacheprovider", "--hypothesis-seed=1"]
    marks = ["-m", "not long and not spark and not slow"]
    return int(pytest.main([*arguments, *marks, *plan.folders], plugins=[Warm(plan, hits)]))


if __name__ == "__main__":
    sys.exit(main())
