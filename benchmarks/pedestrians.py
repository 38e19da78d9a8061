"""The whole command `precede simulate` on a five-hour pedestrian world: what a user waits for.

Each run is a process of its own: it reads contacts, stays and messages from CSV files, simulates `delta_causal`
over `epidemic`, samples gauges, writes the event log and measures it. Runs at two lifetimes (5 and 20 min)
give a fixed cost and the cost of each further reception (the slope between the two). `bare_us` is one event of
a bare `heapq` loop, pop and push, 4,000 deep, in the same run. CPU seconds of each process, the least of some
rounds in which all take turns.

The variants take the ways through the code that the default does not: `random` sends the messages of a contact
in random order; `timed` has links of 1 MB/s, so that messages go one by one; `mixed` draws the lifetime of each
message; `evicting` has caches of 60 messages, so that messages wait for predecessors that were evicted. These
caches give both lifetimes nearly as many receptions, so its runs differ in the messages instead: an eighth of
them, and all, both with the longer lifetime.

python -m benchmarks.pedestrians --json
python -m benchmarks.pedestrians --one FOLDER      (a built copy of The ONE, on the same contacts and messages)
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from benchmarks.measuring import built, steady_tape
from benchmarks.the_one import run_the_one, write_the_one
from precede.core.instants import MINUTE, SECOND
from precede.experiments.run import build_world
from precede.experiments.scenario import read_scenario
from precede.traces.writers import seconds_text

SHORT_MIN: Final = 5
LONG_MIN: Final = 20
DEPTH: Final = 4_000
BARE_EVENTS: Final = 500_000
PAYLOAD_BYTES: Final = 1_000
FIRST: Final = 20 * SECOND
EVERY: Final = MINUTE
FEW: Final = 8
"""The short run of `evicting` has every eighth message."""

SCENARIO: Final = """
[world]
kind = "contacts"
contacts = "contacts.csv"
nodes = "nodes.csv"
[workload]
{workload}
[run]
protocol = "delta_causal"
seed = 1
"""
SCRIPTED: Final = 'messages = "{name}.csv"'
DRAWN: Final = 'every = "1min"\nfirst = "20s"\nsize = 1000\nlifetime = "uniform({least}, {most})"'
VARIANTS: Final[Mapping[str, Sequence[str]]] = {
    "received": (),
    "random": ("order=random",),
    "timed": ("bandwidth=1e6",),
    "evicting": ("cache=60",),
    "mixed": (),
}


class Spent(NamedTuple):
    """What one process took, and the measures it printed."""

    cpu_s: float
    peak_bytes: int
    measures: Mapping[str, float]


def write_world(folder: Path, seed: int = 1) -> None:
    """Write a pedestrian world as files: contacts, stays, messages, a scenario for each lifetime and kind."""
    world = build_world(read_scenario("pedestrians", "delta_causal", seed, {}))
    names = world.names
    with (folder / "contacts.csv").open("w") as out:
        print("a,b,start,end", file=out)
        for a, b, start, end in world.network.contact_list():  # type: ignore[attr-defined]
            print(f"{names[a]},{names[b]},{seconds_text(start)},{seconds_text(end)}", file=out)
    births = []
    with (folder / "nodes.csv").open("w") as out:
        print("node,enter,leave", file=out)
        for stay in world.presence:
            assert stay.leave is not None
            print(f"{names[stay.node]},{seconds_text(stay.enter)},{seconds_text(stay.leave)}", file=out)
            births += [(at, names[stay.node]) for at in range(stay.enter + FIRST, stay.leave, EVERY)]
    lines = [
        f"m{number},{name},{seconds_text(at)},{PAYLOAD_BYTES}\n"
        for number, (at, name) in enumerate(sorted(births))
    ]
    for name, chosen in (("messages", lines), ("few-messages", lines[::FEW])):
        (folder / f"{name}.csv").write_text("id,src,time,size\n" + "".join(chosen))
        (folder / f"{name}.toml").write_text(SCENARIO.format(workload=SCRIPTED.format(name=name)))
    for minutes in (SHORT_MIN, LONG_MIN):
        drawn = DRAWN.format(least=minutes * 12, most=minutes * 108)
        (folder / f"mixed-{minutes}.toml").write_text(SCENARIO.format(workload=drawn))


def simulate(folder: Path, variant: str, minutes: int) -> Spent:
    """Run the command on the short (`SHORT_MIN`) or long run of one variant, in a process of its own."""
    scenario, lifetime = "messages", minutes
    if variant == "mixed":
        scenario = f"mixed-{minutes}"
    elif variant == "evicting":
        scenario, lifetime = "few-messages" if minutes == SHORT_MIN else "messages", LONG_MIN
    settings = (f"lifetime={lifetime}min", *VARIANTS[variant])
    command = [sys.executable, "-m", "precede", "simulate", str(folder / f"{scenario}.toml"), "--json"]
    command += ["--out", str(folder / "out"), *(part for one in settings for part in ("--set", one))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {process.returncode}")
    return Spent(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, json.loads(printed))


def bare_event_us() -> float:
    """CPU microseconds of one event of a bare heapq loop."""
    tape = steady_tape(BARE_EVENTS, DEPTH)
    began = time.process_time()
    tape.bare_loop()
    return (time.process_time() - began) / BARE_EVENTS * 1e6


def measure(folder: Path, variants: Sequence[str], rounds: int) -> dict[str, float]:
    """Take turns with the short and long runs of all variants; return their costs by name."""
    spent: dict[tuple[str, int], list[Spent]] = {}
    bare = []
    for _ in range(rounds):
        bare.append(bare_event_us())
        for variant in variants:
            for minutes in (SHORT_MIN, LONG_MIN):
                spent.setdefault((variant, minutes), []).append(simulate(folder, variant, minutes))
    results = {"nodes": spent[variants[0], SHORT_MIN][0].measures["nodes"], "bare_us": min(bare)}
    for variant in variants:
        short, long = (min(spent[variant, minutes]) for minutes in (SHORT_MIN, LONG_MIN))
        few, many = short.measures["receptions"], long.measures["receptions"]
        marginal_us = (long.cpu_s - short.cpu_s) / (many - few) * 1e6
        results |= {
            f"{variant}_receptions_short": few,
            f"{variant}_receptions_long": many,
            f"{variant}_cpu_s_short": short.cpu_s,
            f"{variant}_cpu_s_long": long.cpu_s,
            f"{variant}_fixed_s": short.cpu_s - few * marginal_us / 1e6,
            f"{variant}_marginal_us": marginal_us,
            f"ratio_{variant}_marginal": marginal_us / min(bare),
            f"{variant}_peak_mb_long": long.peak_bytes / 1e6,
        }
    return results


def compare(folder: Path, the_one: Path, results: Mapping[str, float]) -> dict[str, float]:
    """Run The ONE at both lifetimes, and set what one of its relays takes beside one of our receptions."""
    write_the_one(folder)
    short, long = (run_the_one(the_one, folder, minutes) for minutes in (SHORT_MIN, LONG_MIN))
    marginal_us = (long.cpu_s - short.cpu_s) / (long.relayed - short.relayed) * 1e6
    compared = {"the_one_marginal_us": marginal_us}
    compared["ratio_the_one_marginal"] = marginal_us / results["received_marginal_us"]
    for name, theirs in (("short", short), ("long", long)):
        each_us = theirs.cpu_s / theirs.relayed * 1e6
        ours_us = results[f"received_cpu_s_{name}"] / results[f"received_receptions_{name}"] * 1e6
        compared |= {
            f"the_one_relayed_{name}": theirs.relayed,
            f"the_one_cpu_s_{name}": theirs.cpu_s,
            f"the_one_us_per_relay_{name}": each_us,
            f"ratio_the_one_whole_{name}": each_us / ours_us,
        }
    return compared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one object on one line")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--variant", action="append", choices=list(VARIANTS), help="only this one; may be repeated"
    )
    parser.add_argument("--one", type=Path, metavar="FOLDER", help="a built copy of The ONE to run beside ours")
    given = parser.parse_args()
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_world(folder)
        results = measure(folder, given.variant or list(VARIANTS), given.rounds)
        if given.one is not None:
            results |= compare(folder, given.one, results)
    if given.json:
        print(json.dumps({"built": built(), **{name: round(value, 4) for name, value in results.items()}}))
    else:
        for name, value in results.items():
            print(f"{name:32} {value:,.3f}")


if __name__ == "__main__":
    main()
