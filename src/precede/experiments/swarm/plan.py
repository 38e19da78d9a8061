"""Plans of swarm worlds: what a seed draws for a protocol.

`DRAWERS` names the drawer of each protocol, of each ordering over `gossip`, and of DRIFT's founding. A drawer
makes a `Plan`, which is plain data that can be printed, shrunk and run again. It may also say which messages
are due after healing, and add checks of its own.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from random import Random
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from precede.core.errors import BadInput
from precede.core.identity import Count, Incarnation, NodeId
from precede.core.instants import Duration, Instant
from precede.experiments.own_modules import allow_own_modules
from precede.experiments.run import Prepared, Run
from precede.protocols import registry
from precede.sim.randomness import Generators

OVER_GOSSIP: Final = "+gossip"
"""The end of a name that stands for an ordering over the dissemination `gossip`."""

DRAWERS: Final[dict[str, str]] = {
    "causal_barrier": "precede.experiments.swarm.draw.layered:DRAWER",
    "delta_causal": "precede.experiments.swarm.draw.layered:DRAWER",
    "hash_dag": "precede.experiments.swarm.draw.layered:DRAWER",
    "unordered": "precede.experiments.swarm.draw.layered:DRAWER",
    "fifo": "precede.experiments.swarm.draw.layered:DRAWER",
    "vector_clock": "precede.experiments.swarm.draw.layered:DRAWER",
    "arrival": "precede.experiments.swarm.draw.layered:DRAWER",
    "timestamp": "precede.experiments.swarm.draw.layered:DRAWER",
    "lamport": "precede.experiments.swarm.draw.layered:DRAWER",
    "sds": "precede.experiments.swarm.draw.layered:DRAWER",
    "causal_barrier+gossip": "precede.experiments.swarm.draw.gossip:DRAWER",
    "delta_causal+gossip": "precede.experiments.swarm.draw.gossip:DRAWER",
    "hash_dag+gossip": "precede.experiments.swarm.draw.gossip:DRAWER",
    "unordered+gossip": "precede.experiments.swarm.draw.gossip:DRAWER",
    "fifo+gossip": "precede.experiments.swarm.draw.gossip:DRAWER",
    "vector_clock+gossip": "precede.experiments.swarm.draw.gossip:DRAWER",
    "timestamp+gossip": "precede.experiments.swarm.draw.gossip:DRAWER",
    "lamport+gossip": "precede.experiments.swarm.draw.gossip:DRAWER",
    "sds+gossip": "precede.experiments.swarm.draw.gossip:DRAWER",
    "vcube": "precede.experiments.swarm.draw.vcube:DRAWER",
    "drift": "precede.experiments.swarm.draw.flood:DRAWER",
    "drift+founding": "precede.experiments.swarm.draw.founding:DRAWER",
    "drift+meeting": "precede.experiments.swarm.draw.meeting:DRAWER",
    "tof": "precede.experiments.swarm.draw.flood:DRAWER",
    "prs": "precede.experiments.swarm.draw.multicast:DRAWER",
    "rst": "precede.experiments.swarm.draw.multicast:DRAWER",
    "ses": "precede.experiments.swarm.draw.multicast:DRAWER",
    "was": "precede.experiments.swarm.draw.cellular:DRAWER",
    "ck": "precede.experiments.swarm.draw.proxies:CK",
    "prs_mobile": "precede.experiments.swarm.draw.proxies:PRS_MOBILE",
}
ORDERINGS: Final = ("unordered", "fifo", "vector_clock", "causal_barrier", "delta_causal", "hash_dag")
MULTICASTS: Final = ("prs", "rst", "ses")
EXPIRING: Final = ("delta_causal", "unordered")
"""The protocols in which nothing waits for a message that has expired."""
FIXED_GROUP: Final = "vector_clock"
"""The protocol in which a node that lost its store, hence a later incarnation, may not broadcast."""
SORTING_RULES: Final = ("timestamp", "lamport", "sds")
"""The rules that sort a list on a screen. They promise no order and refuse destinations."""
FURTHER_FROM: Final = 1_000_000
"""From this seed on, the modules `further`, `rare` and `lives` add situations to what a drawer has drawn.

Worlds of lower seeds stay as they were, so that their event logs can be compared with those of older versions.
"""
_ROUTED: Final = "precede.experiments.swarm.draw.routing:DRAWER"
"""The module and name of the drawer for `ordering+routing`, as in `fifo+prophet`."""


class Plan(Struct, frozen=True):
    """One world of the swarm. Faults end at `heal_at`; it is judged `settle` later. `dead` never restart.

    Ids and incarnations are counted from `ids_from` and `incarnations_from` inside of nodes, which begin after
    `numbers_from` messages of each source (`large_numbers`).
    """

    run: Run
    heal_at: Instant
    settle: Duration
    dead: tuple[NodeId, ...] = ()
    ids_from: NodeId = 0
    incarnations_from: Incarnation = 0
    numbers_from: Count = 0

    @property
    def end(self) -> Instant:
        return self.heal_at + self.settle


Missing = Callable[[Plan, Prepared, pa.Table], Sequence[str]]
"""A function of plan, final world and log that lists messages which are due and not delivered, a line each."""

Checks = Callable[[Plan, Prepared, pa.Table], Mapping[str, Sequence[str]]]
"""A function that lists further findings by name: violations, duplicates, undelivered or leaks."""


class Drawer(Struct, frozen=True):
    """Draws and judges the worlds of a protocol. `missing` lists messages that are due and not delivered.

    Without it, every message is due at every running node that it was sent to after the node started.
    """

    draw: Callable[[str, int, Random], Plan]
    missing: Missing | None = None
    checks: Checks | None = None


def find_drawer(protocol: str) -> Drawer:
    """Load the drawer of a protocol, of an ordering over a routing (`fifo+prophet`), or of a plug-in."""
    if protocol in DRAWERS:
        return _load(DRAWERS[protocol])
    allow_own_modules()
    return _load(_ROUTED if "+" in protocol else drawer_path(registry.find(protocol)))


def drawer_of_entry(entry: registry.Entry[Any]) -> Drawer:
    return _load(drawer_path(entry))


def _load(path: str) -> Drawer:
    module, _, attribute = path.partition(":")
    drawer: Any = getattr(import_module(module), attribute)
    assert isinstance(drawer, Drawer)
    return drawer


def drawer_path(entry: registry.Entry[Any]) -> str:
    """Return `module:NAME` of the drawer of a foreign protocol, chosen by the worlds in which it can run."""
    if entry.order == "multicast" and "point_to_point" in entry.worlds:
        return DRAWERS["prs"]
    for kind in ("point_to_point", "contacts"):
        if kind in entry.worlds:
            return f"precede.experiments.swarm.draw.{kind}:DRAWER"
    raise BadInput(f"no worlds are drawn for {entry.name!r}: it needs {', '.join(entry.worlds)}")


def draw_plan(protocol: str, seed: int, drawer: Drawer | None = None, further: bool = True) -> Plan:
    """Draw the world of a seed for a protocol. One that is not built in gets only options that it has.

    Without `further` it is the world that the seed drew before there were further situations.
    """
    drawer = drawer or find_drawer(protocol)
    plan = drawer.draw(protocol, seed, Generators(seed).python("swarm", protocol))
    if further and seed >= FURTHER_FROM:
        for name in ("further", "rare", "lives"):
            add = import_module(f"precede.experiments.swarm.draw.{name}").add
            plan = add(plan, Generators(seed).python("swarm", name, protocol))
    if protocol in DRAWERS or "+" in protocol:
        return plan
    entry = registry.find(protocol)
    known = registry.options_of_entry(entry, registry.usual_dissemination(str(plan.run.world["kind"])))
    options = {key: value for key, value in plan.run.options.items() if key in known}
    return replace(plan, run=replace(plan.run, options=options))


def seconds_text(micros: int) -> str:
    """Write an instant or duration as a scenario does, in whole microseconds: `1500us`."""
    return f"{micros}us"


WRONG_CLOCKS: Final[Mapping[str, Any]] = {"skew": "uniform(0, 30)", "drift_ppm": 200}


def draw_script(random: Random, nodes: int, heal_at: Instant, messages: int) -> list[dict[str, Any]]:
    """Draw so many broadcasts of random nodes before healing."""
    births = sorted(random.randrange(heal_at) for _ in range(messages))
    return [{"src": str(random.randrange(nodes)), "at": seconds_text(at)} for at in births]


def draw_stall(random: Random, node: NodeId, heal_at: Instant) -> dict[str, Any]:
    """Draw a time in which a node does nothing."""
    at, duration = random.randrange(heal_at), random.randrange(heal_at)
    return {"node": str(node), "at": seconds_text(at), "duration": seconds_text(duration)}


def partition_of(start: Instant, end: Instant, inside: Iterable[NodeId]) -> dict[str, Any]:
    """Return a partition that separates some nodes from all others."""
    return {
        "start": seconds_text(start),
        "end": seconds_text(end),
        "groups": [[str(node) for node in sorted(inside)]],
    }
