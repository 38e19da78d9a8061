"""Which promises a drawn world keeps: what may be required of it at its end follows from these."""

from typing import Final

from precede.core.instants import parse_duration
from precede.experiments.swarm.plan import MULTICASTS, ORDERINGS, Plan

SMALL_SKEW: Final = "1s"
"""The promised difference of clocks in worlds whose clocks differ by more."""


def keeps_clocks(plan: Plan) -> bool:
    """Tell whether clocks differ by no more than the protocol was promised.

    If they do, a node may take a message for expired everywhere that another one still delivers: Δ-causal order
    does not hold, messages may be lost, and buffers drain at deadlines that come hours after the world's end.
    """
    faults, options = plan.run.faults, plan.run.options
    return "skew" not in options or not (faults.get("jumps") or options["skew"] == SMALL_SKEW)


def keeps_stations(plan: Plan) -> bool:
    """Tell whether stations run as long as the order rests on them; if not, messages may be late.

    WAS sends no order data: it needs a tree of reliable stations (was2021, section 3). A station that crashes
    has forgotten everything when it starts again. CK and PRS send vectors, and keep their order then too.
    """
    return plan.run.protocol != "was" or not crashes_station(plan)


def is_live(plan: Plan) -> bool:
    """Tell whether a world keeps the promises on which liveness rests; if not, it is asked for safety only.

    The papers promise nothing when a station crashes, or when VCube takes a running node for a crashed one.
    """
    if plan.run.options.get("diagnosis") and plan.run.faults.get("stalls"):
        return False
    return keeps_clocks(plan) and not crashes_station(plan) and not _stalls_as_it_leaves(plan)


def _stalls_as_it_leaves(plan: Plan) -> bool:
    """Tell whether a DRIFT source is down before it could close its stream, where no view removes it.

    Without `suspect_after` the paper's nodes do not crash: the others wait for the clock of the source.
    """
    if plan.run.world["kind"] != "flood" or parse_duration(plan.run.options.get("suspect_after", "0s")):
        return False
    linger = parse_duration(plan.run.world.get("linger", "0s"))
    down_at = {
        str(stay["node"]): parse_duration(stay["leave"]) + linger
        for stay in plan.run.world.get("presence", ())
        if "leave" in stay
    }
    for stall in plan.run.faults.get("stalls", ()):
        at = parse_duration(stall["at"])
        if at < down_at.get(stall["node"], 0) <= at + parse_duration(stall["duration"]):
            return True
    return False


def crashes_station(plan: Plan) -> bool:
    """Tell whether a station crashes, and forgets what its hosts have delivered: they may get it twice."""
    return any(str(crash["node"]).startswith("s") for crash in plan.run.faults.get("crashes", ()))


def loses_store(plan: Plan) -> bool:
    """Tell whether a node loses its store, and with it messages that nobody else has."""
    return any(crash.get("keep") is False for crash in plan.run.faults.get("crashes", ()))


def leaves_unheard(plan: Plan) -> bool:
    """Tell whether a multicast node leaves and is down before everything has healed.

    Then others may never learn that it left, and send to it for ever.
    """
    world = plan.run.world
    leaves = any("leave" in stay for stay in world.get("stays", ()))
    return plan.run.protocol in MULTICASTS and leaves and parse_duration(world["linger"]) <= plan.heal_at


def loses_messages(plan: Plan) -> bool:
    """Tell whether messages may be lost for good: a store is lost, or a node leaves before they were sent."""
    return loses_store(plan) or leaves_unheard(plan)


def may_still_wait(plan: Plan) -> bool:
    """Tell whether a message may wait for a lost one at the end: for ever, or until that would have expired.

    Worlds of contacts go on until all lifetimes are over. DRIFT and WAS have ways to give lost messages up.
    """
    protocol = plan.run.protocol
    if protocol == "delta_causal" and plan.run.world["kind"] == "contacts":
        return False
    return protocol in (*ORDERINGS, *MULTICASTS) and loses_messages(plan)
