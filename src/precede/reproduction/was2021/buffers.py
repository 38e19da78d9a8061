"""Figures 9 and 10 of was2021: the messages that stations buffer, without and with failing hosts.

python -m precede.reproduction.was2021.buffers buffers --seed 1
python -m precede.reproduction.was2021.buffers failures --duration 300
python -m precede.reproduction.was2021.buffers buffers --rate 60 --duration 20
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from precede.core.instants import SECOND
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.reproduction.units import ENGINE
from precede.witness.verify import verify

STATIONS: Final = 10
_SETTLING: Final = 10
"""Seconds after a restart that still belong to the failure when the usual state is measured."""
RATES: Final = {"buffers": 35.0, "failures": 15.0}


class Failure(NamedTuple):
    """A host that fails for a while, in seconds of the run."""

    host: str
    begins: int
    ends: int


def failures(duration: int) -> list[Failure]:
    """Return the failures of section 5.3 that end before the run does."""
    planned = [Failure(f"h{7 * number}", 10 + 30 * number, 15 + 32 * number) for number in range(9)]
    return [failure for failure in planned if failure.ends < duration]


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
        {"node": failure.host, "at": f"{failure.begins}s", "restart": f"{failure.ends}s", "keep": True}
        for failure in (failures(duration) if experiment == "failures" else ())
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
    verdict = verify(sink.events(), "causal", engine=ENGINE)
    sizes = np.array([sizes for sizes in buffer_sizes(sink.gauges()).values() if len(sizes) == STATIONS])
    ordered = np.sort(sizes, axis=1)
    silent = max((failure.ends - failure.begins for failure in failures(duration)), default=0)
    most, rest = ordered[:, -1], ordered[:, :-1]
    mean = rest.mean(axis=1)
    busy = (np.arange(len(sizes)) >= 5) & (mean > 0)
    more = measure_failures(sink.events(), sizes, failures(duration)) if experiment == "failures" else {}
    columns = {"fullest": most, "mean_of_others": mean, "deviation_of_others": rest.std(axis=1)}
    return {
        **more,
        "series": {"stations": _series(columns)},
        "sbuffer_deviation_over_20_percent": float(100 * (rest.std(axis=1)[busy] > 20).mean()),
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


def _series(columns: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return the columns of Figures 9 and 10, with the second of each row."""
    rounded = {name: [round(float(value), 2) for value in values] for name, values in columns.items()}
    return {"at_s": [float(second) for second in range(len(columns["fullest"]))], **rounded}


def measure_failures(log: pa.Table, sizes: Any, crashes: Sequence[Failure]) -> dict[str, float]:
    """Measure Figure 10: how soon a host has all messages again, and what its failure does to other stations.

    `sizes` has a row for each second and a column for each station. The fullest station is left out of `rest`.
    """
    second = np.arange(len(sizes))
    during = [(second >= crash.begins) & (second <= crash.ends) for crash in crashes]
    settling = [(second >= crash.begins) & (second <= crash.ends + _SETTLING) for crash in crashes]
    outside = (second >= 5) & ~np.any(settling, axis=0)
    ordered = np.sort(sizes, axis=1)
    rest = ordered[:, :-1].mean(axis=1)
    usual = max(float(rest[outside].mean()), 1e-9)
    recoveries = [recovery_s(log, crash) for crash in crashes]
    last = sizes[settling[-1]].mean(axis=0) > 2 * np.maximum(sizes[outside].mean(axis=0), 1.0)
    measures = {
        "recovery_s_most_but_last": max(recoveries[:-1], default=0.0),
        "recovery_s_last": recoveries[-1],
        "sbuffer_rest_first_failures_over_outside": float(rest[np.any(during[:-1], axis=0)].mean() / usual),
        "sbuffer_rest_last_failure_over_outside": float(rest[during[-1]].mean() / usual),
        "stations_degraded_last": float(max(int(last.sum()) - 1, 0)),
    }
    deviation, most = ordered[:, :-1].std(axis=1), ordered[:, -1]
    for name, chosen in (("below_150", (second >= 5) & (most < 150)), ("above_200", most > 200)):
        if chosen.any():
            measures[f"sbuffer_deviation_{name}"] = float(deviation[chosen].mean())
    return measures


def recovery_s(log: pa.Table, crash: Failure) -> float:
    """Return the seconds from a host's restart until it has delivered what was broadcast while it was down."""
    begins, ends = crash.begins * SECOND, crash.ends * SECOND
    kind, at = log["kind"].cast(pa.string()), log["at_us"]
    born = pc.and_(pc.equal(kind, "broadcast"), pc.and_(pc.greater(at, begins), pc.less(at, ends)))
    own = pc.and_(pc.equal(kind, "delivered"), pc.equal(log["node"].cast(pa.string()), crash.host))
    names = ("message_source", "message_number")
    missed = set(zip(*(log.filter(born)[name].to_pylist() for name in names), strict=True))
    delivered = log.filter(pc.and_(own, pc.greater_equal(at, ends)))
    rows = zip(*(delivered[name].to_pylist() for name in (*names, "at_us")), strict=True)
    instants = {(source, number): instant for source, number, instant in rows}
    never = int(pc.max(at).as_py())
    return max((instants.get(message, never) - ends for message in missed), default=0) / SECOND


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
    results = measure(options.experiment, options.seed, options.duration, rate=options.rate)
    print(json.dumps({name: value for name, value in results.items() if name != "series"}))


if __name__ == "__main__":
    main()
