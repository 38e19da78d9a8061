"""A copy of the project in which one file at a time is bent, and what tests say of it in a fresh process.

Such a process is forked from one that has loaded the libraries and nothing of the project.
"""

from __future__ import annotations

import compileall
import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

import msgspec
from msgspec import Struct

from tests.mutants.making import Mutant

CPU_SECONDS: Final = 90
"""The CPU time after which the tests of a mutant count as endless."""

WAIT_SECONDS: Final = 900
"""The wall-clock time after which they do: for tests that wait and use no CPU."""

WORLDS: Final = 24
"""How many worlds of its protocols a mutant must pass to survive."""

FIRST_SEED: Final = 1000007

PROTOCOLS: Final = {
    "drift2006": ["drift", "drift+founding"],
    "guidec2021": ["causal_barrier", "delta_causal"],
    "prs1997": ["prs", "prs_mobile"],
    "vcube2018": ["vcube"],
    "was2021": ["was", "ck"],
    "multicast": ["rst", "ses", "prs"],
    "cells": ["was", "ck", "prs_mobile"],
    "floods": ["drift", "fifo"],
    "layered": ["fifo", "vector_clock", "causal_barrier", "hash_dag"],
    "gossip": ["fifo+gossip", "causal_barrier+gossip"],
    "routing": ["fifo+prophet", "fifo+spray_and_wait", "fifo+maxprop"],
    "sim": ["drift", "vcube", "was", "prs", "delta_causal", "hash_dag", "fifo+gossip"],
}
"""The protocols whose worlds may notice a mutant, by the folder that it is in; the innermost folder counts."""

ELSEWHERE: Final = {
    "src/precede/runtime/emulation/": ["tests/runtime/test_emulate.py"],
    "src/precede/runtime/programs/": ["tests/runtime/test_programs.py"],
}
"""Tests that run these packages in processes of their own, where no probe sees them."""

NO_TESTS: Final = 5
"""The exit code of pytest when all tests that were named are long ones."""

_PLAIN: Final = re.compile(r"[\w/.:,\[\]-]+")
"""Ids of tests that can be given to pytest; it does not find again some with other characters."""

_LIBRARIES: Final = ["pytest", "hypothesis", "msgspec", "numpy", "pyarrow.compute", "pyarrow.parquet", "numba"]
_FORKS: Final = multiprocessing.get_context("forkserver")


class Outcome(Struct):
    """What became of a mutant. Its `fate` is the killer: tests, swarm or time; or survived, or uncovered.

    Uncovered means that no test runs its statement or names its module.
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

    @classmethod
    def of(cls, mutant: Mutant, fate: str, by: str) -> Self:
        about = (mutant.name, mutant.file, mutant.line, mutant.function, mutant.kind, mutant.old, mutant.new)
        return cls(*about, fate, by)

    @property
    def alive(self) -> bool:
        return self.fate in ("survived", "uncovered")


def append(path: Path, row: Struct) -> None:
    """Add a row to a file in one write, so that processes may share the file."""
    with path.open("ab", buffering=0) as out:
        out.write(msgspec.json.encode(row) + b"\n")


class Copy:
    """A copy of the project, without compiled modules, in which one file at a time is bent."""

    def __init__(self, root: Path, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
        for name in names:
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name, follow_symlinks=False)
        compileall.compile_dir(folder / "src", quiet=2)
        self._open(folder)

    @classmethod
    def there(cls, folder: Path) -> Self:
        """Return the copy that another process made."""
        copy = cls.__new__(cls)
        copy._open(folder)
        return copy

    def _open(self, folder: Path) -> None:
        self.root = folder
        self.plain: dict[str, str] = {}
        """The text of the file that is bent now, without the fault."""
        _FORKS.set_forkserver_preload(_LIBRARIES)

    @contextmanager
    def bent(self, mutant: Mutant) -> Iterator[None]:
        """Put a mutant in place for a while."""
        with self._changed(mutant.file, mutant.apply):
            yield

    def fails(self, file: str, change: Callable[[str], str], test: str) -> bool:
        """Does a test fail while a file is changed? It must have been found: other exit codes are errors."""
        with self._changed(file, change):
            code, printed = self._test([test])
        assert code in (None, 0, 1), (test, printed)
        return code != 0

    def tested(self, tests: Sequence[str]) -> tuple[str, str]:
        """Run tests in a fresh process. Returns a fate and the test that failed."""
        code, printed = self._test([test for test in tests if _PLAIN.fullmatch(test)])
        if code is None:
            return "time", ""
        if code in (0, NO_TESTS):
            return "survived", ""
        lines = [line.split()[1] for line in printed.splitlines() if line.startswith(("FAILED", "ERROR "))]
        assert lines or code < 0, (code, printed[-2000:])
        return "tests", lines[0] if lines else "the process crashed"

    @contextmanager
    def _changed(self, file: str, change: Callable[[str], str]) -> Iterator[None]:
        path = self.root / file
        text = self.plain[file] = path.read_text()
        self._write(path, change(text))
        try:
            yield
        finally:
            self._write(path, text)

    def _write(self, path: Path, text: str) -> None:
        """Write a source file. Its bytecode goes, because a file changed twice in a second looks unchanged."""
        path.write_text(text)
        for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            stale.unlink()

    def _test(self, tests: Sequence[str]) -> tuple[int | None, str]:
        """Run tests in the copy. Returns None instead of an exit code when they do not end."""
        printed = self.root / "printed.txt"
        arguments = ["-q", "-x", "-m", "not long", "-p", "no:cacheprovider", "--timeout", "600", *tests]
        process = _FORKS.Process(target=_become_pytest, args=(str(self.root), arguments, str(printed)))
        process.start()
        process.join(WAIT_SECONDS)
        if process.exitcode is None and process.pid is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
            return None, ""
        text = printed.read_text(errors="replace") if printed.exists() else ""
        return (None if process.exitcode == -signal.SIGXCPU else process.exitcode), text


def _become_pytest(root: str, arguments: list[str], printed: str) -> None:
    """Become pytest in the copy at `root`: nothing of this project stays loaded."""
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
    sys.argv = ["pytest", *arguments]
    import pytest

    code = int(pytest.main(arguments))
    sys.stdout.flush()
    os._exit(code)


def swarm_of(file: str) -> list[tuple[str, int]]:
    """Return protocol and seed of the worlds that may notice a mutant: only of a protocol or the simulator."""
    folders = file.split("/")[2:]
    if folders[0] not in ("protocols", "sim"):
        return []
    names = next((PROTOCOLS[one] for one in reversed(folders) if one in PROTOCOLS), ["fifo", "vector_clock"])
    each = max(4, WORLDS // len(names))
    return [(name, FIRST_SEED + number) for number in range(each) for name in names]


def tests_naming(mutant: Mutant, root: Path) -> list[str]:
    """Return test files that may run a mutant though no probe saw it."""
    for folder, tests in ELSEWHERE.items():
        if mutant.file.startswith(folder):
            return tests
    files = sorted((root / "tests").rglob("test_*.py"))
    return [path.relative_to(root).as_posix() for path in files if mutant.module in path.read_text()][:3]
