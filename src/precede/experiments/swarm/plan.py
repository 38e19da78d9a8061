"""What a seed draws: for each protocol, the function that turns a seed into a whole world for the swarm.

One line per protocol below; a drawer gives a `Plan`, plain data that can be printed, shrunk and run again. A
drawer may bring its own idea of what is due after healing, and further checks of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from random import Random
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.experiments.run import Prepared, Run
from precede.sim.randomness import Streams

DRAWERS: Final[dict[str, str]] = {
    "causal_barrier": "precede.experiments.swarm.draw.layered:DRAWER",
    "delta_causal": "precede.experiments.swarm.draw.layered:DRAWER",
    "hash_dag": "precede.experiments.swarm.draw.layered:DRAWER",
    "unordered": "precede.experiments.swarm.draw.layered:DRAWER",
    "fifo": "precede.experiments.swarm.draw.layered:DRAWER",
    "vector_clock": "precede.experiments.swarm.draw.layered:DRAWER",
    "vcube": "precede.experiments.swarm.draw.vcube:DRAWER",
    "drift": "precede.experiments.swarm.draw.flood:DRAWER",
    "tof": "precede.experiments.swarm.draw.flood:DRAWER",
    "prs": "precede.experiments.swarm.draw.multicast:DRAWER",
    "rst": "precede.experiments.swarm.draw.multicast:DRAWER",
    "ses": "precede.experiments.swarm.draw.multicast:DRAWER",
    "was": "precede.experiments.swarm.draw.cellular:DRAWER",
    "ck": "precede.experiments.swarm.draw.proxies:CK",
    "prs_mobile": "precede.experiments.swarm.draw.proxies:PRS_MOBILE",
}


class Plan(Struct, frozen=True):
    """One world of the swarm: act one until `heal_at`, then everything heals; checked `settle` later.

    `dead` are the nodes that crash and never come back.
    """

    run: Run
    heal_at: Instant
    settle: Duration
    dead: tuple[NodeId, ...] = ()

    @property
    def end(self) -> Instant:
        return self.heal_at + self.settle


Missing = Callable[[Plan, Prepared, pa.Table], Sequence[str]]
"""What is due and was not delivered, one line each, from the plan, the world at its end and the log."""

Checks = Callable[[Plan, Prepared, pa.Table], Mapping[str, Sequence[str]]]
"""Further findings by count name: violations, duplicates, undelivered, leaks."""


class Drawer(Struct, frozen=True):
    """`draw(protocol, seed, random)` draws a plan; `missing` None: every process at the end has everything."""

    draw: Callable[[str, int, Random], Plan]
    missing: Missing | None = None
    checks: Checks | None = None


def find_drawer(protocol: str) -> Drawer:
    """The drawer of a protocol."""
    if protocol not in DRAWERS:
        raise BadInput(f"nothing draws worlds for {protocol!r} (known: {', '.join(DRAWERS)})")
    module, _, attribute = DRAWERS[protocol].partition(":")
    found: Any = getattr(import_module(module), attribute)
    assert isinstance(found, Drawer)
    return found


def draw_plan(protocol: str, seed: int, drawer: Drawer | None = None) -> Plan:
    """The world that a seed draws for a protocol."""
    drawer = drawer or find_drawer(protocol)
    return drawer.draw(protocol, seed, Streams(seed).python("swarm", protocol))


def seconds_text(micros: int) -> str:
    """An instant or duration as a scenario writes it, exactly."""
    return f"{micros}us"
