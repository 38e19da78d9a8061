"""The swarm into a lake: its results accumulate by protocol and seed range, and each world counts once.

Seeds are divided into blocks of 64. A commit record has a fact for each protocol and block: which seeds of the
block were run, and what was found in them. A task runs some worlds of some blocks and adds them to what the
block had before. When two drivers add to one block at the same time, one of the two facts counts: some worlds
may be run again, none is counted twice. Worlds that another version of this package ran are run again. The
table `worlds` is written from the facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Struct

from precede.experiments.code_version import is_current, made_by
from precede.experiments.swarm.swarm import Tally, WorldResult, run_seed
from precede.lake.commits import SWARM
from precede.lake.compaction import compact
from precede.lake.jobs import Job
from precede.lake.layout import Lake
from precede.lake.schemas import WORLDS
from precede.pipeline.sessions.tasks import spread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BLOCK: Final = 64
"""Seeds in a block; a bit mask of them is a whole number that JSON has."""

_WORLDS_A_TASK: Final = 40
_TASKS_A_ROUND: Final = 256
_MANY_COMMITS: Final = 200


class Block(Struct, frozen=True):
    """The worlds of one protocol and one block of seeds: bit k of `seeds` is set if world k was run."""

    version: str
    seeds: int = 0
    violations: int = 0
    duplicates: int = 0
    undelivered: int = 0
    leaks: int = 0
    deliveries: int = 0
    failing: tuple[int, ...] = ()

    def plus(self, result: WorldResult) -> Block:
        """Add a world that was not counted yet."""
        bit = 1 << result.seed % BLOCK
        assert not self.seeds & bit, result.seed
        return Block(
            self.version,
            self.seeds | bit,
            self.violations + result.violations,
            self.duplicates + result.duplicates,
            self.undelivered + result.undelivered,
            self.leaks + result.leaks,
            self.deliveries + result.deliveries,
            (*self.failing, result.seed) if result.failed else self.failing,
        )


class _Share(Struct, frozen=True):
    """The worlds that a task adds to a block, and what the block had before."""

    protocol: str
    before: Block
    seeds: list[int]


def run_worlds(
    lake: Lake, session: SparkSession | None, work: Sequence[tuple[str, int]], same_code: bool = False
) -> Iterator[WorldResult]:
    """Run the worlds that the lake does not have, yield their results, and write the tables at the end."""
    with lake.job("swarm").hold() as job:
        shares = _missing(lake, work, same_code)
        tasks = list(_tasks(shares))
        for begin in range(0, len(tasks), _TASKS_A_ROUND):
            some = tasks[begin : begin + _TASKS_A_ROUND]
            what = f"swarm: tasks {begin + 1:,} to {begin + len(some):,} of {len(tasks):,}"
            for results in spread(session, what, _Worlds(job), job.write_plan(some)):
                yield from (msgspec.convert(result, WorldResult) for result in results)
        compact(job, at_least=_MANY_COMMITS, kind=SWARM)
    for protocol in sorted({protocol for protocol, _ in work}):
        _write_table(lake, protocol)


def count_worlds(lake: Lake, protocols: Sequence[str]) -> dict[str, Tally]:
    """Add up the findings in all worlds of these protocols that a lake has, each once."""
    tallies = {protocol: Tally() for protocol in protocols}
    for (protocol, _), block in _blocks(lake).items():
        if protocol in tallies:
            tally = tallies[protocol]
            tally.worlds += block.seeds.bit_count()
            tally.violations += block.violations
            tally.duplicates += block.duplicates
            tally.undelivered += block.undelivered
            tally.leaks += block.leaks
    return tallies


def _blocks(lake: Lake) -> dict[tuple[str, int], Block]:
    blocks = {}
    for unit, fact in lake.facts(SWARM).items():
        protocol, _, number = unit.rpartition(":")
        blocks[protocol, int(number)] = msgspec.json.decode(fact.raw, type=Block)
    return blocks


def _missing(lake: Lake, work: Sequence[tuple[str, int]], same_code: bool) -> list[_Share]:
    blocks = _blocks(lake)
    shares: dict[tuple[str, int], _Share] = {}
    for protocol, seed in work:
        key = (protocol, seed // BLOCK)
        if key not in shares:
            before = blocks.get(key)
            is_counted = before is not None and is_current(before.version, same_code)
            shares[key] = _Share(protocol, before if before and is_counted else Block(made_by()), [])
        if not shares[key].before.seeds >> seed % BLOCK & 1:
            shares[key].seeds.append(seed)
    return [share for share in shares.values() if share.seeds]


def _tasks(shares: Sequence[_Share]) -> Iterator[list[_Share]]:
    """Divide the blocks into tasks of some seconds each."""
    task: list[_Share] = []
    for share in shares:
        task.append(share)
        if sum(len(one.seeds) for one in task) >= _WORLDS_A_TASK:
            yield task
            task = []
    if task:
        yield task


class _Worlds:
    """Runs the worlds of a task in the job's plan and commits what was found."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __call__(self, number: int) -> list[Any]:
        facts: dict[str, Block] = {}
        results = []
        for share in self.job.read_plan(number, list[_Share]):
            block = share.before
            for seed in share.seeds:
                result = run_seed(share.protocol, seed)
                block = block.plus(result)
                results.append(msgspec.to_builtins(result))
            facts[f"{share.protocol}:{share.seeds[0] // BLOCK}"] = block
        digest = blake2b("\n".join(sorted(facts)).encode(), digest_size=8).hexdigest()
        self.job.commit(SWARM, f"worlds-{digest}", facts=facts)
        return results


def _write_table(lake: Lake, protocol: str) -> None:
    """Write the table of one protocol; again if another driver added worlds or wrote its own meanwhile."""
    unit = protocol.replace(":", "=")
    while True:
        blocks = {number: block for (name, number), block in _blocks(lake).items() if name == protocol}
        rows = pa.Table.from_pylist(_rows(protocol, blocks), schema=WORLDS.arrow())
        if lake.has("worlds", unit) and lake.read("worlds", unit).equals(rows):
            return
        with lake.job("swarm-table").hold() as job:
            job.write("worlds", unit, rows)


def _rows(protocol: str, blocks: Mapping[int, Block]) -> list[dict[str, Any]]:
    counted = ("violations", "duplicates", "undelivered", "leaks", "deliveries", "version")
    return [
        {
            "protocol": protocol,
            "first_seed": number * BLOCK,
            "last_seed": number * BLOCK + BLOCK - 1,
            "worlds": block.seeds.bit_count(),
            **{name: getattr(block, name) for name in counted},
            "failing_seeds": [str(seed) for seed in sorted(block.failing)],
        }
        for number, block in sorted(blocks.items())
    ]
