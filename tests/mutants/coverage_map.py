"""Which tests run a mutant's statement, how long each takes, and which of them to run against it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tests.mutants.making import Mutant

SECONDS_OF_TESTS: Final = 8.0
"""How much CPU time the tests of one mutant take without a fault, at most."""

NEARBY: Final = 0.2
"""A test of the mutant's own package counts as this much of its time: it is likely to notice.

So does a test whose file imports the mutant's module.
"""

QUICK: Final = 0.02
"""The CPU seconds that a quick test takes at most."""


class Covered(Struct):
    """One test without any fault: its id, CPU and wall-clock seconds, and the mutants whose places it ran."""

    test: str
    passed: bool
    cpu: float
    wall: float
    hits: list[str]


class Finished(Struct):
    """All tests of a file are in the map: its path, and the digest of its text."""

    file: str
    digest: str


class Map:
    """The tests of each mutant, read from a file that only grows: the last row of a test counts."""

    def __init__(self, path: Path, root: Path) -> None:
        self._path = path
        self._root = root
        self.finished: dict[str, str] = {}
        self.rows: dict[str, Covered] = {}
        for line in path.read_bytes().splitlines() if path.exists() else ():
            if line.startswith(b'{"file"'):
                done = msgspec.json.decode(line, type=Finished)
                self.finished[done.file] = done.digest
            else:
                row = msgspec.json.decode(line, type=Covered)
                self.rows[row.test] = row

    @cache  # noqa: B019 (there is one map)
    def text(self, file: str) -> str:
        path = self._root / file
        return path.read_text() if path.exists() else ""

    def lacks(self, file: str) -> bool:
        """Is the map without a test file as it is now?"""
        return self.finished.get(file) != _digest(self._root / file)

    def finish(self, file: str) -> None:
        with self._path.open("ab") as out:
            out.write(msgspec.json.encode(Finished(file, _digest(self._root / file))) + b"\n")

    def limits(self, tests: Iterable[str]) -> tuple[float, float]:
        """Return the CPU and the wall-clock time that some tests took in all."""
        rows = [self.rows[test] for test in tests if test in self.rows]
        return sum(row.cpu for row in rows), sum(row.wall for row in rows)

    def tests_of(self, mutant: Mutant, names: Set[str], seconds: float, outside: bool = False) -> list[str]:
        """Return the tests that run the mutant's statement, up to a CPU time in all, likely killers first.

        `names` are the mutants of its file: if the map does not know the mutant, theirs are chosen from. The
        quickest case of each test comes before the second case of any. A fault `outside` of functions may be
        noticed by a test that calls nothing of its file: then quick tests of the package are chosen too.
        """
        package = mutant.file.split("/")[2:-1]

        def is_near(row: Covered) -> bool:
            folders = row.test.partition("::")[0].split("/")[1:-1]
            return all(one == other for one, other in zip(package, folders, strict=False))

        rows = [
            row
            for row in self.rows.values()
            if row.passed and (mutant.name in row.hits or (outside and row.cpu < QUICK and is_near(row)))
        ]
        if not rows:
            rows = [row for row in self.rows.values() if row.passed and not names.isdisjoint(row.hits)]

        def cost(row: Covered) -> float:
            names = mutant.module in self.text(row.test.partition("::")[0])
            return (row.cpu + row.wall / 10) * (NEARBY if is_near(row) else 1) * (NEARBY if names else 1)

        cases: dict[str, int] = {}
        ranked = []
        for row in sorted(rows, key=cost):
            function = row.test.partition("[")[0]
            cases[function] = cases.get(function, 0) + 1
            ranked.append((cases[function], cost(row), row))
        return _within(seconds, [row for _, _, row in sorted(ranked, key=lambda one: one[:2])])


def _within(seconds: float, rows: Sequence[Covered]) -> list[str]:
    chosen: list[str] = []
    for row in rows:
        if row.cpu <= seconds or not chosen:
            seconds -= row.cpu
            chosen.append(row.test)
    return chosen


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:16]
