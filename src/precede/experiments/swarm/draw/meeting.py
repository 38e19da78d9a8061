"""Swarm worlds in which nodes found groups of DRIFT that meet and become one, while nodes crash (section 7).

No source is given, and partitions let each part found a group. The messages of a group whose members move to
another one may be lost. Required are one total order and no duplicates at all times, and in the end one group
in which every node delivers what any node broadcasts.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

import pyarrow as pa

from precede.core.instants import SECOND
from precede.experiments.run import Prepared, Run
from precede.experiments.swarm.events import Message, broadcasts_and_deliveries
from precede.experiments.swarm.plan import Drawer, Plan, partition_of, seconds_text
from precede.witness.many_logs import verify_one_of_many

_HEAL_AT: Final = 40 * SECOND
LATE: Final = 100 * SECOND
"""When all nodes must be in one group. From then on each of them broadcasts once."""
_SETTLE: Final = 140 * SECOND


def draw(name: str, seed: int, random: Random) -> Plan:
    """Draw a world with early messages and faults, and one late message per node."""
    nodes = random.randint(2, 6)
    births = [(random.randrange(nodes), random.randrange(_HEAL_AT)) for _ in range(random.choice((3, 10, 20)))]
    births += [(node, LATE + node * SECOND) for node in range(nodes)]
    entering = [{"node": str(nodes - 1), "enter": seconds_text(random.randrange(1, _HEAL_AT))}]
    world: dict[str, Any] = {
        "kind": "flood",
        "nodes": nodes,
        "field": [60, 60],
        "reach": 88.0,
        "delay": "uniform(0.001, 0.02)",
        "loss": random.choice((0.0, 0.1, 0.3)),
        "members": [],
        "partitions": [_draw_partition(random, nodes) for _ in range(random.choice((0, 1, 1, 2)))],
        "presence": entering if random.random() < 0.4 else [],
    }
    run = Run(
        world=world,
        workload={
            "script": [{"src": str(node), "at": seconds_text(at)} for node, at in births],
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
    )
    return Plan(run, _HEAL_AT, _SETTLE)


def _draw_partition(random: Random, nodes: int) -> dict[str, Any]:
    """Draw a partition, mostly from the beginning, so that each part founds a group."""
    start = 0 if random.random() < 0.6 else random.randrange(_HEAL_AT)
    inside = random.sample(range(nodes), random.randint(1, nodes - 1))
    return partition_of(start, min(_HEAL_AT, start + random.randrange(1, _HEAL_AT)), inside)


def _draw_crash(random: Random, nodes: int) -> dict[str, Any]:
    at = random.randrange(_HEAL_AT)
    back = min(at + random.randrange(1, 10 * SECOND), _HEAL_AT - 1)
    crash = {"node": str(random.randrange(nodes)), "at": seconds_text(at), "restart": seconds_text(back)}
    more = {"after": 0.7, "again": 0.3}
    return crash | {key: random.randint(0, 12) for key, chance in more.items() if random.random() < chance}


def missing(plan: Plan, prepared: Prepared, log: pa.Table) -> list[str]:
    """List the late messages that were refused, or that a node did not deliver."""
    names = prepared.built.names
    broadcasts, deliveries = broadcasts_and_deliveries(log)
    late = [message for message, at in broadcasts.items() if at >= LATE]
    delivered: dict[str, dict[Message, None]] = {name: {} for name in names}
    for (name, _), messages in deliveries.items():
        delivered[name].update(dict.fromkeys(messages))
    sources = [message[0] for message in late]
    lines = [f"{name} could not broadcast in the end" for name in names if name not in sources]
    lines += [
        f"{name} never delivered {message[0]}:{message[2]}"
        for name in names
        for message in late
        if message not in delivered[name]
    ]
    return lines


def checks(plan: Plan, prepared: Prepared, log: pa.Table) -> Mapping[str, Sequence[str]]:
    """Check that the log keeps causal order too, and that all nodes end in one group."""
    verdict = verify_one_of_many(log, "causal")
    violations = []
    if verdict.verdict == "violated":
        violations.append(verdict.first.story if verdict.first is not None else "causal order violated")
    nodes: list[Any] = [hosted.node for hosted in prepared.world.nodes]
    groups = dict.fromkeys(node.state.group for node in nodes)
    if len(groups) > 1:
        violations.append(f"{len(groups)} groups at the end")
    return {"violations": violations}


DRAWER: Final = Drawer(draw, missing, checks)
