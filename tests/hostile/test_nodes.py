"""Nodes of every protocol receive well-typed packets with senseless content: they must not raise.

Such packets come from a member that has gone bad or mad; what they do to the order is another matter (see
docs/security.md), but they must not stop the node.
"""

from __future__ import annotations

from random import Random

import pytest

from precede.core.effects import RADIO, WIRED
from precede.core.node import Context
from precede.protocols import registry
from precede.runtime.codec import Codec, Garbled
from precede.runtime.links.inspection import Inspection
from tests.hostile.packets import any_packet

MEMBERS = (0, 1, 2, 3)
ROLES = [
    (name, role, spread)
    for name in registry.names()
    for role in registry.find(name).roles
    for spread in (("epidemic",) if registry.find(name).ordering is None else ("epidemic", "gossip"))
]
NOW = 1_700_000_000_000_000


def receive(name: str, role: str, dissemination: str, packets: int, seed: int) -> int:
    """Send random packets to a node; returns how many passed the inspection."""
    entry, random = registry.find(name), Random(seed)
    options = {"dissemination": dissemination} if entry.ordering is not None else {}
    node = registry.make_entry(entry, role, Context(1, MEMBERS, options, Random(seed), 0))
    kinds, stamps = registry.wire_types(entry, node, dissemination)
    codec, inspection, passed = Codec(kinds, stamps), Inspection(1, 0), 0
    node.start(NOW, {})
    for peer in (0, 2, 3):
        node.link_up(peer, NOW, RADIO)
    for step in range(packets):
        try:
            packet = codec.decode(codec.encode(any_packet(kinds[step % len(kinds)], random)))
        except Garbled:
            continue
        if inspection.incoming(packet, 100, NOW, 0) is None:
            passed += 1
            node.receive(packet, random.choice((0, 2, 3, 9)), NOW + 1000 * step, random.choice((RADIO, WIRED)))
    return passed


@pytest.mark.parametrize(("name", "role", "dissemination"), ROLES)
def test_senseless_packets_do_not_stop_a_node(name: str, role: str, dissemination: str) -> None:
    assert receive(name, role, dissemination, 1500, 5) > 50


@pytest.mark.long
@pytest.mark.parametrize(("name", "role", "dissemination"), ROLES)
def test_many_senseless_packets(name: str, role: str, dissemination: str) -> None:
    assert receive(name, role, dissemination, 100_000, 6) > 1000
