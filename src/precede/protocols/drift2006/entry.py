"""The registry's entries for `drift` and `tof`."""

from typing import Final

import msgspec

from precede.core.node import Context, Node
from precede.protocols.drift2006.bounded import BoundedDrift
from precede.protocols.drift2006.node import DriftNode
from precede.protocols.drift2006.options import DriftOptions, TofOptions
from precede.protocols.drift2006.packets import (
    CheckpointPacket,
    ControlPacket,
    DigestPacket,
    DriftPacket,
    DummyPacket,
    KnockPacket,
    ViewPacket,
    WantPacket,
)
from precede.protocols.registry import Entry

_PACKETS: Final = (
    DriftPacket,
    DummyPacket,
    ControlPacket,
    DigestPacket,
    WantPacket,
    ViewPacket,
    KnockPacket,
    CheckpointPacket,
)
_ROLES: Final = ("node", "source", "destination", "forwarder")


def _drift(role: str, context: Context[DriftOptions]) -> Node:
    """Build a DRIFT node. It reuses timestamps if the option `bounded` is set."""
    node, bits = DriftNode(role, context), context.options.bounded
    return node if bits is None else BoundedDrift(node, bits)


def _tof(role: str, context: Context[TofOptions]) -> Node:
    """Build a TOF node: a DRIFT node without virtual flooding, with defaults for options of DRIFT alone."""
    options = msgspec.convert(context.options, DriftOptions, from_attributes=True)
    settled = Context(context.node, context.members, options, context.random, context.incarnation)
    return DriftNode(role, settled, virtual=False)


DRIFT: Final = Entry(
    name="drift",
    title="total order by virtual flooding (TOVF)",
    paper="drift2006",
    order="total",
    worlds=("flood",),
    options=DriftOptions,
    roles=_ROLES,
    build=_drift,
    packets=_PACKETS,
)

TOF: Final = Entry(
    name="tof",
    title="total order by flooding alone (Lamport)",
    paper="drift2006",
    order="total",
    worlds=("flood",),
    options=TofOptions,
    roles=_ROLES,
    build=_tof,
    packets=_PACKETS,
)
