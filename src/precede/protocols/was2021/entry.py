"""`was` as the registry knows it: its options, its packets, and how hosts and stations are made."""

from typing import Final

from precede.core.node import Context, Node
from precede.protocols.registry import Entry
from precede.protocols.was2021.host import WasHost
from precede.protocols.was2021.options import WasOptions
from precede.protocols.was2021.packets import PACKETS
from precede.protocols.was2021.station import WasStation


def build(role: str, context: Context[WasOptions]) -> Node:
    return WasHost(context) if role == "host" else WasStation(context)


ENTRY: Final = Entry(
    name="was",
    title="causal broadcast over cells, with handoff and local discard",
    paper="was2021",
    order="causal",
    worlds=("cellular",),
    options=WasOptions,
    roles=("host", "station"),
    build=build,
    packets=PACKETS,
)
