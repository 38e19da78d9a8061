"""Which tests run a line: one run of the quick tests under `coverage`, which notes the test of each line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import coverage
import msgspec

SETTINGS = """[run]
source = precede
dynamic_context = test_function
data_file = {data}
"""


class Map(msgspec.Struct):
    """Tests by file and line, and the seconds that each test took. A test is `tests/…/test_x.py::test_y`."""

    tests: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    def tests_of(self, file: str, line: int, most_seconds: float) -> list[str]:
        """Return the tests that run a line, quick ones and those of few lines first, up to a time in all."""
        named = sorted(self.tests.get(file, {}).get(line, ()), key=lambda test: self.seconds.get(test, 1.0))
        chosen: list[str] = []
        left = most_seconds
        for test in named:
            left -= self.seconds.get(test, 1.0)
            if left < 0 and chosen:
                break
            chosen.append(test)
        return chosen


def make_map(root: Path, folder: Path, tests: Sequence[str]) -> Map:
    """Run the quick tests under `coverage` and return the map. It is kept in `folder` for the next run."""
    kept = folder / "map.json"
    if kept.exists():
        return msgspec.json.decode(kept.read_bytes(), type=Map)
    folder.mkdir(parents=True, exist_ok=True)
    data, settings = folder / "coverage.sqlite", folder / "coverage.ini"
    settings.write_text(SETTINGS.format(data=data))
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", "-q"]
    command += [
        "-m",
        "not long and not spark",
        "-p",
        "no:cacheprovider",
        "--durations=0",
        "--durations-min=0.01",
    ]
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "NUMBA_DISABLE_JIT": "0"}
    result = subprocess.run(
        [*command, *tests], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    (folder / "tests.txt").write_text(result.stdout + result.stderr)
    if result.returncode not in (0, 1):
        raise SystemExit(f"the tests did not run: see {folder / 'tests.txt'}")
    found = Map(_read(root, data), _seconds(result.stdout))
    kept.write_bytes(msgspec.json.encode(found))
    return found


def _read(root: Path, data: Path) -> dict[str, dict[int, list[str]]]:
    """Return the tests of each line. A context is a name with dots: package, module, test."""
    measured = coverage.CoverageData(str(data))
    measured.read()
    tests: dict[str, dict[int, list[str]]] = {}
    for name in sorted(measured.measured_files()):
        lines = measured.contexts_by_lineno(name)
        file = Path(name).relative_to(root).as_posix()
        tests[file] = {
            line: sorted({test for context in contexts if (test := _test(root, context))})
            for line, contexts in lines.items()
        }
    return tests


def _test(root: Path, context: str) -> str | None:
    """Return the test that a context names; None for what runs outside of tests."""
    parts = context.split(".")
    for count in range(len(parts) - 1, 0, -1):
        file = "/".join(parts[:count]) + ".py"
        if (root / file).exists():
            return "::".join([file, *parts[count:]])
    return None


def _seconds(printed: str) -> dict[str, float]:
    """Return the time of each test function, its parameters added up, from what pytest prints."""
    seconds: dict[str, float] = {}
    for line in printed.splitlines():
        match = re.match(r"\s*([\d.]+)s (?:call|setup)\s+(\S+)", line)
        if match:
            test = match[2].partition("[")[0]
            seconds[test] = seconds.get(test, 0.0) + float(match[1])
    return seconds
