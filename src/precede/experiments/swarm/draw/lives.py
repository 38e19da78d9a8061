"""Lives of nodes and messages, added to a drawn world: lost stores, late joins, leaves, long lives, lifetimes.

A node that loses its store restarts as a new incarnation. Ids, incarnations and message numbers may begin near
2^31, 2^32 or the highest there are.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from precede.core.instants import MINUTE, parse_duration
from precede.experiments.swarm.large_numbers import AGED, IDS, INCARNATIONS, NUMBERS
from precede.experiments.swarm.plan import (
    EXPIRING,
    FIXED_GROUP,
    MULTICASTS,
    ORDERINGS,
    Plan,
    draw_stall,
    seconds_text,
)

_LIFETIMES: Final = ("300ms", "5s", "10min")


def add(plan: Plan, random: Random) -> Plan:
    for chance, situation in _SITUATIONS:
        if random.random() < chance:
            plan = situation(plan, random)
    return plan


def _with_faults(plan: Plan, **changed: Any) -> Plan:
    return replace(plan, run=replace(plan.run, faults={**plan.run.faults, **changed}))


def _is_ordering(plan: Plan) -> bool:
    """Tell whether a plan is one of an ordering over any dissemination but a routing."""
    return plan.run.protocol in ORDERINGS and plan.run.options.get("dissemination", "gossip") == "gossip"


def _is_multicast(plan: Plan) -> bool:
    return plan.run.protocol in MULTICASTS


def _lose_store(plan: Plan, random: Random) -> Plan:
    """Let one node lose its store in a crash, and be back before the world heals."""
    crashes = plan.run.faults.get("crashes", ())
    if not (_is_ordering(plan) or _is_multicast(plan)) or any(c.get("keep") is False for c in crashes):
        return plan
    node = str(random.randrange(plan.run.world["nodes"]))
    at = random.randrange(plan.heal_at // 2)
    back = random.randrange(at + 1, plan.heal_at)
    lost = {"node": node, "at": seconds_text(at), "restart": seconds_text(back), "keep": False}
    return _with_faults(plan, crashes=[*(crash for crash in crashes if crash["node"] != node), lost])


def _come_and_go(plan: Plan, random: Random) -> Plan:
    """Let members of a multicast group start late, and others leave for good. The first two always stay.

    A node that leaves does not crash too: it tells the others, if it has the time.
    """
    if not _is_multicast(plan):
        return plan
    stays: list[dict[str, Any]] = []
    for node in range(2, plan.run.world["nodes"]):
        chance = random.random()
        if chance < 0.2:
            stays.append({"node": str(node), "enter": seconds_text(random.randrange(1, plan.heal_at))})
        elif chance < 0.4:
            stays.append({"node": str(node), "leave": seconds_text(random.randrange(1, plan.heal_at))})
    world = {**plan.run.world, "stays": stays, "linger": random.choice(("0s", "1s", "30s"))}
    if not stays:
        return plan
    leavers = [stay["node"] for stay in stays if "leave" in stay]
    crashes = [crash for crash in plan.run.faults.get("crashes", ()) if crash["node"] not in leavers]
    return _with_faults(replace(plan, run=replace(plan.run, world=world)), crashes=crashes)


def _count_from_afar(plan: Plan, random: Random) -> Plan:
    """Give nodes ids, incarnations and message numbers that begin far from 0."""
    run = plan.run
    if not (_is_ordering(plan) or _is_multicast(plan)):
        return plan
    plan = replace(plan, ids_from=random.choice(IDS))
    if run.protocol != FIXED_GROUP:
        plan = replace(plan, incarnations_from=random.choice(INCARNATIONS))
    keeps = all(crash.get("keep") is not False for crash in run.faults.get("crashes", ()))
    if run.protocol in AGED and run.world["kind"] != "flood" and keeps:
        plan = replace(plan, numbers_from=random.choice(NUMBERS))
    return plan


def _suspect_falsely(plan: Plan, random: Random) -> Plan:
    """Stall a node for so long that VCube's tests take it for crashed."""
    options = plan.run.options
    if not options.get("diagnosis"):
        return plan
    stall = draw_stall(random, random.randrange(plan.run.world["nodes"]), plan.heal_at)
    longer = parse_duration(stall["duration"]) + 2 * int(options["test_timeout"])
    return _with_faults(plan, stalls=[stall | {"duration": seconds_text(longer)}])


def _crash_station(plan: Plan, random: Random) -> Plan:
    """Crash a station. It is down until the world heals, and has then forgotten everything."""
    world = plan.run.world
    if world["kind"] != "cellular":
        return plan
    at = random.randrange(plan.heal_at)
    station: dict[str, Any] = {"node": f"s{random.randrange(world['stations'])}", "at": seconds_text(at)}
    if random.random() < 0.5:
        station["after"] = random.randint(0, 8)
    return _with_faults(plan, crashes=[*plan.run.faults.get("crashes", ()), station])


def _expire_early(plan: Plan, random: Random) -> Plan:
    """Give some messages a lifetime of their own. `delta_causal` has them in contacts already.

    With gossip a node may have asked for a message just before it expired, and gives up within a minute.
    """
    run = plan.run
    has_them = (run.protocol, run.world["kind"]) == ("delta_causal", "contacts")
    if run.protocol not in EXPIRING or not _is_ordering(plan) or has_them:
        return plan
    script = [
        birth | {"lifetime": random.choice(_LIFETIMES)} if random.random() < 0.6 else birth
        for birth in run.workload["script"]
    ]
    asking = MINUTE if run.options.get("dissemination") == "gossip" else 0
    run = replace(run, workload={**run.workload, "script": script})
    return replace(plan, run=run, settle=plan.settle + asking)


_SITUATIONS: Final[tuple[tuple[float, Callable[[Plan, Random], Plan]], ...]] = (
    (0.15, _lose_store),
    (0.3, _come_and_go),
    (0.25, _count_from_afar),
    (0.1, _suspect_falsely),
    (0.1, _crash_station),
    (0.2, _expire_early),
)
