"""Swarm worlds for orderings: three quarters in the usual kind of world, the others in another kind.

The usual kind is contacts or point to point. The other kinds are these two and the flood radio, which is drawn
here. In flood worlds all nodes restart with their saved state, so every message is due unless it expires.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import replace

from precede.core.instants import SECOND, Instant
from precede.experiments.run import Prepared, Run
from precede.experiments.swarm.draw import contacts as draw_contacts
from precede.experiments.swarm.draw import flood as draw_flood
from precede.experiments.swarm.draw import point_to_point as draw_point_to_point
from precede.experiments.swarm.due import carried_missing, offered_missing
from precede.experiments.swarm.events import rows_of
from precede.experiments.swarm.plan import Drawer, Plan, partition_of, seconds_text
from precede.experiments.swarm.promises import has_lifetimes, loses_store
from precede.experiments.swarm.swarm import everything_missing
from precede.sim.randomness import Generators
from precede.witness.many_logs import verify_one_of_many

_USUAL_KINDS: Final = {
    "causal_barrier": "contacts",
    "delta_causal": "contacts",
    "hash_dag": "contacts",
    "unordered": "point_to_point",
    "fifo": "point_to_point",
    "vector_clock": "point_to_point",
}
_RULES: Final[dict[str, dict[str, tuple[Any, ...]]]] = {
    "timestamp": {"wait": ("0s", "0s", "1s", "30s"), "guard": ("0s", "0s", "10s", "24h")},
    "lamport": {"wait": ("0s", "0s", "1s", "30s")},
    "sds": {"wait": ("none", "none", "5s", "30s"), "history": (1, 2, 2, 10), "filter": (2, 20, 200)},
}
"""The options of a rule and the values they are drawn from."""
_NEVER_ABOVE: Final = ("lamport", "sds")
"""The rules that sort by a Lamport clock: they never show an answer above its question."""
_OTHER_KIND: Final = 0.25
_LARGEST_SKEW: Final = "61s"
_SETTLE: Final = 150 * SECOND
_REPAIR: Final = 60 * SECOND
"""The time after healing in which retransmissions and beacons bring every message to every node."""


def draw(protocol: str, seed: int, random: Random) -> Plan:
    """Draw a world of the protocol's usual kind or, for a quarter of the seeds, of another kind."""
    generator = Generators(seed).python("swarm", "network", protocol)
    usual = _USUAL_KINDS.get(protocol, "contacts")
    kind = usual
    if generator.random() < _OTHER_KIND:
        kind = generator.choice([other for other in ("contacts", "point_to_point", "flood") if other != usual])
    if kind == "contacts":
        plan = draw_contacts.draw(protocol, seed, random)
    elif kind == "flood":
        plan = _draw_flood(protocol, seed, random)
    else:
        plan = draw_point_to_point.draw(protocol, seed, random)
    options: dict[str, Any] = {
        key: generator.choice(values) for key, values in _RULES.get(protocol, {}).items()
    }
    if protocol == "delta_causal" and kind != "contacts":
        options = {"lifetime": random.choice(("1s", "20s", "20min")), "skew": _LARGEST_SKEW}
    return replace(plan, run=replace(plan.run, options={**plan.run.options, **options}))


def _draw_flood(protocol: str, seed: int, random: Random) -> Plan:
    """Draw a few radios in a field, with movement, crashes, stalls, late nodes and partitions."""
    nodes = random.randint(1, 8)
    heal_at = random.choice((10, 20, 40)) * SECOND
    founders = nodes - (random.choice((0, 0, 1, 2)) if nodes > 3 else 0)
    run = Run(
        world=_draw_field(random, nodes, founders, heal_at),
        workload=draw_flood.draw_workload(random, nodes, heal_at),
        faults=draw_point_to_point.draw_faults(random, nodes, heal_at),
        protocol=protocol,
        options={
            "durable": True,
            "relay_wait": random.choice(("0s", "10ms", "100ms")),
            "answer_within": random.choice(("0s", "50ms", "200ms")),
            "beacon": random.choice(("200ms", "1s")),
            "beacon_longest": "8s",
            "beacon_redundancy": random.choice((1, 3)),
        },
        seed=seed,
        gauges="none",
    )
    return Plan(run, heal_at, _SETTLE)


def _draw_field(random: Random, nodes: int, founders: int, heal_at: Instant) -> dict[str, Any]:
    side = random.choice((60, 120, 200))
    world: dict[str, Any] = {
        "kind": "flood",
        "nodes": nodes,
        "field": [side, side],
        "delay": random.choice(("1ms", "uniform(0.001, 0.02)", "exponential(0.05)")),
        "loss": random.choice((0.0, 0.0, 0.1, 0.3)),
        "connected": random.random() < 0.6,
        "members": [str(node) for node in range(nodes)],
        "presence": [
            {"node": str(node), "enter": seconds_text(random.randrange(1, heal_at))}
            for node in range(founders, nodes)
        ],
    }
    if random.random() < 0.4:
        world["speed"] = random.choice((1, 5, 20))
    if random.random() < 0.4:
        world |= {"bandwidth": random.choice((20_000, 125_000)), "collisions": True}
        world |= {"carrier_sense": random.random() < 0.5, "access": "uniform(0, 0.02)"}
    partitions = []
    for _ in range(random.choice((0, 0, 1, 2)) if nodes > 1 else 0):
        start = random.randrange(heal_at)
        inside = random.sample(range(nodes), random.randint(1, nodes - 1))
        partitions.append(partition_of(start, start + random.randrange(heal_at), inside))
    return world | ({"partitions": partitions} if partitions else {})


def missing(plan: Plan, prepared: Prepared, log: pa.Table) -> Sequence[str]:
    """List messages that are due and not delivered; with lifetimes, those that live long enough to arrive."""
    if plan.run.world["kind"] == "contacts":
        return draw_contacts.missing(plan, prepared, log)
    if loses_store(plan) and plan.run.world["kind"] == "flood":
        return carried_missing(plan, prepared, log, _REPAIR, volatile=True)  # gossip saves own messages only
    if loses_store(plan) or plan.run.protocol == "delta_causal" or has_lifetimes(plan):
        return offered_missing(plan, prepared, log, _REPAIR)
    return everything_missing(plan, prepared, log)


def checks(plan: Plan, prepared: Prepared, log: pa.Table) -> Mapping[str, Sequence[str]]:
    """List the answers that a rule with a Lamport clock showed above their questions.

    Screens follow from four kinds of rows. Most rows are about packets, and this check is in plain Python.
    """
    if plan.run.protocol not in _NEVER_ABOVE:
        return {}
    shown = rows_of(log, "started", "observed", "broadcast", "delivered")
    listed = verify_one_of_many(shown, "display", steps="ordered").listed
    return {"violations": [one.story or str(one) for one in listed if one.kind == "answer_above"]}


DRAWER: Final = Drawer(draw, missing, checks)
