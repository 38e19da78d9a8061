"""Runs tests against one mutant at a time: first the tests that run its line, then worlds of the swarm.

Tests run in processes forked from one that has loaded the libraries, so that a mutant costs little but its
tests. A process is stopped after so many seconds of CPU time; wall-clock time counts only where tests wait.
"""

from __future__ import annotations

import compileall
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.mutants.coverage_map import Map
from tests.mutants.making import Mutant

SECONDS_OF_TESTS: Final = 12.0
"""How long the tests of one mutant take without a fault, at most."""

CPU_SECONDS: Final = 90
"""The CPU time after which tests or worlds of a mutant count as endless."""

WAIT_SECONDS: Final = 900
"""The wall-clock time after which they do: for tests that wait and use no CPU."""

WORLDS: Final = 40
"""How many worlds of the swarm a mutant of a protocol or of the simulator must pass to survive."""

PROTOCOLS: Final = {
    "drift2006": ["drift"],
    "guidec2021": ["causal_barrier", "delta_causal"],
    "prs1997": ["prs", "prs_mobile"],
    "vcube2018": ["vcube"],
    "was2021": ["was", "ck"],
    "multicast": ["rst", "ses", "prs"],
    "cells": ["was", "ck", "prs_mobile"],
    "floods": ["drift", "fifo"],
    "layered": ["fifo", "vector_clock", "causal_barrier", "hash_dag"],
    "routing": ["fifo+prophet", "fifo+spray_and_wait", "fifo+maxprop"],
}

WAITING: Final = ("tests/runtime/", "tests/pipeline/", "tests/hostile/")
"""Tests that wait for sockets or other processes, and are run again without the fault when they fail."""

NO_TESTS: Final = 5
"""The exit code of pytest when all tests that were named are long ones."""

_LIBRARIES: Final = ["pytest", "hypothesis", "msgspec", "numpy", "pyarrow.compute", "pyarrow.parquet", "numba"]
_FORKS: Final = multiprocessing.get_context("forkserver")


class Outcome(Struct):
    """What became of a mutant. Its `fate` is the killer: tests, swarm or time; or survived, or uncovered.

    Uncovered means that no test runs its line or names its module.
    """

    name: str
    file: str
    line: int
    function: str
    kind: str
    old: str
    new: str
    fate: str
    by: str = ""


class Copy:
    """A copy of the project, without compiled modules, in which one file at a time is bent."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder
        shutil.rmtree(folder, ignore_errors=True)
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name, follow_symlinks=False)
        compileall.compile_dir(folder / "src", quiet=2)
        _FORKS.set_forkserver_preload(_LIBRARIES)

    def judge(self, mutant: Mutant, tests: Sequence[str], checked: Collection[str]) -> Outcome:
        """Put the fault in place, run the tests and the swarm, take it out again.

        A test that is not among those `checked` before must pass without the fault, else it kills nobody.
        """
        path = self.root / mutant.file
        text = path.read_text()
        self._write(path, mutant.apply(text))
        try:
            fate, by = self._run(mutant, tests)
        finally:
            self._write(path, text)
        if fate == "tests" and (by.startswith(WAITING) or by not in checked) and self._test([by])[0]:
            fate, by = "survived", f"{by} also fails without the fault"
        about = (mutant.name, mutant.file, mutant.line, mutant.function, mutant.kind, mutant.old, mutant.new)
        return Outcome(*about, fate, by)

    def fails(self, file: str, change: Callable[[str], str], test: str) -> bool:
        """Does a test fail while a file is changed? It must have been found: other exit codes are errors."""
        path = self.root / file
        text = path.read_text()
        self._write(path, change(text))
        try:
            code, printed = self._test([test])
        finally:
            self._write(path, text)
        assert code in (None, 0, 1), (test, printed)
        return code != 0

    def _write(self, path: Path, text: str) -> None:
        """Write a source file. Its bytecode goes, because a file changed twice in a second looks unchanged."""
        path.write_text(text)
        for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            stale.unlink()

    def _run(self, mutant: Mutant, tests: Sequence[str]) -> tuple[str, str]:
        if tests:
            code, printed = self._test(tests)
            if code is None:
                return "time", ""
            if code not in (0, NO_TESTS):
                lines = [line.split()[1] for line in printed.splitlines() if line.startswith("FAILED")]
                return "tests", lines[0].partition("[")[0] if lines else tests[0]
        for protocol in swarm_of(mutant.file):
            code, printed = self._fork("precede", ["swarm", *protocol, "--seed", "1000007", "--no-shrink"])
            if code is None:
                return "time", "swarm"
            if code:
                return "swarm", " ".join(protocol[:2])
        return ("survived", "") if tests else ("uncovered", "")

    def _test(self, tests: Sequence[str]) -> tuple[int | None, str]:
        marks = ["-m", "not long"]
        return self._fork("pytest", ["-q", "-x", *marks, "-p", "no:cacheprovider", "--timeout", "600", *tests])

    def _fork(self, program: str, arguments: Sequence[str]) -> tuple[int | None, str]:
        """Run pytest or the command in the copy. Returns None instead of an exit code when it does not end."""
        printed = self.root / "printed.txt"
        process = _FORKS.Process(target=_become, args=(str(self.root), program, list(arguments), str(printed)))
        process.start()
        process.join(WAIT_SECONDS)
        if process.exitcode is None and process.pid is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
            return None, ""
        text = printed.read_text(errors="replace") if printed.exists() else ""
        return (None if process.exitcode == -signal.SIGXCPU else process.exitcode), text


def _become(root: str, program: str, arguments: list[str], printed: str) -> None:
    """Become pytest or the command of the copy at `root`: nothing of this project stays loaded."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 10))
    data = os.environ.get("PRECEDE_DATA", str(Path(__file__).resolve().parents[3] / "shared" / "data"))
    os.environ |= {"PYTHONPATH": f"{root}/src", "PYTHONDONTWRITEBYTECODE": "1", "PRECEDE_DATA": data}
    os.chdir(root)
    sys.dont_write_bytecode = True
    own = Path(__file__).resolve().parents[2]
    sys.path[:] = [
        root,
        f"{root}/src",
        *(path for path in sys.path if path and Path(path).resolve() not in (own, own / "src")),
    ]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "precede")]:
        del sys.modules[name]
    out = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.argv = [program, *arguments]
    if program == "pytest":
        import pytest

        code = int(pytest.main(arguments))
    else:
        from runpy import run_module

        try:
            run_module("precede", run_name="__main__", alter_sys=True)
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    sys.stdout.flush()
    os._exit(code)


def swarm_of(file: str) -> list[list[str]]:
    """Return the options of the swarm's runs for a file: its protocols, or all of them for the simulator."""
    parts = file.split("/")
    if "protocols" in parts:
        names = next((PROTOCOLS[part] for part in parts if part in PROTOCOLS), ["fifo", "vector_clock"])
        return [["--protocol", name, "--worlds", str(WORLDS)] for name in names]
    return [["--worlds", str(WORLDS)]] if "sim" in parts else []


def tests_for(mutant: Mutant, found: Map, root: Path) -> list[str]:
    """Return the tests to run: those that run the line, else those whose file names its module."""
    tests = found.tests_of(mutant.file, mutant.line, SECONDS_OF_TESTS)
    if tests:
        return tests
    module = mutant.file.removeprefix("src/").removesuffix(".py").replace("/", ".")
    files = sorted((root / "tests").rglob("test_*.py"))
    return [path.relative_to(root).as_posix() for path in files if module in path.read_text()][:3]
