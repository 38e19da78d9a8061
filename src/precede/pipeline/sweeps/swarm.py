"""The swarm on Spark: worlds spread over tasks, every failing seed brought back with what it showed.

A world is a seed, so a task is told numbers and draws its worlds itself. Tasks go out in rounds, so that
failing worlds are shown while others still run, and 100,000 worlds need no more memory than a hundred.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from precede.experiments.swarm.swarm import WorldResult, run_seed
from precede.pipeline.sessions.tasks import cores, spread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORLDS_A_TASK: Final = 40
"""Some seconds of work for a task."""

_TASKS_A_ROUND: Final = 16


def swarm_results(session: SparkSession | None, work: Sequence[tuple[str, int]]) -> Iterator[WorldResult]:
    """What every (protocol, seed) showed, in order."""
    size = max(1, min(WORLDS_A_TASK, len(work) // (4 * cores(session))))
    in_a_round = size * _TASKS_A_ROUND * cores(session)
    for begin in range(0, len(work), in_a_round):
        batches = _Worlds(work[begin : begin + in_a_round], size)
        for told in spread(session, batches, batches.count()):
            yield from (msgspec.convert(one, WorldResult) for one in told)


class _Worlds:
    """Some worlds as one piece of work."""

    def __init__(self, work: Sequence[tuple[str, int]], size: int) -> None:
        self.work, self.size = list(work), size

    def count(self) -> int:
        return -(-len(self.work) // self.size)

    def __call__(self, number: int) -> list[Any]:
        mine = self.work[number * self.size : (number + 1) * self.size]
        return [msgspec.to_builtins(run_seed(protocol, seed)) for protocol, seed in mine]
