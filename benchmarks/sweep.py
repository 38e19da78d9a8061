"""The overhead of Spark over plain simulations: `python -m benchmarks.sweep [--json] [--runs N] [--until S]`.

A sweep of runs of at least two CPU seconds each on two cores, against the CPU seconds of the simulations alone
(each run reports its own) spread evenly over two cores. Session start is not counted; nothing else is left out.
The same sweep with verdicts and measures, started again, simulates nothing and verifies the stored files; this
cost is reported separately. Wall time is comparable on a quiet machine only. The `cpu` ratios count all
processes, Java included, and are comparable on a busy machine too. The time for which workers were ready to run
while another process had their core is summed over both.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.family import Watched, java_cpu_s, waited_s
from precede.experiments.grid import Grid, read_grid
from precede.lake.layout import Lake
from precede.pipeline.sessions.session import open_session
from precede.pipeline.sweeps.marks import SweepOptions
from precede.pipeline.sweeps.sweep import sweep

CORES = 2
SCENARIO = """
[world]
kind = "point_to_point"
nodes = 24
delay = "exponential(0.05)"
[workload]
poisson = "200ms"
until = "{until}s"
[run]
protocol = "vector_clock"
end = "{end}s"
"""
SPEC = '[sweep]\nname = "{name}"\nscenario = "office.toml"\nprotocol = "vector_clock"\nseeds = "{seeds}"\n'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--until", type=int, default=40, help="simulated seconds: over 2 s of CPU for 40")
    parser.add_argument("--rounds", type=int, default=1, help="the one with the least wall counts")
    options = parser.parse_args()
    results = run(options.runs, options.until, options.rounds)
    print(json.dumps(results, indent=2) if options.json else "\n".join(f"{k}: {v}" for k, v in results.items()))


def run(runs: int, until: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, open_session(f"local[{CORES},4]", light=True) as session:
        (Path(folder) / "office.toml").write_text(SCENARIO.format(until=until, end=until + 60))
        warm = grid(Path(folder), "warm", f"{runs + 1}-{runs + CORES}")
        sweep(Lake(Path(folder) / "warm"), warm, session)
        whole = grid(Path(folder), "whole", f"1-{runs}")
        lakes = [Lake(Path(folder) / f"round{number}") for number in range(rounds)]
        nothing = SweepOptions(verdicts=False, measures=False)
        bare = min(
            (measured(lake, whole, session, nothing) for lake in lakes), key=lambda one: one["ratio_wall"]
        )
        judged = measured(lakes[0], whole, session, SweepOptions())
    return {
        "runs": runs,
        "cores": CORES,
        **{f"{key}_bare": value for key, value in bare.items()},
        **{f"{key}_judging": judged[key] for key in ("cpu_s", "wall_s", "peak_gib")},
        "ratio_wall_to_ideal": bare["ratio_wall"],
        "ratio_cpu_to_simulation": bare["ratio_cpu"],
        "ratio_cpu_of_verdicts_and_measures_to_simulation": judged["ratio_cpu"],
    }


def grid(folder: Path, name: str, seeds: str) -> Grid:
    path = folder / f"{name}.toml"
    path.write_text(SPEC.format(name=name, seeds=seeds))
    return read_grid(path)


def measured(lake: Lake, whole: Grid, session: Any, options: SweepOptions) -> dict[str, Any]:
    java, waited = java_cpu_s(), waited_s()
    with Watched() as watched:
        summary = sweep(lake, whole, session, options)
    java, waited = java_cpu_s() - java, waited_s() - waited
    assert summary.failed == 0, summary.first_failure
    assert not summary.broken_promises, summary.broken_promises
    return {
        "simulation_cpu_s": round(summary.cpu_s, 2),
        "simulation_cpu_s_per_run": round(summary.cpu_s / summary.runs, 2),
        "cpu_s": round(watched.cpu_s, 2),
        "java_cpu_s": round(java, 2),
        "wall_s": round(watched.wall_s, 2),
        "waited_for_a_core_s": round(waited, 2),
        "rows": summary.rows,
        "peak_gib": round(watched.peak_bytes / 2**30, 2),
        "ratio_wall": round(watched.wall_s / (summary.cpu_s / CORES), 3),
        "ratio_cpu": round(watched.cpu_s / summary.cpu_s, 3),
    }


if __name__ == "__main__":
    main()
