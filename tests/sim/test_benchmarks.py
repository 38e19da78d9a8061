"""The benchmarks of the engine still run: small, for what they do and not for how fast."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "asked",
    [
        ["benchmarks.engine", "--nodes", "16"],
        ["benchmarks.vcube", "--nodes", "16", "--fewer", "8", "--rounds", "1"],
    ],
    ids=lambda asked: asked[0],
)
def test_a_benchmark_of_the_engine_gives_its_ratios(asked: list[str]) -> None:
    if asked[0] == "benchmarks.engine":
        pytest.importorskip("simpy", reason="compares with SimPy, which is not installed")
    command = [sys.executable, "-m", *asked, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert all(value > 0 for name, value in found.items() if name.startswith("ratio"))
    assert any(name.startswith("ratio") for name in found)
