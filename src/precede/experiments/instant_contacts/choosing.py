"""Which runs `InstantWorld` can carry out, and how their nodes are built."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from precede.core.compiling import is_compiled
from precede.core.node import Context, Node
from precede.protocols.layered.epidemic.node import DISSEMINATION
from precede.protocols.layered.epidemic.options import EpidemicOptions
from precede.protocols.layered.node import LayeredNode
from precede.protocols.registry import Entry, JoinedOptions, is_durable
from precede.sim import world
from precede.sim.networks.contacts import ContactNetwork
from precede.sim.networks.network import Network
from precede.sim.workload import Workload
from precede.sim.world import World


def is_instant(network: Network, workload: Workload, options: Any) -> bool:
    """True if a run without faults can be carried out by `InstantWorld`.

    Its nodes are an ordering over `epidemic`, with a cache without limits, in the order of reception, and with
    nothing saved. Every message goes to all nodes. No transfer takes time.
    """
    return (
        is_compiled(world)
        and isinstance(options, JoinedOptions)
        and options.joined_to is DISSEMINATION
        and not is_durable(options)
        and _is_unlimited(options.dissemination)
        and workload.is_for_all
        and type(network) is ContactNetwork
        and network.takes_no_time
    )


def _is_unlimited(options: EpidemicOptions) -> bool:
    return options.order == "received" and not (options.cache or options.cache_bytes or options.refresh)


def build_carrying_node(entry: Entry[Any], role: str, context: Context[Any]) -> Node:
    """Build a node as the registry does, with a `Carrier` as its dissemination."""
    from precede.experiments.instant_contacts.carrier import Carrier

    assert entry.ordering is not None
    options: JoinedOptions = context.options
    ordering = entry.ordering(replace(context, options=options.ordering))
    return LayeredNode(ordering, Carrier(options.dissemination, context.random, ordering))


def instant_world() -> type[World]:
    """Import and return `InstantWorld`."""
    from precede.experiments.instant_contacts.world import InstantWorld

    return InstantWorld
