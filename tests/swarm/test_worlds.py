"""The ledger of random worlds counts each world once, its page is up to date, and every size has a limit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace

from precede.eventlog.sinks import TableSink
from precede.experiments.run import prepare
from precede.experiments.swarm.large_numbers import builder
from precede.experiments.swarm.limits import SIZES, UNLIMITED
from precede.experiments.swarm.plan import DRAWERS, draw_plan
from precede.lake.layout import Lake
from precede.lake.schemas import WORLDS
from tests.swarm import worlds


def a_range(first: int, last: int, **changed: object) -> worlds.Range:
    one = worlds.Range("fifo", first, last, last - first + 1, 0, 0, 0, 0, (), 1.5, "v")
    return replace(one, **changed)


def test_no_world_is_counted_twice_and_ranges_are_whole() -> None:
    ranges = worlds.read()
    assert worlds.overlapping(ranges) == []
    assert [one for one in ranges if one.worlds != one.last_seed - one.first_seed + 1] == []
    assert worlds.merged(ranges) == ranges
    assert {one.protocol for one in ranges} <= set(DRAWERS)


def test_the_page_is_written_from_the_ledger() -> None:
    assert worlds.PAGE.read_text() == worlds.page(worlds.read())


def test_every_world_that_failed_is_run_again_by_the_tests() -> None:
    failed = {(one.protocol, seed) for one in worlds.read() for seed in one.failing_seeds}
    assert failed <= set(worlds.known_failures())


def test_ranges_that_follow_each_other_are_joined_and_overlaps_are_noticed() -> None:
    joined = worlds.merged([a_range(10, 19, leaks=2, failing_seeds=(12,)), a_range(0, 9), a_range(30, 39)])
    assert joined == [a_range(0, 19, leaks=2, failing_seeds=(12,), cpu_s=3.0), a_range(30, 39)]
    assert worlds.merged([a_range(0, 9), a_range(10, 19, version="w")])[1].first_seed == 10
    assert worlds.overlapping([a_range(0, 9), a_range(9, 12)]) == [(a_range(0, 9), a_range(9, 12))]
    assert worlds.overlapping([a_range(0, 9), a_range(5, 12, protocol="tof")]) == []


def test_complete_ranges_of_a_lake_are_taken(tmp_path: Path) -> None:
    row = {"protocol": "fifo", "version": "v", "deliveries": 7} | dict.fromkeys(
        ("violations", "duplicates", "undelivered", "leaks"), 0
    )
    whole = row | {"first_seed": 0, "last_seed": 63, "worlds": 64, "leaks": 1, "failing_seeds": ["5"]}
    part = row | {"first_seed": 64, "last_seed": 127, "worlds": 3, "failing_seeds": []}
    lake = Lake(str(tmp_path))
    with lake.job("swarm-table").hold() as job:
        job.write("worlds", "fifo", pa.Table.from_pylist([whole, part], schema=WORLDS.arrow()))
    assert worlds.of_lake(str(tmp_path)) == [a_range(0, 63, leaks=1, failing_seeds=(5,), cpu_s=None)]


@pytest.mark.parametrize("protocol", DRAWERS)
def test_every_size_of_a_node_has_a_limit_or_a_reason_to_have_none(protocol: str) -> None:
    for seed in range(1_000_000, 1_000_003):
        plan = draw_plan(protocol, seed)
        prepared = prepare(plan.run, TableSink(), build_node=builder(plan))
        for hosted in prepared.world.nodes:
            known = {*SIZES, *UNLIMITED, *hosted.node.drains()}
            assert set(hosted.node.sizes()) <= known
