"""The benchmarks of the engine run: a small size of each, without a limit on time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import gate

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["benchmarks.engine", "--nodes", "16", "--interpreted"],
        ["benchmarks.vcube", "--nodes", "16", "--fewer", "8", "--rounds", "1"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_benchmark_prints_its_ratios(arguments: list[str]) -> None:
    if arguments[0] == "benchmarks.engine":
        pytest.importorskip("simpy", reason="compares with SimPy, which is not installed")
    command = [sys.executable, "-m", *arguments, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert all(value > 0 for name, value in result.items() if name.startswith("ratio"))
    assert any(name.startswith("ratio") for name in result)


def test_the_gate_fails_on_three_percent_more_instructions(capsys: pytest.CaptureFixture[str]) -> None:
    assert gate.compare({"flood": 1_029}, {"flood": 1_000}) == 0
    assert gate.compare({"flood": 1_031, "switched": 1}, {"flood": 1_000, "switched": 1}) == 1
    assert "too many" in capsys.readouterr().out


def test_figures_of_another_interpreter_are_not_compared() -> None:
    assert "CPython 2.7" in gate.not_comparable("compiled CPython 2.7")
