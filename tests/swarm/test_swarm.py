"""The swarm: correct protocols pass, worlds that once failed pass, a failing world is shrunk and explained."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from precede.eventlog.sinks import TableSink
from precede.experiments.run import prepare
from precede.experiments.stories.from_log import tell_log
from precede.experiments.swarm.draw.point_to_point import DRAWER
from precede.experiments.swarm.plan import DRAWERS, draw_plan, find_drawer
from precede.experiments.swarm.shrink import shrink
from precede.experiments.swarm.swarm import Tally, replay_line, run_plan, run_seed
from tests.swarm.saboteurs import SABOTEURS

REGRESSIONS = Path(__file__).with_name("regressions.txt")


@pytest.mark.parametrize("protocol", ["unordered", "fifo", "vector_clock"])
def test_fifty_worlds_have_no_finding(protocol: str) -> None:
    tally = Tally()
    for seed in range(1000, 1050):
        result = run_seed(protocol, seed)
        tally.add(result)
        assert not result.failed, (replay_line(result), *result.remarks)
    assert tally.line() == "worlds=50 violations=0 duplicates=0 undelivered=0 leaks=0"


def known_failures() -> list[tuple[str, int]]:
    lines = [line.partition("#")[0].split() for line in REGRESSIONS.read_text().splitlines()]
    return [(words[0], int(words[1])) for words in lines if words]


def test_worlds_that_once_failed_have_no_finding() -> None:
    """They are drawn as they were when they failed: the first ones before there were further situations."""
    for protocol, seed in known_failures():
        drawer = find_drawer(protocol)
        for further in (False, True):
            result = run_plan(draw_plan(protocol, seed, drawer, further=further), drawer)
            assert not result.failed, (replay_line(result), *result.remarks)


def test_a_failing_world_shrinks_to_a_short_story() -> None:
    entry = SABOTEURS["Eager"]
    for seed in range(50):
        plan = draw_plan("vector_clock", seed, DRAWER)
        plan = msgspec.structs.replace(plan, run=msgspec.structs.replace(plan.run, protocol="Eager"))
        if run_plan(plan, DRAWER, entry).violations:
            break
    small, result = shrink(plan, DRAWER, entry)
    assert result.violations
    assert len(small.run.workload["script"]) <= len(plan.run.workload["script"]) // 4
    assert not small.run.faults["crashes"]
    sink = TableSink()
    prepared = prepare(small.run, sink, entry)
    prepared.world.run(small.end)
    prepared.recorder.flush()
    text = tell_log(small, sink.events())
    assert "broadcasts" in text
    assert "delivers" in text


def test_every_listed_name_draws_with_its_own_drawer() -> None:
    """A name with a plus is an ordering over a routing, unless it has a drawer of its own, as `fifo+gossip`."""
    for protocol, path in DRAWERS.items():
        module, _, attribute = path.partition(":")
        assert find_drawer(protocol) is getattr(import_module(module), attribute), protocol
    assert find_drawer("fifo+prophet") is not find_drawer("fifo+gossip")
