"""Swarm worlds of contacts for an ordering over a routing protocol, named `ordering+routing`.

After healing all nodes are in contact. A message is then due at its destinations if a node that is up carries
a copy, because every routing gives a copy to a destination that it meets. It is due, too, if its source is up
with its saved state and the routing never takes the last copy from a source.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import replace

from precede.experiments.run import Prepared
from precede.experiments.swarm.draw import contacts as draw_contacts
from precede.experiments.swarm.due import Message, carried_missing
from precede.experiments.swarm.plan import Drawer, Plan
from precede.experiments.swarm.swarm import events_of
from precede.protocols import registry
from precede.protocols.layered.node import LayeredNode
from precede.protocols.routing.router import Router

_KEEP_THEIR_OWN: Final = ("direct_delivery", "spray_and_wait", "prophet")


def draw(protocol: str, seed: int, random: Random) -> Plan:
    """Draw a world of contacts.

    With an ordering that promises no order, half of the messages have destinations.
    """
    ordering, _, routing = protocol.partition("+")
    plan = draw_contacts.draw(ordering, seed, random)
    known = registry.options_of_entry(registry.find(ordering), routing)
    options = {key: value for key, value in plan.run.options.items() if key in known}
    options["dissemination"] = routing
    if routing == "spray_and_wait":
        options["copies"] = random.choice((1, 2, 8))
    workload = dict(plan.run.workload)
    if registry.find(ordering).order == "none":
        workload["script"] = [
            _addressed(birth, plan.run.world["nodes"], random) for birth in workload["script"]
        ]
    return replace(plan, run=replace(plan.run, options=options, workload=workload))


def _addressed(birth: dict[str, Any], nodes: int, random: Random) -> dict[str, Any]:
    if random.random() < 0.5:
        return birth
    to = random.sample(range(nodes), random.randint(1, min(nodes, 3)))
    return birth | {"to": [str(node) for node in to]}


def missing(plan: Plan, prepared: Prepared, log: pa.Table) -> Sequence[str]:
    """List messages that are due at a destination (the module says when) and that it did not deliver."""
    names = prepared.built.names
    carried: dict[Message, None] = {}
    running: dict[tuple[str, int], None] = {}
    for hosted in prepared.world.nodes:
        if not hosted.up or hosted.gone:
            continue
        running[names[hosted.id], hosted.incarnation] = None
        assert isinstance(hosted.node, LayeredNode)
        if not isinstance(hosted.node.dissemination, Router):
            return draw_contacts.missing(plan, prepared, log)
        for id in hosted.node.dissemination.held:
            carried[names[id.source], id.incarnation, id.number] = None
    if plan.run.options["dissemination"] in _KEEP_THEIR_OWN:
        for row in events_of(log, "broadcast"):
            if (row["node"], row["incarnation"]) in running:
                carried[row["message_source"], row["message_incarnation"], row["message_number"]] = None
    return carried_missing(plan, prepared, log, draw_contacts.spreading(plan, log), carried)


DRAWER: Final = Drawer(draw, missing)
