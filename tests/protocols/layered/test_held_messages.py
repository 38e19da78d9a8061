"""A persisted message that waited is erased after its delivery, even if a crash falls in between."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from precede.core.context import Context
from precede.core.effects import RADIO, Deliver, Send
from precede.core.messages import Packet
from precede.core.node import Node, round_trip
from precede.protocols import registry
from precede.protocols.layered.direct_packet import DirectPacket
from tests.protocols.stores import persist


def node(protocol: str, number: int) -> Node:
    return registry.make(protocol, "node", Context(number, (0, 1), {"durable": True}, Random(1)))


def broadcast_packet(sender: Node, at: int) -> Packet:
    """Broadcast, and return the packet that carries the message."""
    effects = sender.broadcast(b"x", at)
    return next(e.packet for e in effects if type(e) is Send and type(e.packet) is DirectPacket)


@pytest.mark.parametrize("protocol", ["fifo", "vector_clock", "causal_barrier", "delta_causal", "hash_dag"])
def test_a_restart_erases_a_held_message_that_was_delivered_before_the_crash(protocol: str) -> None:
    sender, receiver = node(protocol, 1), node(protocol, 0)
    first, second = broadcast_packet(sender, 1), broadcast_packet(sender, 2)
    store: dict[Any, Any] = {}
    persist(store, receiver.receive(second, 1, 3, RADIO))
    held = [key for key in store if key[0] == "held"]
    assert len(held) == 1
    effects = receiver.receive(first, 1, 4, RADIO)
    last = max(place for place, effect in enumerate(effects) if type(effect) is Deliver)
    persist(store, effects[: last + 1])  # the crash comes after the second delivery
    assert held[0] in store
    persist(store, node(protocol, 0).start(5, round_trip(store)))
    assert held[0] not in store
