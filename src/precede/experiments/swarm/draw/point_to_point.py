"""Swarm worlds of the point-to-point network: loss, duplicates, reordering, partitions, crashes."""

from random import Random
from typing import Any, Final

from precede.core.instants import MILLISECOND, SECOND, Instant
from precede.experiments.run import Run
from precede.experiments.swarm.plan import WRONG_CLOCKS, Drawer, Plan, draw_stall, partition_of, seconds_text
from precede.protocols import registry

_DELAYS: Final = (
    "constant(0.01)",
    "uniform(0.001, 0.2)",
    "exponential(0.02)",
    "exponential(0.3)",
    "normal(0.1, 0.08)",
    "triangular(0, 2)",
)


def draw(protocol: str, seed: int, random: Random) -> Plan:
    nodes = random.randint(2, 8)
    heal_at = random.choice((2, 5, 10)) * SECOND
    multicast = registry.find(protocol).order == "multicast"
    run = Run(
        world=_draw_world(random, nodes, heal_at),
        workload=_draw_workload(random, nodes, heal_at, multicast),
        faults=draw_faults(random, nodes, heal_at),
        protocol=protocol,
        options={"durable": True, "rto": random.choice((50, 100, 300)) * MILLISECOND},
        seed=seed,
        gauges="none",
    )
    return Plan(run, heal_at, 60 * SECOND)


def _draw_world(random: Random, nodes: int, heal_at: Instant) -> dict[str, Any]:
    world: dict[str, Any] = {
        "kind": "point_to_point",
        "nodes": nodes,
        "delay": random.choice(_DELAYS),
        "loss": random.choice((0.0, 0.0, 0.05, 0.2, 0.4)),
        "duplication": random.choice((0.0, 0.0, 0.05, 0.3)),
        "fifo": random.random() < 0.2,
    }
    if random.random() < 0.2:
        world |= {"bandwidth": random.choice((2_000, 20_000)), "overhead": "1ms"}
    partitions = []
    for _ in range(random.choice((0, 0, 1, 2))):
        start = random.randrange(heal_at)
        inside = random.sample(range(nodes), random.randint(1, nodes))
        partitions.append(partition_of(start, start + random.randrange(heal_at), inside))
    return world | ({"partitions": partitions} if partitions else {})


def _draw_workload(random: Random, nodes: int, heal_at: Instant, multicast: bool) -> dict[str, Any]:
    script = []
    for at in sorted(random.randrange(heal_at) for _ in range(random.choice((3, 10, 40)))):
        source = random.randrange(nodes)
        birth: dict[str, Any] = {"src": str(source), "at": seconds_text(at)}
        if multicast:
            others = [node for node in range(nodes) if node != source]
            chosen = sorted(random.sample(others, random.randint(1, len(others))))
            birth["to"] = [str(node) for node in chosen]
        script.append(birth)
    return {
        "script": script,
        "until": seconds_text(heal_at),
        "size": 20,
        "replies": 0.0 if multicast else random.choice((0.0, 0.3, 0.8)) / nodes,
        "reply_after": random.choice(("constant(0)", "exponential(0.05)")),
    }


def draw_faults(random: Random, nodes: int, heal_at: Instant) -> dict[str, Any]:
    """Draw crashes, many in the middle of a list of effects and most with a restart; stalls; wrong clocks."""
    faults: dict[str, Any] = {"crashes": [], "stalls": []}
    for _ in range(random.choice((0, 1, 2, 4))):
        at = random.randrange(heal_at)
        crash: dict[str, Any] = {"node": str(random.randrange(nodes)), "at": seconds_text(at)}
        if random.random() < 0.7:
            crash["after"] = random.randint(0, 8)
        if random.random() < 0.8:
            crash["restart"] = seconds_text(at + random.randrange(1, heal_at))
        faults["crashes"].append(crash)
    for _ in range(random.choice((0, 0, 1))):
        faults["stalls"].append(draw_stall(random, random.randrange(nodes), heal_at))
    if random.random() < 0.3:
        faults |= WRONG_CLOCKS
    return faults


DRAWER: Final = Drawer(draw)
