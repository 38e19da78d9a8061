"""Further situations, added to a drawn world: crashes in recovery, odd sizes, many nodes, stalls, silence."""

from random import Random
from typing import Any, Final

from msgspec.structs import replace

from precede.core.instants import HOUR, Instant, parse_duration
from precede.experiments.swarm.plan import Plan, draw_stall, seconds_text

LARGEST: Final = 64 * 1024
_CROWDS: Final = (16, 32, 64)
_SILENCE: Final = 3 * HOUR


def add(plan: Plan, random: Random) -> Plan:
    """Return the plan with some of these situations added, where the protocol's promises cover them.

    A network with a bandwidth keeps its sizes and its number of nodes: what it carries must fit through it.
    VCube with diagnosis takes a node that stalls for a crashed one, for good.
    """
    run = plan.run
    world, workload, faults = dict(run.world), dict(run.workload), dict(run.faults)
    narrow = "bandwidth" in world or "bitrate" in world
    if not narrow and random.random() < 0.3:
        workload["size"] = random.choice((0, 1, LARGEST))
    if not narrow and world["kind"] in ("point_to_point", "contacts") and random.random() < 0.04:
        workload["replies"] = float(workload["replies"]) * world["nodes"] / _CROWDS[-1]
        world["nodes"] = _crowd(random.choice(_CROWDS), plan)
    faults["crashes"] = [_crash(dict(crash), plan.heal_at, random) for crash in faults.get("crashes", ())]
    may_stall = "nodes" in world and not faults.get("stalls") and not run.options.get("diagnosis")
    if may_stall and random.random() < 0.2:
        faults["stalls"] = [draw_stall(random, random.randrange(world["nodes"]), plan.heal_at)]
    settle = plan.settle
    if random.random() < _chance_of_silence(plan):
        late = plan.heal_at + _SILENCE
        workload["script"] = [*workload["script"], {**workload["script"][-1], "at": seconds_text(late)}]
        workload["until"] = seconds_text(late + 1)
        settle += _SILENCE
    return replace(plan, run=replace(run, world=world, workload=workload, faults=faults), settle=settle)


def _chance_of_silence(plan: Plan) -> float:
    """Return how often a message follows hours after all others.

    VCube with diagnosis tests its neighbours all the time. Radios with `delta_causal` end while messages live.
    """
    run = plan.run
    if run.world["kind"] == "point_to_point":
        return 0.05
    goes_quiet = run.world["kind"] in ("flood", "switched") and not run.options.get("diagnosis")
    return 0.03 if goes_quiet and run.protocol != "delta_causal" else 0.0


def _crowd(nodes: int, plan: Plan) -> int:
    """Return how many nodes a world may have, at most `nodes`, so that it ends after all transfers.

    A node of a contact network sends one message after the other, and each takes the time `overhead`. Replies
    at most double the messages.
    """
    drawn: int = plan.run.world["nodes"]
    overhead = parse_duration(plan.run.world.get("overhead", "0s"))
    while 2 * len(plan.run.workload["script"]) * nodes * overhead > plan.settle and nodes > drawn:
        nodes //= 2
    return max(nodes, drawn)


def _crash(crash: dict[str, Any], heal_at: Instant, random: Random) -> dict[str, Any]:
    """Let a node that restarts before the world heals crash again while it recovers, sometimes."""
    heals_later = "restart" in crash and parse_duration(crash["restart"]) < heal_at
    if heals_later and random.random() < 0.4:
        crash["again"] = random.randint(0, 6)
    return crash
