"""Swarm worlds of contacts: short contacts, churn, crashes with and without state, wrong clocks, full caches.

A protocol without lifetimes waits for ever for a lost message. So for these protocols nodes keep their state
and caches are unlimited.
"""

from collections.abc import Sequence
from random import Random
from typing import Any, Final

import pyarrow as pa

from precede.core.instants import MILLISECOND, MINUTE, SECOND, Duration, Instant, parse_duration
from precede.experiments.run import Prepared, Run
from precede.experiments.swarm.due import carried_missing
from precede.experiments.swarm.events import count_events
from precede.experiments.swarm.plan import WRONG_CLOCKS, Drawer, Plan, draw_stall, seconds_text

_LONGEST_LIFE: Final = 10 * MINUTE
_LARGEST_SKEW: Final = "61s"
_MESSAGE_AT_MOST: Final = 4_000


def draw(protocol: str, seed: int, random: Random) -> Plan:
    """Draw a world of a few nodes that meet now and then. After healing all are in contact."""
    nodes = random.randint(2, 8)
    heal_at = random.choice((2, 5, 10)) * MINUTE
    end = heal_at + 2 * _LONGEST_LIFE
    expires = protocol == "delta_causal"
    run = Run(
        world=_draw_world(random, nodes, heal_at, end, expires),
        workload=_draw_workload(random, nodes, heal_at, expires),
        faults=_draw_faults(random, nodes, heal_at, expires),
        protocol=protocol,
        options=_draw_options(random, expires),
        seed=seed,
        gauges="none",
    )
    return Plan(run, heal_at, end - heal_at)


def _draw_world(random: Random, nodes: int, heal_at: Instant, end: Instant, expires: bool) -> dict[str, Any]:
    meetings = []
    for _ in range(random.choice((5, 20, 60))):
        pair = random.sample(range(nodes), 2)
        start = random.randrange(heal_at)
        length = random.randrange(1, random.choice((SECOND, 30 * SECOND, heal_at)))
        meetings.append([*map(str, pair), seconds_text(start), seconds_text(start + length)])
    world: dict[str, Any] = {"kind": "contacts", "nodes": nodes, "meetings": meetings}
    stays = []
    for node in range(nodes):
        if random.random() < 0.2:
            instants = sorted(random.sample(range(heal_at), random.choice((2, 4))))
            if not expires or random.random() < 0.3:
                instants[-1] = end + 1
            for enter, leave in zip(instants[::2], instants[1::2], strict=True):
                stays.append([str(node), seconds_text(enter), seconds_text(leave)])
    if stays:
        world["stays"] = stays
    if random.random() < 0.6:
        world["overhead"] = random.choice(("10ms", "100ms", "1s"))
        world["share"] = random.choice(("link", "node"))
    if random.random() < 0.3:
        world["bandwidth"] = random.choice((2_000, 20_000))
        world["summaries"] = random.choice(("free", "timed"))
    return world


def _draw_workload(random: Random, nodes: int, heal_at: Instant, expires: bool) -> dict[str, Any]:
    script = []
    varied = random.random() < 0.6
    tick = random.choice((1, SECOND, 10 * SECOND))
    for at in sorted(random.randrange(heal_at) // tick * tick for _ in range(random.choice((5, 20, 60)))):
        birth: dict[str, Any] = {"src": str(random.randrange(nodes)), "at": seconds_text(at)}
        if expires and varied:
            most = random.choice((10 * SECOND, MINUTE, _LONGEST_LIFE))
            birth["lifetime"] = seconds_text(random.randrange(1, most))
        script.append(birth)
    return {
        "script": script,
        "until": seconds_text(heal_at),
        "size": 20,
        "replies": random.choice((0.0, 0.3)) / nodes,
        "reply_after": random.choice(("constant(0)", "exponential(5)")),
    }


def _draw_faults(random: Random, nodes: int, heal_at: Instant, expires: bool) -> dict[str, Any]:
    faults: dict[str, Any] = {"crashes": [], "stalls": []}
    for _ in range(random.choice((0, 0, 1, 2, 4))):
        at = random.randrange(heal_at - 1)
        crash: dict[str, Any] = {"node": str(random.randrange(nodes)), "at": seconds_text(at)}
        if random.random() < 0.7:
            crash["after"] = random.randint(0, 12)
        if random.random() < 0.7:
            crash["restart"] = seconds_text(random.randrange(at + 1, heal_at))
            crash["keep"] = not expires or random.random() < 0.6
        faults["crashes"].append(crash)
    if random.random() < 0.2:
        faults["stalls"].append(draw_stall(random, random.randrange(nodes), heal_at))
    if random.random() < 0.5:
        faults |= WRONG_CLOCKS
    return faults


def _draw_options(random: Random, expires: bool) -> dict[str, Any]:
    options: dict[str, Any] = {
        "durable": True,
        "order": random.choice(("received", "received", "random", "oldest", "newest", "per_source")),
    }
    if expires:
        options |= {
            "lifetime": random.choice(("20s", "2min", "10min")),
            "skew": _LARGEST_SKEW,
            "prune": random.random() < 0.8,
            "monotone": random.random() < 0.2,
            "sweep": random.choice(("0s", "1s", "10s")),
            "cache": random.choice((0, 0, 0, 2, 10)),
            "evict": random.choice(("first", "random", "deadline")),
        }
    return options


def missing(plan: Plan, prepared: Prepared, log: pa.Table, repair: Duration = 0) -> Sequence[str]:
    """List undelivered messages with a carrier at healing and time left for the transfers and `repair`."""
    return carried_missing(plan, prepared, log, spreading(plan, log) + repair)


def spreading(plan: Plan, log: pa.Table) -> Duration:
    """Return an upper bound of the time in which all messages reach all nodes, sent one by one by each.

    Where packets were lost, the next summary shows it: it comes after `refresh`, by the clock of its node.
    """
    world = plan.run.world
    messages = count_events(log, "broadcast")
    bandwidth = float(world.get("bandwidth", "inf"))
    each = parse_duration(world.get("overhead", "0s")) + round(_MESSAGE_AT_MOST * SECOND / bandwidth)
    longest: Duration = messages * world["nodes"] * each + 10 * MILLISECOND
    return longest + (2 * parse_duration(plan.run.options["refresh"]) if world.get("loss") else 0)


DRAWER: Final = Drawer(draw, missing)
