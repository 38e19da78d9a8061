"""Memory of a run does not grow with the number of events."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import resource, sys
from pathlib import Path
from precede.experiments.run import carry_out_into
from precede.experiments.scenario import read_scenario
settings = {"until": sys.argv[1], "poisson": "100ms", "replies": "0"}
run = read_scenario("small-office", "vector_clock", 1, settings)
outcome = carry_out_into(run, Path(sys.argv[2]))
print(outcome.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def rows_and_peak(until: str, folder: Path) -> tuple[int, int]:
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, until, str(folder)],
        env={**os.environ, "PYTHONPATH": source},
        check=True,
        capture_output=True,
        text=True,
    )
    rows, peak = done.stdout.split()
    return int(rows), int(peak)


@pytest.mark.slow
def test_ten_times_the_events_need_no_more_memory(tmp_path: Path) -> None:
    few, small = rows_and_peak("20s", tmp_path / "few")
    many, large = rows_and_peak("200s", tmp_path / "many")
    assert many > 8 * few > 50_000
    assert large <= 1.2 * small, (small, large)
