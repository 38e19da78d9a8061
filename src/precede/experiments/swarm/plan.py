"""Plans of swarm worlds: what a seed draws for a protocol.

`DRAWERS` names the drawer of each protocol. A drawer makes a `Plan`, which is plain data that can be printed,
shrunk and run again. It may also say which messages are due after healing, and add checks of its own.
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
from precede.sim.randomness import Generators

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
    """One world of the swarm. Faults end at `heal_at`; the world is judged `settle` later.

    `dead` are the nodes that crash and never restart.
    """

    run: Run
    heal_at: Instant
    settle: Duration
    dead: tuple[NodeId, ...] = ()

    @property
    def end(self) -> Instant:
        """When the world is judged."""
        return self.heal_at + self.settle


Missing = Callable[[Plan, Prepared, pa.Table], Sequence[str]]
"""Lists messages that are due and not delivered, one line each, from the plan, the final world and the log."""

Checks = Callable[[Plan, Prepared, pa.Table], Mapping[str, Sequence[str]]]
"""Lists further findings under violations, duplicates, undelivered or leaks."""


class Drawer(Struct, frozen=True):
    """How worlds for a protocol are drawn and judged. `missing` None: every message is due everywhere."""

    draw: Callable[[str, int, Random], Plan]
    missing: Missing | None = None
    checks: Checks | None = None


def find_drawer(protocol: str) -> Drawer:
    """The drawer of a protocol."""
    if protocol not in DRAWERS:
        raise BadInput(f"no worlds are drawn for protocol {protocol!r} (known: {', '.join(DRAWERS)})")
    module, _, attribute = DRAWERS[protocol].partition(":")
    drawer: Any = getattr(import_module(module), attribute)
    assert isinstance(drawer, Drawer)
    return drawer


def draw_plan(protocol: str, seed: int, drawer: Drawer | None = None) -> Plan:
    """The world that a seed draws for a protocol."""
    drawer = drawer or find_drawer(protocol)
    return drawer.draw(protocol, seed, Generators(seed).python("swarm", protocol))


def seconds_text(micros: int) -> str:
    """An instant or duration as a scenario writes it, exactly."""
    return f"{micros}us"
