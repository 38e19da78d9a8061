"""Δ-causal broadcast among pedestrians: CPU per reception, compared with the bare loop in one run.

The scenario `pedestrians` with lifetime 20 min: five hours, about 1.5 million receptions, ordering and event
log on. Transfers in the order of reception, and in random order (which exercises waiting).

The bare loop is `heapq` with tuples and no callbacks, garbage collection off as in the world. It has as many
events as there are receptions (first copies; duplicates, summaries and contacts are not counted), at the very
times of these receptions, and its heap is as deep as our queue is at the beginning (`own_depth`: everybody's
coming and going, first birth and first contact). Our queue is fed the contacts one by one; a plain heapq
engine would hold them all (`depth`). The ratio to a bare loop with such a heap, which is more favourable, is
also reported.

Every figure is the least of some rounds in which all take turns; `built` says whether the engine was compiled.
Growth is the cost per reception in 5 hours over that in 1 hour: five parts of an hour each, and five runs of
the short scenario, each the least of the rounds, so that both sides are as long and as likely to be disturbed.

python -m benchmarks.epidemic --json           (--hours 1 for a short look)
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measuring import Tape, built
from precede.core.instants import HOUR
from precede.eventlog.sinks import NoSink, TableSink
from precede.experiments.run import Prepared, prepare
from precede.experiments.scenario import read_scenario


def prepared(hours: int, order: str, sink: NoSink | TableSink) -> Prepared:
    """Prepares the scenario: mobility and contacts are made outside the measured time."""
    settings = {"lifetime": "20min", "duration": f"{hours}h", "order": order, "gauges": "none"}
    return prepare(read_scenario("pedestrians", "delta_causal", 1, settings), sink)


def reception_times(hours: int) -> list[int]:
    """The instants of all receptions (the same for every order of transfer, since links take no time)."""
    sink = TableSink()
    ready = prepared(hours, "received", sink)
    ready.world.run(ready.end)
    ready.recorder.flush()
    events = sink.events()
    received = pc.equal(events["kind"].cast(pa.string()), "received")
    times: list[int] = events.filter(received)["at_us"].to_pylist()
    return times


def tape(times: list[int], depth: int) -> Tape:
    """A tape of these events at a given heap depth."""
    made = Tape()
    made.times.extend(times)
    made.counts.append(depth)
    made.counts.extend([1] * (len(times) - depth))
    made.counts.extend([0] * depth)
    return made


def timed_run(hours: int, order: str) -> list[float]:
    """CPU seconds of each hour of the run, log included, without garbage collection."""
    ready = prepared(hours, order, NoSink())
    gc.collect()
    gc.disable()  # a world does this itself, but only until it has run: the last rows come after that
    stamps = [time.process_time()]
    for hour in range(1, hours):
        ready.world.run(hour * HOUR)
        stamps.append(time.process_time())
    ready.world.run(ready.end)
    ready.recorder.flush()
    stamps.append(time.process_time())
    gc.enable()
    return [later - earlier for earlier, later in pairwise(stamps)]


def timed_bare(made: Tape) -> list[float]:
    gc.collect()
    gc.disable()
    began = time.process_time()
    made.bare_loop()
    took = time.process_time() - began
    gc.enable()
    return [took]


def timed_hours(hours: int) -> list[float]:
    """CPU seconds of a scenario of one hour, repeated."""
    return [timed_run(1, "received")[0] for _ in range(hours)]


def measure(hours: int, rounds: int) -> dict[str, float]:
    times = reception_times(hours)
    few = len(reception_times(1)) if hours > 1 else len(times)
    ready = prepared(hours, "received", NoSink())
    own_depth = len(ready.world.queue)
    contacts = len(ready.built.network.contact_list())  # type: ignore[attr-defined]
    depth = 2 * contacts + own_depth
    plain, shallow = tape(times, depth), tape(times, own_depth)
    results: dict[str, list[list[float]]] = {}
    for _ in range(rounds):
        for name, took in (
            ("bare", lambda: timed_bare(plain)),
            ("received", lambda: timed_run(hours, "received")),
            ("bare_own_depth", lambda: timed_bare(shallow)),
            ("random", lambda: timed_run(hours, "random")),
            ("single_hours", lambda: timed_hours(hours)),
        ):
            results.setdefault(name, []).append(took())
    best = {name: min(map(sum, parts)) for name, parts in results.items()}
    hourly = {name: sum(map(min, zip(*parts, strict=True))) for name, parts in results.items()}
    per = 1e6 / len(times)
    return {
        "hours": hours,
        "receptions": len(times),
        "depth": depth,
        "own_depth": own_depth,
        "us_per_event_bare": best["bare_own_depth"] * per,
        "us_per_reception_received": best["received"] * per,
        "us_per_reception_random": best["random"] * per,
        "ratio_received": best["received"] / best["bare_own_depth"],
        "ratio_random": best["random"] / best["bare_own_depth"],
        "ratio_received_contacts_in_heap": best["received"] / best["bare"],
        "ratio_random_contacts_in_heap": best["random"] / best["bare"],
        "us_per_reception_single_hours": best["single_hours"] * 1e6 / (few * hours),
        "ratio_growth": hourly["received"] * per / (hourly["single_hours"] * 1e6 / (few * hours)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one object on one line")
    parser.add_argument("--hours", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    results = measure(options.hours, options.rounds)
    if options.json:
        print(json.dumps({"built": built(), **{name: round(value, 4) for name, value in results.items()}}))
    else:
        for name, value in results.items():
            print(f"{name:28} {value:.3f}")


if __name__ == "__main__":
    main()
