"""Runs tests against one mutant at a time: first the tests that run its line, then worlds of the swarm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from tests.mutants.coverage_map import Map
from tests.mutants.making import Mutant

SECONDS_OF_TESTS = 20.0
"""How long the tests of one mutant take without a fault, at most."""

WORLDS = 60
"""How many worlds of the swarm a mutant of a protocol or of the simulator must pass to survive."""

PROTOCOLS = {
    "drift2006": ["drift"],
    "guidec2021": ["causal_barrier", "delta_causal"],
    "prs1997": ["prs", "prs_mobile"],
    "vcube2018": ["vcube"],
    "was2021": ["was", "ck"],
    "multicast": ["rst", "ses", "prs"],
    "cells": ["was", "ck", "prs_mobile"],
    "floods": ["drift", "fifo"],
    "layered": ["fifo", "vector_clock", "causal_barrier", "hash_dag"],
}


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
    """A copy of the project in which one file at a time is bent."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder
        shutil.rmtree(folder, ignore_errors=True)
        skipped = shutil.ignore_patterns(
            ".git", ".venv*", "*.so", "out", "lake", "build", "__pycache__", ".*_cache"
        )
        shutil.copytree(root, folder, ignore=skipped, symlinks=True)
        self.environment = os.environ | {
            "PYTHONPATH": str(folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PRECEDE_DATA": os.environ.get("PRECEDE_DATA", str(root.parent / "shared" / "data")),
        }

    def judge(self, mutant: Mutant, tests: Sequence[str]) -> Outcome:
        """Put the fault in place, run the tests and the swarm, take it out again."""
        path = self.root / mutant.file
        text = path.read_text()
        path.write_text(mutant.apply(text))
        try:
            fate, by = self._run(mutant, tests)
        finally:
            path.write_text(text)
        about = (mutant.name, mutant.file, mutant.line, mutant.function, mutant.kind, mutant.old, mutant.new)
        return Outcome(*about, fate, by)

    def _run(self, mutant: Mutant, tests: Sequence[str]) -> tuple[str, str]:
        if tests:
            command = [
                "-m",
                "pytest",
                "-q",
                "-x",
                "-m",
                "not long",
                "-p",
                "no:cacheprovider",
                "--timeout",
                "100",
            ]
            code, printed = self._python([*command, *tests], 240)
            if code is None:
                return "time", ""
            if code:
                failed = [
                    line.split()[1] for line in printed.splitlines() if line.startswith(("FAILED", "ERROR"))
                ]
                return "tests", failed[0].partition("[")[0] if failed else tests[0].partition("::")[0]
        for protocol in swarm_of(mutant.file):
            code, printed = self._python(
                ["-m", "precede", "swarm", *protocol, "--seed", "7", "--no-shrink"], 400
            )
            if code is None:
                return "time", "swarm"
            if code:
                return "swarm", " ".join(protocol[:2])
        return ("survived", "") if tests else ("uncovered", "")

    def _python(self, arguments: Sequence[str], seconds: float) -> tuple[int | None, str]:
        """Run Python in the copy. Returns None instead of an exit code when it takes too long."""
        try:
            result = subprocess.run(
                [sys.executable, *arguments],
                cwd=self.root,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None, ""
        return result.returncode, result.stdout


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
