"""Swarm worlds in which founders agree on a group of DRIFT: they hear each other late, are cut off, and crash.

With stores any founder may crash at any time and return. Without, a crash is a new incarnation, and only a
minority of the founders crashes, so that a view can remove what is left of them.

Required: all founders that kept their state deliver the same sequence from the first message on, with every
message that was accepted; nobody is in a group that no quorum founded.
"""

from random import Random
from typing import Any, Final

import pyarrow as pa

from precede.core.instants import SECOND, Instant
from precede.experiments.run import Prepared, Run
from precede.experiments.swarm.events import broadcasts_and_deliveries
from precede.experiments.swarm.plan import Drawer, Plan, draw_script, seconds_text
from precede.experiments.swarm.swarm import up_at_end
from precede.witness.many_logs import verify_one_of_many

_SETTLE: Final = 120 * SECOND


def draw(name: str, seed: int, random: Random) -> Plan:
    """Draw a world of three to nine founders with faults at the beginning."""
    nodes = random.randint(3, 9)
    heal_at = random.choice((10, 20, 30)) * SECOND
    durable = random.random() < 0.6
    side = random.choice((60, 60, 120))
    world: dict[str, Any] = {
        "kind": "flood",
        "nodes": nodes,
        "field": [side, side],
        "reach": 88.0,
        "connected": True,
        "delay": random.choice(("1ms", "uniform(0.001, 0.02)", "exponential(0.05)")),
        "loss": random.choice((0.0, 0.1, 0.3)),
        "members": [str(node) for node in range(nodes)],
        "presence": _draw_late(random, nodes, heal_at),
        "partitions": [_draw_partition(random, nodes, heal_at) for _ in range(random.choice((0, 1, 1, 2, 3)))],
    }
    run = Run(
        world=world,
        workload=_draw_workload(random, nodes, heal_at),
        faults={"crashes": _draw_crashes(random, nodes, heal_at, durable)},
        protocol="drift",
        options={
            "founding": "agreed",
            "durable": durable,
            "bootstrap_after": "2s",
            "relay_wait": random.choice(("0s", "10ms")),
            "quiet": "500ms",
            "beacon": random.choice(("200ms", "1s")),
            "beacon_longest": "8s",
            "suspect_after": "0s" if durable else "3s",
            "vote_every": "500ms",
        },
        seed=seed,
        gauges="none",
    )
    return Plan(run, heal_at, _SETTLE)


def _draw_late(random: Random, nodes: int, heal_at: Instant) -> list[dict[str, Any]]:
    """Draw founders that start late, before `heal_at`: one, half of the nodes, often none."""
    late = random.sample(range(nodes), random.choice((0, 0, 1, nodes // 2)))
    return [{"node": str(node), "enter": seconds_text(random.randrange(1, heal_at))} for node in sorted(late)]


def _draw_partition(random: Random, nodes: int, heal_at: Instant) -> dict[str, Any]:
    """Draw a time in which founders do not hear each other: two sides, or everybody alone."""
    start = 0 if random.random() < 0.6 else random.randrange(heal_at)
    inside = sorted(random.sample(range(nodes), random.randint(1, nodes - 1)))
    groups = [[str(node)] for node in range(nodes)] if random.random() < 0.2 else [[str(n) for n in inside]]
    end = start + random.randrange(1, heal_at)
    return {"start": seconds_text(start), "end": seconds_text(end), "groups": groups}


def _draw_crashes(random: Random, nodes: int, heal_at: Instant, durable: bool) -> list[dict[str, Any]]:
    """Draw crashes with restarts, most in the first five seconds; without stores only of a minority."""
    victims = range(nodes) if durable else random.sample(range(nodes), (nodes - 1) // 2)
    crashes = []
    for _ in range(random.choice((0, 1, 2, 4)) if victims else 0):
        at = random.randrange(5 * SECOND if random.random() < 0.7 else heal_at - SECOND)
        back = random.randrange(at + 1, heal_at)
        crash: dict[str, Any] = {"node": str(random.choice(victims)), "at": seconds_text(at)}
        crash |= {"restart": seconds_text(back), "keep": durable}
        if durable and random.random() < 0.7:
            crash["after"] = random.randint(0, 12)
        crashes.append(crash)
    return crashes


def _draw_workload(random: Random, nodes: int, heal_at: Instant) -> dict[str, Any]:
    """Draw broadcasts before healing, many of which are refused, and one per node a minute or more after it."""
    early = draw_script(random, nodes, heal_at, random.choice((5, 20, 40)))
    late = [{"src": str(node), "at": seconds_text(heal_at + (60 + node) * SECOND)} for node in range(nodes)]
    return {"script": early + late, "size": 20}


def missing(plan: Plan, prepared: Prepared, log: pa.Table) -> list[str]:
    """Describe where founders that kept their state delivered different sequences or lack a message.

    Due is what any node delivered, and what a node that is up at the end broadcast.
    """
    up = up_at_end(prepared)
    broadcasts, deliveries = broadcasts_and_deliveries(log)
    of_running = [message for message in broadcasts if message[:2] in up]
    due = dict.fromkeys([*of_running, *(message for own in deliveries.values() for message in own)])
    kept = [process for process in up if process[1] == 0]
    lacking = (
        [] if len(of_running) >= len(up) else ["some node could not broadcast after everything had healed"]
    )
    for process in kept:
        own = deliveries.get(process, [])
        lacking += [
            f"{process[0]} never delivered {source}'{incarnation}:{number}"
            for source, incarnation, number in due
            if (source, incarnation, number) not in own
        ]
        if own != deliveries.get(kept[0], []):
            lacking.append(f"{process[0]} and {kept[0][0]} delivered different sequences")
    return lacking


def checks(plan: Plan, prepared: Prepared, log: pa.Table) -> dict[str, list[str]]:
    """Check that there is one group, that a quorum founded it, and that founders with state agree."""
    kept = [name for name, incarnation in up_at_end(prepared) if incarnation == 0]
    violations = []
    verdict = verify_one_of_many(log, "total", members=kept) if kept else None
    if verdict is not None and verdict.verdict == "violated":
        violations.append(verdict.first.story if verdict.first is not None else "agreement violated")
    groups: dict[int, None] = {}
    for hosted in prepared.world.nodes:
        node: Any = hosted.node
        origin = node.state.origin
        groups[node.state.group] = None
        if origin is None or len(origin.record.voters) < node.groups.election.ballots.quorum:
            violations.append(f"{prepared.built.names[hosted.id]} is in a group without a quorum")
    if len(groups) > 1:
        violations.append(f"{len(groups)} groups at the end")
    return {"violations": violations}


DRAWER: Final = Drawer(draw, missing, checks)
