"""Which promises a drawn world keeps: what may be required of it at its end follows from these."""

from collections.abc import Mapping
from typing import Final

from precede.core.identity import NodeId
from precede.core.instants import Instant, parse_duration
from precede.experiments.run import Prepared
from precede.experiments.swarm.plan import MULTICASTS, ORDERINGS, Plan
from precede.protocols.drift2006.node import DriftNode
from precede.protocols.drift2006.packets import node_incarnation
from precede.sim.networks.motion import Motion, scattered_connected
from precede.sim.randomness import Generators

_NEVER: Final = 1 << 62
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

    A station that crashes has forgotten everything when it starts again. WAS sends no order data: it needs a
    tree of reliable stations (was2021, section 3). In PRS with proxies a station keeps the causal barriers of
    its hosts (prs1997, section 9): once they are lost, later messages of a host do not name the earlier ones.
    CK sends vectors, and keeps its order then too.
    """
    return plan.run.protocol not in ("was", "prs_mobile") or not crashes_station(plan)


def is_live(plan: Plan) -> bool:
    """Tell whether a world keeps the promises on which liveness rests; if not, it is asked for safety only.

    The papers promise nothing when a station crashes, or when VCube takes a running node for a crashed one.
    """
    if plan.run.options.get("diagnosis") and plan.run.faults.get("stalls"):
        return False
    return keeps_clocks(plan) and not crashes_station(plan) and not _leaves_unannounced(plan)


def _leaves_unannounced(plan: Plan) -> bool:
    """Tell whether a source is down before its word that it leaves could reach all others, without views.

    Each flood reaches every node (drift2006, section 4.1), and a source that leaves without a word has crashed
    (section 7): without `suspect_after` nobody removes it, and the others wait for its clock.
    """
    world, options = plan.run.world, plan.run.options
    if world["kind"] != "flood" or parse_duration(options.get("suspect_after", "0s")):
        return False
    stays = _stays(plan)
    sources = options.get("sources", " ".join(map(str, stays))).split()
    leaving = [node for node, (_, down) in stays.items() if down < _NEVER and str(node) in sources]
    return any(_stalls_until_down(plan, node, stays) or _is_cut_off(plan, node, stays) for node in leaving)


def _stays(plan: Plan) -> dict[NodeId, tuple[Instant, Instant]]:
    """Return for each radio when it starts and when it is down for good."""
    world = plan.run.world
    stays = dict.fromkeys(range(world["nodes"]), (0, _NEVER))
    for stay in world.get("presence", ()):
        enter, down = stays[int(stay["node"])]
        if "enter" in stay:
            enter = parse_duration(stay["enter"])
        if "leave" in stay:
            down = parse_duration(stay["leave"]) + parse_duration(world.get("linger", "0s"))
        stays[int(stay["node"])] = enter, down
    return stays


def _stalls_until_down(plan: Plan, node: NodeId, stays: Mapping[NodeId, tuple[Instant, Instant]]) -> bool:
    for stall in plan.run.faults.get("stalls", ()):
        at = parse_duration(stall["at"])
        if stall["node"] == str(node) and at < stays[node][1] <= at + parse_duration(stall["duration"]):
            return True
    return False


def _is_cut_off(plan: Plan, source: NodeId, stays: Mapping[NodeId, tuple[Instant, Instant]]) -> bool:
    """Tell whether a node that stays has no way to a source from its leave on, where nothing moves.

    The only radios between them may come too late, or be down before.
    """
    world = plan.run.world
    if world.get("speed") or world.get("partitions") or not world.get("connected", True):
        return False
    width, height = world["field"]
    reach = world["reach"]
    motion = Motion(scattered_connected(len(stays), width, height, reach, Generators(plan.run.seed)))
    leave = stays[source][1] - parse_duration(world.get("linger", "0s"))
    changes = sorted({leave, *(at for stay in stays.values() for at in stay if leave < at < _NEVER)})
    heard = {source: None}
    for now in changes:
        edge = [node for node in heard if stays[node][0] <= now < stays[node][1]]
        while edge:
            for node in motion.in_range(edge.pop(), reach, 0):
                if node not in heard and stays[node][0] <= now < stays[node][1]:
                    heard[node] = None
                    edge.append(node)
    return any(node not in heard for node, (_, down) in stays.items() if down == _NEVER)


def crashes_station(plan: Plan) -> bool:
    """Tell whether a station crashes, and forgets what its hosts have delivered: they may get it twice."""
    return any(str(crash["node"]).startswith("s") for crash in plan.run.faults.get("crashes", ()))


def loses_store(plan: Plan) -> bool:
    """Tell whether a node loses its store, and with it messages that nobody else has."""
    return any(crash.get("keep") is False for crash in plan.run.faults.get("crashes", ()))


def loses_majority(prepared: Prepared) -> bool:
    """Tell whether no majority of the voters of DRIFT's latest view has its state: no view can follow then.

    A view may have shrunk to two voters, behind a partition say, before one of them lost its store. The first
    view has all members, of which a drawn world lets a minority lose their stores: nothing is exempt there.
    """
    nodes = [hosted.node for hosted in prepared.world.nodes if hosted.up]
    states = [node.state for node in nodes if isinstance(node, DriftNode) and node.state.view.crash_tolerant]
    if not states:
        return False
    incarnations = {state.me: state.incarnation for state in states}
    latest = max((state.view for state in states), key=lambda view: view.number)
    lost = [id for id in latest.voters if node_incarnation(id) < incarnations.get(id[0], 0)]
    return latest.number > 0 and 2 * len(lost) >= len(latest.voters)


def has_lifetimes(plan: Plan) -> bool:
    """Tell whether some messages have a lifetime of their own, and may expire before all have them."""
    return any("lifetime" in birth for birth in plan.run.workload.get("script", ()))


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
