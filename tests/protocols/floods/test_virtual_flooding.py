"""Virtual flooding on its own: merging, attaching under a limit, nodes that carry data for others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import get_args

import pytest

from precede.core.effects import RADIO, Send
from precede.core.identity import NEIGHBOURS
from precede.core.messages import Packet
from precede.core.node import Node
from precede.protocols.floods.carrier import CarrierPacket, Carrying
from precede.protocols.floods.virtual_flooding import Datum, Policy, VirtualFlooding

ROOT = Path(__file__).parents[3]


def test_a_node_keeps_the_later_version_in_whatever_order_they_come() -> None:
    node: VirtualFlooding[str, str] = VirtualFlooding(Random(1))
    node.put("a", 2, "new")
    assert node.merge([Datum("a", 1, "old"), Datum("b", 1, "other")]) == [Datum("b", 1, "other")]
    assert node.attach() == (Datum("a", 2, "new"), Datum("b", 1, "other"))
    assert node.merge(node.attach()) == []


@pytest.mark.parametrize("policy", get_args(Policy))
def test_under_a_limit_every_value_is_sent_in_the_end(policy: str) -> None:
    node: VirtualFlooding[int, int] = VirtualFlooding(Random(1), limit=3, policy=policy)
    for key in range(10):
        node.put(key, 1, key)
    sent = [datum.key for _ in range(40) for datum in node.attach()]
    assert len(sent) == 120
    assert set(sent) == set(range(10))
    if policy in ("least_sent", "round_robin"):
        assert max(map(sent.count, range(10))) - min(map(sent.count, range(10))) <= 1


@pytest.mark.parametrize(
    ("policy", "next_up"), [("least_sent", True), ("freshest", True), ("round_robin", False)]
)
def test_changed_values_go_first_under_two_of_the_policies(policy: str, next_up: bool) -> None:
    node: VirtualFlooding[int, int] = VirtualFlooding(Random(1), limit=2, policy=policy)
    for key in range(6):
        node.put(key, 1, key)
    for _ in range(3):
        node.attach()
    node.put(4, 2, 99)
    assert (Datum(4, 2, 99) in node.attach()) == next_up


def test_the_example_spreads_readings_without_packets_of_their_own() -> None:
    """A grid of 25 nodes with the clock in a corner is 8 hops wide, so 8 floods spread all readings to all."""
    shown = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "readings_on_the_side.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert shown[0] == "minute 1:   25 packets, readings known:  3 to 17"
    assert shown[6].endswith("24 to 25")
    assert shown[7] == "minute 8:  200 packets, readings known: 25 to 25"


def test_a_packet_that_carries_data_counts_it_as_control() -> None:
    virtual: VirtualFlooding[str, int] = VirtualFlooding(Random(1))
    virtual.put("a", 1, 20)
    virtual.put("b", 1, 21)
    bare = CarrierPacket(Packet(), (), 100, 8, 3, 1)
    (send,) = Carrying(Node(), virtual, datum_bytes=12).passed([Send(bare, NEIGHBOURS, RADIO)])
    assert isinstance(send, Send)
    packet = send.packet
    assert (packet.size_bytes, packet.control_bytes, packet.control_entries) == (100 + 24, 8 + 24, 3 + 2)
    assert packet.messages == 1
