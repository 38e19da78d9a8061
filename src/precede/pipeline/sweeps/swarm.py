"""The swarm on Spark: random worlds as tasks; every failing seed comes back with its failure.

A world is determined by its seed, so a task receives numbers and draws its worlds itself. Tasks run in rounds:
failing worlds are reported while others still run, and 100,000 worlds need no more memory than a hundred.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from precede.experiments.swarm.swarm import WorldResult, run_seed
from precede.pipeline.sessions.tasks import spread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORLDS_A_TASK: Final = 40
"""How many worlds one task runs, which takes some seconds."""

_TASKS_A_ROUND: Final = 256


def swarm_results(session: SparkSession | None, work: Sequence[tuple[str, int]]) -> Iterator[WorldResult]:
    """Run the world of every (protocol, seed) and yield the results in the same order."""
    tasks = 1 if session is None else _TASKS_A_ROUND
    size = max(1, min(WORLDS_A_TASK, len(work) // tasks))
    in_a_round = size * tasks
    for begin in range(0, len(work), in_a_round):
        worlds = _Worlds(work[begin : begin + in_a_round], size)
        what = f"swarm: worlds {begin + 1:,} to {begin + len(worlds.work):,} of {len(work):,}"
        for results in spread(session, what, worlds, worlds.count()):
            yield from (msgspec.convert(result, WorldResult) for result in results)


class _Worlds:
    """Runs worlds, `size` of them in each task, and returns their results as plain data."""

    def __init__(self, work: Sequence[tuple[str, int]], size: int) -> None:
        self.work, self.size = list(work), size

    def count(self) -> int:
        return -(-len(self.work) // self.size)

    def __call__(self, number: int) -> list[Any]:
        share = self.work[number * self.size : (number + 1) * self.size]
        return [msgspec.to_builtins(run_seed(protocol, seed)) for protocol, seed in share]
