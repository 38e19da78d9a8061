"""Which tests run a line: one run of the quick tests under `coverage`, which notes the test of each line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import coverage
import msgspec

SETTINGS = """[run]
source = {source}
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


def make_map(root: Path, folder: Path, parts: Mapping[str, Sequence[str]]) -> Map:
    """Run the quick tests of each part under `coverage` in a project without compiled modules.

    The map of a part is kept in `folder`: a run that was stopped repeats only the part it was in. A test
    that fails without any fault is in no map.
    """
    whole = Map({}, {})
    for name, tests in parts.items():
        kept = folder / f"map-{name}.json"
        if not kept.exists():
            kept.write_bytes(msgspec.json.encode(_map_of(root, folder, name, tests)))
        part = msgspec.json.decode(kept.read_bytes(), type=Map)
        whole.seconds |= part.seconds
        for file, lines in part.tests.items():
            for line, named in lines.items():
                whole.tests.setdefault(file, {}).setdefault(line, []).extend(named)
    return whole


def _map_of(root: Path, folder: Path, name: str, tests: Sequence[str]) -> Map:
    data, settings = folder / f"coverage-{name}.sqlite", folder / f"coverage-{name}.ini"
    settings.write_text(SETTINGS.format(source=root / "src/precede", data=data))
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", "-q"]
    command += ["-m", "not long and not spark and not slow", "-p", "no:cacheprovider"]
    command += ["--durations=0", "--durations-min=0.005", *tests]
    environment = os.environ | {"PYTHONPATH": str(root / "src")}
    result = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    printed = folder / f"tests-{name}.txt"
    printed.write_text(result.stdout + result.stderr)
    if result.returncode not in (0, 1):
        raise SystemExit(f"the tests did not run: see {printed}")
    return read_map(root, data, result.stdout)


def read_map(root: Path, data: Path, printed: str) -> Map:
    """Return the map from the data of `coverage` and from what pytest printed."""
    failed = {
        line.split()[1].partition("[")[0]
        for line in printed.splitlines()
        if line.startswith(("FAILED", "ERROR "))
    }
    return Map(_read(root, data, failed), _seconds(printed))


def _read(root: Path, data: Path, failed: Collection[str]) -> dict[str, dict[int, list[str]]]:
    """Return the tests of each line. A context is a name with dots: package, module, test."""
    measured = coverage.CoverageData(str(data))
    measured.read()
    tests: dict[str, dict[int, list[str]]] = {}
    for name in sorted(measured.measured_files()):
        lines = measured.contexts_by_lineno(name)
        file = Path(name).relative_to(root).as_posix()
        tests[file] = {
            line: sorted(
                {test for context in contexts if (test := _test(root, context)) and test not in failed}
            )
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
