"""Draws swarm worlds for VCube: heavy-tailed delays, no FIFO; with diagnosis also crashes, joins and leaves.

A world with crashes fulfils VCube's assumptions: no node restarts, there are no partitions, and delays are
limited so that the test time-out is longer than a test and its answer are in flight. A message of a crashed or
departed node is due at all remaining nodes if one of them delivered it. A newcomer is due the messages beyond
the vector it began with.
"""

from collections.abc import Mapping
from random import Random
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import replace

from precede.core.identity import NodeId
from precede.core.instants import MILLISECOND, SECOND, Duration, Instant, parse_duration
from precede.experiments.run import Prepared, Run
from precede.experiments.swarm.events import events_of
from precede.experiments.swarm.plan import Drawer, Plan, draw_script, seconds_text
from precede.protocols.vcube2018.diagnosis import DiagnosedVCubeNode
from precede.sim.randomness import Generators

_DELAYS: Final = (
    "pareto(0.01, 0.8)",
    "pareto(0.02, 1.2)",
    "exponential(0.05)",
    "uniform(0.001, 0.3)",
    "normal(0.1, 0.025)",
    "normal(0.1, 0.08)",
)
_LONGEST: Final = 10 * SECOND
_QUEUE_SLACK: Final = 200 * MILLISECOND
_FAR_AHEAD: Final = 150


def draw(protocol: str, seed: int, random: Random) -> Plan:
    """Draw a world. In most no node fails, as in the paper; the others have the faults of its future work."""
    drawn = draw_calm if random.random() < 0.6 else draw_faulty
    return _vary(drawn(protocol, seed, random), Generators(seed).python("swarm", "forms", protocol))


def _vary(plan: Plan, random: Random) -> Plan:
    """Vary a plan by rare forms: no compression, a single tree, a source far ahead of the others."""
    options = {**plan.run.options, "compression": random.random() < 0.8}
    if not options.get("diagnosis") and random.random() < 0.2:
        options["tree"] = "single"
    workload = dict(plan.run.workload)
    if random.random() < 0.1:
        source = str(random.randrange(plan.run.world["nodes"]))
        births = sorted(random.randrange(plan.heal_at) for _ in range(_FAR_AHEAD))
        ahead = [{"src": source, "at": seconds_text(at)} for at in births]
        workload["script"] = sorted(
            [*workload["script"], *ahead], key=lambda birth: parse_duration(birth["at"])
        )
    return replace(plan, run=replace(plan.run, options=options, workload=workload))


def draw_calm(protocol: str, seed: int, random: Random) -> Plan:
    """Draw a world without faults, in which packets overtake each other by far."""
    nodes = random.choice((1, 2, 3, 5, 8, 8, 11, 16, 16, 21, 32))
    heal_at = random.choice((1, 3, 8)) * SECOND
    run = Run(
        world=_draw_world(random, nodes, _LONGEST),
        workload=_draw_workload(random, nodes, heal_at),
        protocol=protocol,
        options=_draw_options(random),
        seed=seed,
        gauges="none",
    )
    return Plan(run, heal_at, 12 * _LONGEST)


def draw_faulty(protocol: str, seed: int, random: Random) -> Plan:
    """Draw a world in which up to half of the nodes crash, between any two effects; others come or leave."""
    nodes = random.choice((2, 3, 4, 5, 6, 7, 8, 8, 11, 16, 16, 32))
    heal_at = random.choice((1, 2, 5, 8)) * SECOND
    longest = random.choice((50, 100, 300)) * MILLISECOND
    world = _draw_world(random, nodes, longest) | {"linger": random.choice(("0s", "1s"))}
    doomed = sorted(random.sample(range(nodes), random.randint(0, nodes // 2)))
    crash_within = random.choice((heal_at, heal_at, SECOND // 5))
    others = [node for node in range(nodes) if node not in doomed]
    world["stays"] = _draw_stays(random, others, heal_at)
    diagnosis = {
        "diagnosis": True,
        "test_every": random.choice((100, 300)) * MILLISECOND,
        "test_timeout": 2 * longest + _QUEUE_SLACK,
    }
    workload = _draw_workload(random, nodes, heal_at)
    crashes = [_draw_crash(random, node, crash_within, workload["script"]) for node in doomed]
    run = Run(
        world=world,
        workload=workload,
        faults={"crashes": crashes},
        protocol=protocol,
        options=_draw_options(random) | diagnosis,
        seed=seed,
        gauges="none",
    )
    return Plan(run, heal_at, 12 * SECOND, dead=tuple(doomed))


def _draw_world(random: Random, nodes: int, longest: Duration) -> dict[str, Any]:
    return {
        "kind": "switched",
        "nodes": nodes,
        "propagation": random.choice(_DELAYS),
        "drawn": random.choice(("packet", "packet", "link")),
        "longest": seconds_text(longest),
        "transmission": random.choice(("0s", "100us", "1ms")),
        "processing": random.choice(("0s", "1ms")),
    }


def _draw_options(random: Random) -> dict[str, Any]:
    return {
        "aggregation": random.random() < 0.9,
        "unpack": random.choice(("insertion", "insertion", "causal")),
        "mtu": random.choice((120, 300, 1500)),
    }


def _draw_workload(random: Random, nodes: int, heal_at: Instant) -> dict[str, Any]:
    """Draw broadcasts and, often, replies: a reply depends on the message it answers."""
    return {
        "script": draw_script(random, nodes, heal_at, nodes * random.choice((1, 2, 4))),
        "until": seconds_text(heal_at),
        "size": random.choice((5, 50)),
        "replies": random.choice((0.0, 0.3, 0.7)) / nodes,
        "reply_after": random.choice(("constant(0)", "exponential(0.05)")),
    }


def _draw_crash(random: Random, node: NodeId, within: Duration, script: list[dict[str, str]]) -> dict[str, Any]:
    """Draw one node's crash at any instant, between any two effects; often while it sends an own message."""
    own = [parse_duration(birth["at"]) for birth in script if birth["src"] == str(node)]
    if own and random.random() < 0.4:
        before = max(random.choice(own) - 1, 0)
        return {"node": str(node), "at": seconds_text(before), "after": random.randint(2, 5)}
    crash: dict[str, Any] = {"node": str(node), "at": seconds_text(random.randrange(within))}
    if random.random() < 0.7:
        crash["after"] = random.randint(0, 12)
    return crash


def _draw_stays(random: Random, others: list[NodeId], heal_at: Instant) -> list[dict[str, Any]]:
    """Draw who enters early on or leaves: up to a third of the nodes that do not crash, never the first."""
    stays = []
    for node in sorted(random.sample(others[1:], random.randint(0, len(others) // 3))):
        stay = {"node": str(node)}
        if random.random() < 0.6:
            stay["enter"] = seconds_text(random.randrange(1, heal_at // 3))
        else:
            stay["leave"] = seconds_text(random.randrange(heal_at))
        stays.append(stay)
    return stays


def missing(plan: Plan, prepared: Prepared, log: pa.Table) -> list[str]:
    """List the messages that a working node broadcast or delivered and another working node lacks.

    A newcomer is due only messages beyond the vector it began with. A node that never joined gets one line.
    """
    names = prepared.built.names
    working = [hosted for hosted in prepared.world.nodes if hosted.up and not hosted.gone]
    delivered: dict[str, dict[tuple[str, int], None]] = {names[hosted.id]: {} for hosted in working}
    due: dict[tuple[str, int], None] = {}
    for row in events_of(log, "broadcast", "delivered"):
        message = (row["message_source"], row["message_number"])
        if row["node"] in delivered:
            due[message] = None
            if row["kind"] == "delivered":
                delivered[row["node"]][message] = None
    lines = []
    for hosted in working:
        began = _begins_after(hosted.node, names)
        if began is None:
            lines.append(f"{names[hosted.id]} never joined")
            continue
        lines += [
            f"{names[hosted.id]} never delivered {source}:{number}"
            for source, number in due
            if number > began.get(source, 0) and (source, number) not in delivered[names[hosted.id]]
        ]
    return lines


def _begins_after(node: object, names: tuple[str, ...]) -> Mapping[str, int] | None:
    """Return the vector a node began with, by name: empty without diagnosis, None before it joined."""
    if not isinstance(node, DiagnosedVCubeNode):
        return {}
    return {names[source]: count for source, count in node.begins_after.items()} if node.joined else None


DRAWER: Final = Drawer(draw, missing)
CALM: Final = Drawer(draw_calm, missing)
FAULTY: Final = Drawer(draw_faulty, missing)
