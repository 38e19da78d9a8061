"""The measuring method of all benchmarks: CPU seconds, interleaved rounds, the minimum of each contender.

Machines are noisy, so speeds are stated as ratios between things measured in the same process and run.
"""

from __future__ import annotations

import gc
import heapq
import json
import time
from array import array
from collections.abc import Callable, Mapping, Sequence

import precede.sim.fast_path
from precede.core.compiling import is_compiled


def interleaved(contenders: Mapping[str, Callable[[], object]], rounds: int = 3) -> dict[str, float]:
    """The least CPU time of each contender over several rounds, taking turns, with garbage collection off."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, run in contenders.items():
            took = timed(run)
            best[name] = min(took, best.get(name, took))
    return best


def timed(run: Callable[[], object]) -> float:
    """The CPU seconds of one call, with garbage collection off."""
    gc.collect()
    gc.disable()
    began = time.process_time()
    run()
    took = time.process_time() - began
    gc.enable()
    return took


def built() -> str:
    """`compiled` or `plain`: how the engine runs here."""
    return "compiled" if is_compiled(precede.sim.fast_path) else "plain"


def show(table: Sequence[str], result: Mapping[str, object], as_json: bool) -> None:
    """Print a table and figures: as lines, or as one object on one line."""
    if as_json:
        print(json.dumps({"table": "\n".join(table), **result}))
    else:
        print("\n".join([*table, *(f"{name}: {value}" for name, value in result.items())]))


class Tape:
    """The event times of a run, in order, for the bare loop to replay."""

    def __init__(self) -> None:
        self.times = array("q")
        self.counts = array("q")

    def bare_loop(self) -> int:
        """Runs a plain heapq loop with tuples over the same times, no callbacks; returns its greatest depth."""
        times, counts = self.times, self.counts
        heap: list[tuple[int, int, None, None]] = []
        push, pop = heapq.heappush, heapq.heappop
        place = deepest = 0
        for count in counts:
            if heap:
                pop(heap)
            for _ in range(count):
                push(heap, (times[place], place, None, None))
                place += 1
            deepest = max(deepest, len(heap))
        return deepest


def steady_tape(events: int, depth: int) -> Tape:
    """A tape of so many events at a steady heap depth, where a run's own times cannot be recorded."""
    tape = Tape()
    random = _lehmer(20_261_115)
    now = 0
    tape.counts.append(depth)
    for _ in range(depth):
        tape.times.append(next(random) % 1_000_000)
    for _ in range(events - depth):
        now += 1_000_000 // depth
        tape.counts.append(1)
        tape.times.append(now + next(random) % 2_000_000)
    tape.counts.extend([0] * (depth - 1))
    return tape


def _lehmer(state: int) -> object:
    while True:
        state = state * 48_271 % 2_147_483_647
        yield state
