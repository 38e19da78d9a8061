"""The swarm: worlds per CPU second of each protocol, on one core. `python -m benchmarks.swarm --json`

A world is drawn from its seed, run with its faults, and judged, as `precede swarm` does. Loading modules is not
counted: each protocol runs `--warm` worlds before its time is taken.
"""

from __future__ import annotations

import argparse
import time

from benchmarks.measuring import built, show
from precede.experiments.swarm.plan import DRAWERS, FURTHER_FROM
from precede.experiments.swarm.swarm import run_seed


def milliseconds(protocol: str, worlds: int, warm: int) -> float:
    """CPU milliseconds per world: the mean over `worlds` seeds, which the next commit also draws."""
    first = FURTHER_FROM
    for seed in range(first, first + warm):
        run_seed(protocol, seed)
    began = time.process_time()
    for seed in range(first + warm, first + warm + worlds):
        run_seed(protocol, seed)
    return (time.process_time() - began) * 1000 / worlds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one object on one line")
    parser.add_argument("--protocol", action="append", help="only this one; may be repeated")
    parser.add_argument("--worlds", type=int, default=20, help="worlds per protocol (default 20)")
    parser.add_argument("--warm", type=int, default=10, help="worlds before the time is taken (default 10)")
    options = parser.parse_args()
    took = {
        name: milliseconds(name, options.worlds, options.warm) for name in options.protocol or list(DRAWERS)
    }
    lines = ["| protocol | worlds per CPU second | ms per world |", "| --- | ---: | ---: |"]
    lines += [f"| {name} | {1000 / ms:.1f} | {ms:.1f} |" for name, ms in took.items()]
    result = {
        "built": built(),
        "worlds": options.worlds,
        "worlds_per_cpu_second": round(1000 * len(took) / sum(took.values()), 1),
    }
    show(lines, result, options.json)


if __name__ == "__main__":
    main()
