"""Groups that nodes found meet and become one, while nodes crash (drift2006, section 7).

The messages of a group whose members move to another one may be lost. Required are one total order and no
duplicates at all times, and in the end one group in which every node delivers everything.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from precede.core.instants import SECOND
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Prepared, Run, prepare
from precede.experiments.swarm.plan import seconds_text
from precede.experiments.swarm.swarm import events_of, leaking
from precede.witness.verify import verify

HEAL = 40 * SECOND
LATE = 100 * SECOND
END = 180 * SECOND


def draw(seed: int) -> Run:
    """Draw a world with early messages and faults, and one late message per node."""
    random = Random(seed)
    nodes = random.randint(2, 6)
    early = [(random.randrange(nodes), random.randrange(HEAL)) for _ in range(random.choice((3, 10, 20)))]
    late = [(node, LATE + node * SECOND) for node in range(nodes)]
    entering = [{"node": str(nodes - 1), "enter": seconds_text(random.randrange(1, HEAL))}]
    return Run(
        world={
            "kind": "flood",
            "nodes": nodes,
            "field": [60, 60],
            "reach": 88.0,
            "delay": "uniform(0.001, 0.02)",
            "loss": random.choice((0.0, 0.1, 0.3)),
            "members": [],
            "partitions": [_draw_partition(random, nodes) for _ in range(random.choice((0, 1, 1, 2)))],
            "presence": entering if random.random() < 0.4 else [],
        },
        workload={
            "script": [{"src": str(node), "at": seconds_text(at)} for node, at in early + late],
            "size": 20,
        },
        faults={"crashes": [_draw_crash(random, nodes) for _ in range(random.choice((0, 1, 2, 4, 8)))]},
        protocol="drift",
        options={
            "durable": True,
            "relay_wait": random.choice(("0s", "10ms")),
            "quiet": "500ms",
            "beacon": "500ms",
            "beacon_longest": "4s",
            "bootstrap_after": random.choice(("2s", "4s")),
            "suspect_after": "1s",
            "vote_every": "300ms",
        },
        seed=seed,
        gauges="none",
        end=seconds_text(END),
    )


def _draw_partition(random: Random, nodes: int) -> dict[str, Any]:
    """Draw a partition, mostly from the beginning, so that each part founds a group."""
    start = 0 if random.random() < 0.6 else random.randrange(HEAL)
    inside = random.sample(range(nodes), random.randint(1, nodes - 1))
    return {
        "start": seconds_text(start),
        "end": seconds_text(min(HEAL, start + random.randrange(1, HEAL))),
        "groups": [[str(node) for node in sorted(inside)]],
    }


def _draw_crash(random: Random, nodes: int) -> dict[str, Any]:
    at = random.randrange(HEAL)
    back = min(at + random.randrange(1, 10 * SECOND), HEAL - 1)
    crash = {"node": str(random.randrange(nodes)), "at": seconds_text(at), "restart": seconds_text(back)}
    more = {"after": 0.7, "again": 0.3}
    return crash | {key: random.randint(0, 12) for key, chance in more.items() if random.random() < chance}


def run_world(run: Run) -> tuple[Prepared, Any]:
    sink = TableSink()
    prepared = prepare(run, sink)
    prepared.world.schedule(HEAL, prepared.world.heal, ())
    prepared.world.run(END)
    prepared.recorder.flush()
    return prepared, sink.events()


def check(seed: int) -> None:
    """Run a world, and assert what is required of it."""
    run = draw(seed)
    prepared, log = run_world(run)
    for order in ("total", "causal"):
        verdict = verify(log, order)
        assert verdict.verdict == "holds", (seed, verdict.counts, verdict.first)
    nodes: list[Any] = [hosted.node for hosted in prepared.world.nodes]
    assert len({node.state.group for node in nodes}) == 1, seed
    late = [row["message_source"] for row in events_of(log, "broadcast") if row["at_us"] >= LATE]
    assert len(late) == len(nodes), (seed, late)
    for node in range(len(nodes)):
        rows = [r for r in events_of(log, "delivered") if r["node"] == str(node) and r["at_us"] >= LATE]
        assert len(rows) == len(late), (seed, node)
    assert not leaking(prepared), seed


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_groups_that_meet_become_one(first: int) -> None:
    for seed in range(first, first + 20):
        check(seed)


@pytest.mark.parametrize("seed", [147, 412, 427, 463, 665, 709, 947, 1435])
def test_groups_that_meet_become_one_in_worlds_that_once_failed(seed: int) -> None:
    """Nodes entered a group again that they had left, or used a number twice, so messages came twice."""
    check(seed)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_groups_that_meet_become_one_in_two_thousand_worlds() -> None:
    for seed in range(10_000, 12_000):
        check(seed)
