"""The registry's entries for `drift` and `tof`, and their options."""

from __future__ import annotations

from typing import Final

from precede.core.instants import SECOND
from precede.core.node import Context, Node
from precede.protocols.drift2006.bounded import BoundedDrift
from precede.protocols.drift2006.node import DriftNode
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
from precede.protocols.floods.reliable_floods import OPTIONS
from precede.protocols.floods.virtual_flooding import POLICIES
from precede.protocols.registry import Entry, Option

_SHARED: Final = {
    **OPTIONS,
    "sources": Option("text", "all", "which members are sources at the beginning: all, or ids as 0 3 5-9"),
    "destinations": Option("text", "all", "which nodes deliver: all, or ids as 0 3 5-9"),
    "quiet": Option(
        "duration", 5 * SECOND, "flood a dummy when something waits and nothing was heard; 0s: never"
    ),
    "bootstrap_after": Option("duration", 5 * SECOND, "found a group when no source answers; 0s: never"),
    "durable": Option("bool", False, "persist what a restart needs"),
}
_DRIFT: Final = {
    "limit": Option("int", None, "most virtual-flooding entries on a packet; none: all sources"),
    "policy": Option("choice", "least_sent", "which entries, under a limit", POLICIES),
    "two_entries": Option("bool", False, "keep two entries per source at most (section 4.4)"),
    "shadow": Option("bool", False, "observe when TOF would have delivered each message"),
    "suspect_after": Option("duration", 0, "agree to go on without a source that is missed so long; 0s: never"),
    "vote_every": Option("duration", SECOND, "a view change asks again after this time"),
    "bounded": Option("int", None, "bits of the timestamps that travel, 6 to 20 (section 4.4); none: all"),
}
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


def _drift(role: str, context: Context) -> Node:
    node, bits = DriftNode(role, context), context.options["bounded"]
    return node if bits is None else BoundedDrift(node, bits)


def _tof(role: str, context: Context) -> Node:
    silent = {name: option.default for name, option in _DRIFT.items()}
    settled = Context(
        context.node, context.members, {**silent, **context.options}, context.random, context.incarnation
    )
    return DriftNode(role, settled, virtual=False)


DRIFT: Final = Entry(
    name="drift",
    title="total order by virtual flooding (TOVF)",
    paper="drift2006",
    order="total",
    worlds=("flood",),
    options={**_SHARED, **_DRIFT},
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
    options=_SHARED,
    roles=_ROLES,
    build=_tof,
    packets=_PACKETS,
)
