"""Swarm worlds for orderings over `gossip`: the worlds of `layered`, with the other dissemination.

A name such as `fifo+gossip` draws the world that the seed draws for `fifo`, and then the options of `gossip`.
In contacts it runs on links or on a broadcast medium; the other worlds are broadcast media.
"""

from collections.abc import Sequence
from random import Random
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import replace

from precede.core.instants import MINUTE
from precede.experiments.run import Prepared
from precede.experiments.swarm.draw import contacts as draw_contacts
from precede.experiments.swarm.draw import layered
from precede.experiments.swarm.plan import OVER_GOSSIP, Drawer, Plan
from precede.protocols import registry

_REPAIR: Final = MINUTE
"""The time in which digests find what is missing, at the longest interval that `draw` draws."""


def draw(name: str, seed: int, random: Random) -> Plan:
    """Draw the world that the seed draws for the ordering, and options of `gossip`."""
    protocol = name.removesuffix(OVER_GOSSIP)
    plan = layered.draw(protocol, seed, random)
    known = registry.options_of_entry(registry.find(protocol), "gossip")
    options: dict[str, Any] = {key: value for key, value in plan.run.options.items() if key in known}
    options |= {
        "dissemination": "gossip",
        "digest": random.choice(("20ms", "60ms", "500ms")),
        "digest_longest": random.choice(("1s", "8s")),
    }
    if plan.run.world["kind"] == "contacts":
        options["medium"] = random.choice(("links", "broadcast"))
    return replace(plan, run=replace(plan.run, options=options))


def missing(plan: Plan, prepared: Prepared, log: pa.Table) -> Sequence[str]:
    if plan.run.options.get("medium") == "broadcast":
        return draw_contacts.missing(plan, prepared, log, _REPAIR)
    return layered.missing(plan, prepared, log)


DRAWER: Final = Drawer(draw, missing, layered.checks)
