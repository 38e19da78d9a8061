"""Which runs `TimedWorld` can carry out, and how their nodes are built."""

from __future__ import annotations

from typing import Any, Final

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

MOST_NODES: Final = 1 << 20
"""Ids of messages up to this source have a rank in one machine word (`Carrier.rank`)."""


def is_timed(network: Network, workload: Workload, options: Any, nodes: int, seed: int) -> bool:
    """True if a run without faults can be carried out by `TimedWorld`.

    Its nodes are an ordering over `epidemic`, with a cache without limits and nothing saved. Every message goes
    to all nodes. Every transfer takes time, on a link of its own.
    """
    return (
        _is_compiled()
        and isinstance(options, JoinedOptions)
        and options.joined_to is DISSEMINATION
        and not is_durable(options)
        and _is_unlimited(options.dissemination)
        and workload.is_for_all
        and nodes < MOST_NODES
        and type(network) is ContactNetwork
        and network.always_takes_time(seed)
    )


def _is_compiled() -> bool:
    """True if the simulator and this package are. Plain modules of it could not extend compiled ones."""
    if not is_compiled(world):
        return False
    from precede.experiments.timed_contacts import marks

    return is_compiled(marks)


def _is_unlimited(options: EpidemicOptions) -> bool:
    return not (options.cache or options.cache_bytes or options.refresh)


def build_carrying_node(entry: Entry[Any], role: str, context: Context[Any]) -> Node:
    """Build a node as the registry does, with a `Carrier` as its dissemination."""
    from precede.experiments.timed_contacts.carrier import Carrier

    assert entry.ordering is not None
    options: JoinedOptions = context.options
    ordering = entry.ordering(replace(context, options=options.ordering))
    return LayeredNode(ordering, Carrier(options.dissemination, context.random, ordering))


def timed_world() -> type[World]:
    """Import and return `TimedWorld`, which needs the words of the compiler's runtime library."""
    from precede.experiments.timed_contacts.world import TimedWorld

    return TimedWorld
