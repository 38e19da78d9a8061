"""Figures 9 and 10 of was2021: the messages that stations buffer, without and with failing hosts.

python -m precede.reproduction.was2021.buffers buffers --seed 1
python -m precede.reproduction.was2021.buffers failures --duration 300
python -m precede.reproduction.was2021.buffers buffers --rate 60 --duration 20
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.witness.verify import verify

STATIONS: Final = 10
RATES: Final = {"buffers": 35.0, "failures": 15.0}


def describe(
    experiment: str,
    seed: int,
    duration: int,
    hosts: int = 200,
    rate: float = 0.0,
    options: Mapping[str, str] | None = None,
) -> Run:
    """Describe a run of section 5.2 (`buffers`) or 5.3 (`failures`): 1 Mb/s on the air, 20 hosts a cell."""
    gap = hosts / (rate or RATES[experiment])
    crashes = [
        {
            "node": f"h{7 * number}",
            "at": f"{10 + 30 * number}s",
            "restart": f"{15 + 32 * number}s",
            "keep": True,
        }
        for number in range(9)
        if experiment == "failures" and 15 + 32 * number < duration
    ]
    return Run(
        world={
            "kind": "cellular",
            "stations": STATIONS,
            "hosts": hosts,
            "bitrate": 1e6,
            "duration": f"{duration}s",
        },
        workload={"every": f"exponential({gap})", "first": f"exponential({gap})", "until": f"{duration}s"},
        faults={"crashes": crashes},
        protocol="was",
        options={"durable": experiment == "failures", "stations": STATIONS, **(options or {})},
        seed=seed,
        end=f"{duration}s",
        gauges="1s",
        log="messages",
    )


def measure(
    experiment: str,
    seed: int,
    duration: int,
    hosts: int = 200,
    rate: float = 0.0,
    options: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Carry out and verify one run, and measure its stations' buffers second by second.

    As in the paper, `max` is the fullest station, which mean and deviation leave out.
    """
    sink = TableSink()
    outcome = carry_out(describe(experiment, seed, duration, hosts, rate, options), sink)
    verdict = verify(sink.events(), "causal")
    sizes = np.array([sizes for sizes in buffer_sizes(sink.gauges()).values() if len(sizes) == STATIONS])
    ordered = np.sort(sizes, axis=1)
    silent = max((2 * number + 5 for number in range(9) if 15 + 32 * number < duration), default=0)
    most, rest = ordered[:, -1], ordered[:, :-1]
    mean = rest.mean(axis=1)
    busy = (np.arange(len(sizes)) >= 5) & (mean > 0)
    return {
        "experiment": experiment,
        "seed": seed,
        "duration_s": duration,
        "cpu_s": round(outcome.cpu_s, 1),
        "sbuffer_max_mean": float(most[busy].mean()),
        "sbuffer_max_most": int(most[busy].max()),
        "sbuffer_mean": float(mean[busy].mean()),
        "sbuffer_saving_percent_mean": float(100 * (1 - (mean[busy] / most[busy]).mean())),
        "sbuffer_max_over_mean_most": float((most[busy] / mean[busy]).max()),
        "sbuffer_most_over_broadcast_in_failure": float(most[busy].max() / (RATES[experiment] * (silent or 1))),
        "sbuffer_deviation_median": float(np.median(rest.std(axis=1)[busy])),
        "violations": verdict.violations + (verdict.verdict != "holds"),
        "counters": outcome.counters,
    }


def buffer_sizes(gauges: pa.Table) -> dict[int, list[int]]:
    """Return the sizes of all stations' message buffers (SBuffer), by the instant of the sample."""
    samples: dict[int, list[int]] = {}
    for row in gauges.select(["node", "at_us", "name", "value"]).to_pylist():
        if row["name"] == "sbuffer" and row["node"].startswith("s"):
            samples.setdefault(row["at_us"], []).append(row["value"])
    return samples


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=tuple(RATES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--duration", type=int, default=300)
    parser.add_argument("--rate", type=float, default=0.0, help="messages a second; default the paper's")
    options = parser.parse_args(arguments)
    print(json.dumps(measure(options.experiment, options.seed, options.duration, rate=options.rate)))


if __name__ == "__main__":
    main()
