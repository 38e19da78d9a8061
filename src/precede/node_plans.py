"""Plans the nodes of a member: which protocol with which options, for the group itself and for its topics.

May import: protocols, runtime, core
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.node import Context, Node
from precede.protocols import registry
from precede.protocols.options import declared_options
from precede.runtime.codec import Codec
from precede.runtime.names import node_id
from precede.runtime.settings import MemberSettings
from precede.runtime.topics.lane_plan import NodePlan
from precede.runtime.transports.transport import Transport

MOST_CARRIED: Final = 50_000
"""How many messages a member carries for others, unless the option `cache` says otherwise."""

LISTEN: Final = "2s"
"""How long a member of a total order looks for a running group, before its founders may found one."""

MOST_BYTES_CARRIED: Final = 1 << 28
"""How many bytes of payloads a member carries for others, unless an option says otherwise."""

_BOUNDS: Final = {
    "cache": MOST_CARRIED,
    "cache_bytes": MOST_BYTES_CARRIED,
    "keep_bytes": MOST_BYTES_CARRIED,
    "buffer": MOST_BYTES_CARRIED,
}
"""Options whose default is no bound, which a simulation can afford, and what bounds a member instead."""

PROTOCOLS: Final[dict[str, str]] = {
    "none": "unordered",
    "fifo": "fifo",
    "causal": "causal_barrier",
    "delta": "delta_causal",
    "multicast": "prs",
    "total": "drift",
}


def _ids(names: Sequence[str], book: Mapping[str, NodeId] | None) -> tuple[NodeId, tuple[NodeId, ...]]:
    """Return the node id of the last name, and the sorted ids of all; a `book` lists the ids, if given."""
    id_of = {name: node_id(name) if book is None else book[name] for name in names}
    return id_of[names[-1]], tuple(sorted(set(id_of.values())))


def dissemination_of(chosen: Mapping[str, Any]) -> str:
    return str(chosen.get("dissemination", "direct"))


def complete_options(protocol: str, options: Mapping[str, Any], transport: Transport) -> dict[str, Any]:
    """Return the options of a member's protocol, with what a member over sockets sets beside the given ones."""
    entry = registry.find(protocol)
    chosen = dict(options)
    if entry.ordering is not None:
        chosen.setdefault("dissemination", "gossip")
    known_options = registry.options_of_entry(entry, dissemination_of(chosen))
    if "durable" not in known_options:
        chosen.pop("durable", None)
    for option, most in _BOUNDS.items():
        if option in known_options:
            chosen.setdefault(option, most)
    if "medium" in known_options and not transport.one_reaches_all:
        chosen.setdefault("medium", "unicast")
    return chosen


def plan_node(
    protocol: str,
    role: str,
    name: str,
    chosen: Mapping[str, Any],
    settings: MemberSettings,
    generator: Random,
) -> NodePlan:
    """Return how the node of a protocol is made. Raise BadInput if its options are wrong."""
    entry = registry.find(protocol)
    dissemination = dissemination_of(chosen)
    own_id, ids = _ids((*settings.members, name), settings.book)

    def make_node(node: NodeId, incarnation: int) -> Node:
        return registry.make_entry(entry, role, Context(node, ids, chosen, generator, incarnation))

    probe = make_node(own_id, 0)
    title = f"{protocol} as {role}"
    if entry.ordering is not None:  # a store is bound to this title
        title = f"{protocol} over {registry.find_dissemination(dissemination).state or dissemination}"
    return NodePlan(
        make_node,
        Codec(*registry.wire_types(entry, probe, dissemination)),
        title,
        settings.incarnation is None and registry.is_renewable(probe),
        "nothing" if settings.incarnation is not None else probe.after_copy,
    )


def plan_topics(
    order: str,
    protocol: str,
    name: str,
    options: Mapping[str, Any],
    transport: Transport,
    settings: MemberSettings,
    generator: Random,
) -> NodePlan:
    """Return how the node is made that all topics of an order share, in a group that runs a `protocol`.

    Raise BadInput if this member cannot take part in that order.
    """
    if order == "total" and not settings.members:
        raise BadInput("order='total' needs members=[...] of join, the names of those who found the order")
    lane_protocol = PROTOCOLS[order]
    lane_options = _options_for_topics(protocol, lane_protocol, options, settings)
    completed = complete_options(lane_protocol, lane_options, transport)
    return plan_node(lane_protocol, "node", name, completed, settings, generator)


def _options_for_topics(
    protocol: str, lane_protocol: str, options: Mapping[str, Any], settings: MemberSettings
) -> dict[str, Any]:
    """Return the options of the node that topics share: those of the group's dissemination, if it has one."""
    chosen: dict[str, Any] = {}
    entry, lane_entry = registry.find(protocol), registry.find(lane_protocol)
    if protocol == lane_protocol:
        chosen = {key: value for key, value in options.items() if key != "lifetime"}
    elif entry.ordering is not None and lane_entry.ordering is not None:
        dissemination = str(options.get("dissemination", "gossip"))
        shared = {"dissemination", *declared_options(registry.find_dissemination(dissemination).options)}
        chosen = {key: value for key, value in options.items() if key in shared}
    chosen["durable"] = settings.store is not None
    if lane_protocol == "drift":
        chosen = {"founding": "agreed", "bootstrap_after": LISTEN, **chosen}
    return chosen
