"""Rare situations, added to a drawn world: one-way links, stalled stations, cut wires, wrong clocks and more.

Each situation applies to some kinds of world or to some protocols and is drawn by itself. Some break a promise
on which liveness rests, as clocks that differ by more than the promised skew (`promises`).
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from precede.core.instants import MILLISECOND, SECOND, Instant
from precede.experiments.swarm.plan import WRONG_CLOCKS, Plan, seconds_text
from precede.experiments.swarm.promises import SMALL_SKEW

_REFRESH: Final = ("1s", "7s")
_CROWD: Final = 64
_LONGEST_STALL: Final = 300 * MILLISECOND


class _Draft(Struct):
    """A plan that is being changed: its tables as dictionaries of their own."""

    protocol: str
    world: dict[str, Any]
    workload: dict[str, Any]
    faults: dict[str, Any]
    options: dict[str, Any]
    heal_at: Instant


def add(plan: Plan, random: Random) -> Plan:
    """Return the plan with some of the rare situations."""
    run = plan.run
    draft = _Draft(
        run.protocol, dict(run.world), dict(run.workload), dict(run.faults), dict(run.options), plan.heal_at
    )
    for chance, situation in _SITUATIONS:
        if random.random() < chance:
            situation(draft, random)
    changed = replace(
        run, world=draft.world, workload=draft.workload, faults=draft.faults, options=draft.options
    )
    return replace(plan, run=changed)


def _one_way(draft: _Draft, random: Random) -> None:
    """Let partitions cut only one direction: nodes in no group are heard and do not hear."""
    if draft.world.get("partitions"):
        draft.world["partitions"] = [cut | {"one_way": True} for cut in draft.world["partitions"]]


def _stalled_station(draft: _Draft, random: Random) -> None:
    """Stall stations for a moment, as hosts hand over."""
    if draft.world["kind"] == "cellular":
        stalls = []
        for _ in range(random.choice((1, 3))):
            at, duration = random.randrange(draft.heal_at), random.randrange(1, _LONGEST_STALL)
            station = f"s{random.randrange(draft.world['stations'])}"
            stalls.append({"node": station, "at": seconds_text(at), "duration": seconds_text(duration)})
        draft.faults["stalls"] = stalls


def _cut_wires(draft: _Draft, random: Random) -> None:
    """Cut links of the tree for a while: requests and replies of handovers wait."""
    if draft.world["kind"] == "cellular" and draft.world.get("links"):
        cuts = []
        for _ in range(random.choice((1, 2, 5))):
            start = random.randrange(draft.heal_at)
            end = random.randrange(start, draft.heal_at) + 1
            link = random.choice(draft.world["links"])
            cuts.append({"link": link, "start": seconds_text(start), "end": seconds_text(end)})
        draft.world["wire_cuts"] = cuts


def _clocks_in_cells(draft: _Draft, random: Random) -> None:
    if draft.world["kind"] == "cellular":
        draft.faults |= WRONG_CLOCKS


def _clocks_beyond_promise(draft: _Draft, random: Random) -> None:
    """Let clocks differ by up to a minute, where a second is promised."""
    if draft.protocol == "delta_causal":
        draft.faults |= WRONG_CLOCKS
        draft.options["skew"] = SMALL_SKEW


def _jump(draft: _Draft, random: Random) -> None:
    """Set some clocks forward. VCube takes a node that misses its tests for a crashed one, for good."""
    if "nodes" in draft.world and not draft.options.get("diagnosis"):
        draft.faults["jumps"] = [
            {
                "node": str(node),
                "at": seconds_text(random.randrange(draft.heal_at)),
                "by": seconds_text(random.choice((SECOND, 100 * SECOND, 10_000 * SECOND))),
            }
            for node in range(draft.world["nodes"])
            if random.random() < 0.5
        ]


def _refresh(draft: _Draft, random: Random) -> None:
    if draft.world["kind"] == "contacts" and "dissemination" not in draft.options:
        draft.options["refresh"] = random.choice(_REFRESH)


def _lossy_contacts(draft: _Draft, random: Random) -> None:
    """Let links lose packets while they are up. Then summaries must be repeated."""
    if draft.world["kind"] == "contacts" and draft.options.get("dissemination", "gossip") == "gossip":
        draft.world["loss"] = random.choice((0.05, 0.3, 0.6))
        draft.options["refresh"] = random.choice(_REFRESH)


def _lazy_expiry(draft: _Draft, random: Random) -> None:
    if draft.protocol == "delta_causal":
        draft.options["lazy_expiry"] = True


def _unpruned(draft: _Draft, random: Random) -> None:
    if draft.protocol == "causal_barrier":
        draft.options["prune"] = False


def _vcube_anywhere(draft: _Draft, random: Random) -> None:
    """Run VCube over the point-to-point network, whose packets never queue; tests still come in time."""
    world = draft.world
    if world["kind"] == "switched" and not world.get("stays"):
        near = draft.options.get("diagnosis")
        delays = (
            ("uniform(0.001, 0.02)",) if near else ("exponential(0.05)", "uniform(0, 3)", "normal(0.1, 0.08)")
        )
        draft.world = {"kind": "point_to_point", "nodes": world["nodes"], "delay": random.choice(delays)}


def _crowd_of_vcube(draft: _Draft, random: Random) -> None:
    """Let 64 nodes take part; those that were not drawn broadcast only replies."""
    nodes = draft.world.get("nodes", 0)
    if draft.protocol == "vcube" and not draft.options.get("diagnosis"):
        draft.workload["replies"] = float(draft.workload["replies"]) * nodes / _CROWD
        draft.world["nodes"] = _CROWD


_SITUATIONS: Final[tuple[tuple[float, Callable[[_Draft, Random], None]], ...]] = (
    (0.3, _one_way),
    (0.25, _stalled_station),
    (0.25, _cut_wires),
    (0.25, _clocks_in_cells),
    (0.12, _clocks_beyond_promise),
    (0.1, _jump),
    (0.2, _refresh),
    (0.2, _lazy_expiry),
    (0.2, _unpruned),
    (0.2, _vcube_anywhere),
    (0.2, _lossy_contacts),
    (0.05, _crowd_of_vcube),
)
