"""Which runs have an engine of their own, and how their nodes are built."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from precede.core.compiling import is_compiled
from precede.core.node import Context, Node
from precede.protocols.guidec2021.options import DeltaCausalOptions
from precede.protocols.layered.epidemic.node import DISSEMINATION
from precede.protocols.layered.epidemic.options import EpidemicOptions
from precede.protocols.layered.node import LayeredNode
from precede.protocols.registry import BuildNode, Entry, JoinedOptions, is_durable
from precede.sim import world
from precede.sim.networks.contacts import ContactNetwork
from precede.sim.networks.network import Network
from precede.sim.workload import Workload
from precede.sim.world import World

MOST_NODES: Final = 1 << 20
"""Ids of messages up to this source have a rank in one machine word (`timed_contacts.Carrier.rank`)."""


def contact_engine(
    network: Network, workload: Workload, options: Any, nodes: int, seed: int
) -> tuple[type[World], BuildNode] | None:
    """Return the engine of a run without faults, and how its nodes are built; None if it has none."""
    if type(network) is not ContactNetwork or not (_is_plain_epidemic(options) and workload.is_for_all):
        return None
    if not _are_compiled():
        return None
    if network.takes_no_time and _evicts_the_first(options):
        from precede.experiments.instant_contacts.carrier import Carrier as InstantCarrier
        from precede.experiments.instant_contacts.world import InstantWorld

        return InstantWorld, partial(_build_node, InstantCarrier)
    if nodes < MOST_NODES and not _has_limit(options.dissemination) and network.always_takes_time(seed):
        from precede.experiments.timed_contacts.carrier import Carrier as TimedCarrier
        from precede.experiments.timed_contacts.world import TimedWorld

        return TimedWorld, partial(_build_node, TimedCarrier)
    return None


def _is_plain_epidemic(options: Any) -> bool:
    """True if nodes are an ordering over `epidemic`, with nothing saved and no repeated summaries."""
    if not isinstance(options, JoinedOptions) or options.joined_to is not DISSEMINATION or is_durable(options):
        return False
    epidemic: EpidemicOptions = options.dissemination
    return not epidemic.refresh


def _has_limit(epidemic: EpidemicOptions) -> bool:
    return bool(epidemic.cache or epidemic.cache_bytes)


def _evicts_the_first(options: JoinedOptions) -> bool:
    """True if a full cache evicts the first message, and every message expires, so that evicted ones do.

    Which message a random eviction removes depends on the log of the shared path's cache.
    """
    epidemic: EpidemicOptions = options.dissemination
    expires = isinstance(options.ordering, DeltaCausalOptions)
    return not _has_limit(epidemic) or (expires and epidemic.evict == "first")


def _are_compiled() -> bool:
    """True if the simulator and the engines are. Plain modules of these could not extend compiled ones."""
    if not is_compiled(world):
        return False
    from precede.experiments.contact_worlds import carrier

    return is_compiled(carrier)


def _build_node(make_carrier: Any, entry: Entry[Any], role: str, context: Context[Any]) -> Node:
    """Build a node as the registry does, with the carrier of an engine as its dissemination."""
    assert entry.ordering is not None
    options: JoinedOptions = context.options
    ordering = entry.ordering(replace(context, options=options.ordering))
    return LayeredNode(ordering, make_carrier(options.dissemination, context.random, ordering))
