"""Swarm worlds of contacts for an ordering over a routing protocol, named `ordering+routing`.

After healing all nodes are in contact. A message is then due at its destinations if a node that is up must
carry a copy, because every routing gives a copy to a destination that it meets. Who must carry a copy follows
from the rule that the routing declares (`DisseminationEntry.carriers`) and from the log: who got the message,
crashed, or gave its copy away as the rule allows. The nodes' own buffers are not asked, so a routing that loses
copies is found. A routing without a declared rule is judged by the buffers of its nodes.
"""

from collections.abc import Sequence
from random import Random
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import replace

from precede.core.instants import Instant
from precede.experiments.run import Prepared
from precede.experiments.swarm.draw import contacts as draw_contacts
from precede.experiments.swarm.due import carried_missing
from precede.experiments.swarm.events import Message, Process, events_of, message_of
from precede.experiments.swarm.plan import SORTING_RULES, Drawer, Plan
from precede.protocols import registry
from precede.protocols.layered.node import LayeredNode
from precede.protocols.routing.router import Router


def draw(protocol: str, seed: int, random: Random) -> Plan:
    """Draw a world of contacts. If the ordering promises no order, half of the messages have destinations."""
    ordering, _, routing = protocol.partition("+")
    plan = draw_contacts.draw(ordering, seed, random)
    known = registry.options_of_entry(registry.find(ordering), routing)
    options = {key: value for key, value in plan.run.options.items() if key in known}
    options["dissemination"] = routing
    if routing == "spray_and_wait":
        options["copies"] = random.choice((1, 2, 8))
    workload = dict(plan.run.workload)
    if registry.find(ordering).order == "none" and ordering not in SORTING_RULES:
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
    held: dict[Message, None] = {}
    running: dict[Process, None] = {}
    for hosted in prepared.world.nodes:
        if not hosted.up or hosted.gone:
            continue
        running[names[hosted.id], hosted.incarnation] = None
        assert isinstance(hosted.node, LayeredNode)
        if not isinstance(hosted.node.dissemination, Router):
            return draw_contacts.missing(plan, prepared, log)
        for id in hosted.node.dissemination.held:
            held[names[id.source], id.incarnation, id.number] = None
    rule = registry.find_dissemination(plan.run.options["dissemination"]).carriers
    if rule is not None:
        carriers = carriers_by_rule(rule, log, plan.heal_at)
        held = {message: None for message, nodes in carriers.items() if any(node in running for node in nodes)}
    return carried_missing(plan, prepared, log, draw_contacts.spreading(plan, log), held)


def carriers_by_rule(
    rule: registry.Carriers, log: pa.Table, heal_at: Instant
) -> dict[Message, dict[Process, None]]:
    """Return which incarnations must carry each message when the world heals, from the log alone."""
    carriers: dict[Message, dict[Process, None]] = {}
    destinations: dict[Message, list[str] | None] = {}
    senders: dict[Process, str] = {}
    given: dict[tuple[str, Message], None] = {}
    arrived: dict[Message, None] = {}
    fresh: dict[Process, list[tuple[Instant, Message]]] = {}
    for row in events_of(log, "crashed", "broadcast", "packet_received", "received", "discarded"):
        if row["at_us"] >= heal_at:
            break
        process, kind = (row["node"], row["incarnation"]), row["kind"]
        message = message_of(row)
        if kind == "packet_received":
            senders[process] = row["peer"]
        elif kind == "crashed":  # a crash may lose what arrived at the same instant
            for at, lost in fresh.pop(process, ()):
                if at == row["at_us"]:
                    carriers[lost].pop(process, None)
                    arrived.pop(lost, None)
        elif kind == "broadcast":
            carriers[message] = {process: None}
            destinations[message] = row["destinations"]
        elif message not in carriers:
            continue  # never broadcast: the witness reports it
        elif kind == "received":
            given[senders[process], message] = None
            fresh.setdefault(process, []).append((row["at_us"], message))
            if destinations[message] == [row["node"]]:
                arrived[message] = None
            elif rule != "source":
                carriers[message][process] = None
        elif row["reason"] in ("expired_cached", "evicted") or (
            rule == "last" and row["reason"] == "handed_over" and (row["node"], message) in given
        ):
            carriers[message].pop(process, None)
    if rule == "unacknowledged":
        carriers = {message: nodes for message, nodes in carriers.items() if message not in arrived}
    return carriers


DRAWER: Final = Drawer(draw, missing)
