"""A message that waited is forgotten on disk once it is delivered, also when a crash fell in between."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from precede.core.context import Context
from precede.core.effects import RADIO, Deliver, Effects, Persist, Send
from precede.core.messages import Packet
from precede.core.node import Node
from precede.protocols import registry
from precede.protocols.layered.direct import DirectPacket
from precede.sim.world import round_trip


def node(protocol: str, number: int) -> Node:
    return registry.make(protocol, "node", Context(number, (0, 1), {"durable": True}, Random(1)))


def persist(store: dict[Any, Any], effects: Effects) -> None:
    for effect in effects:
        if type(effect) is Persist and effect.value is None:
            store.pop(effect.key, None)
        elif type(effect) is Persist:
            store[effect.key] = effect.value


def said(sender: Node, at: int) -> Packet:
    effects = sender.broadcast(b"x", at)
    return next(e.packet for e in effects if type(e) is Send and type(e.packet) is DirectPacket)


@pytest.mark.parametrize("protocol", ["fifo", "vector_clock", "causal_barrier", "delta_causal", "hash_dag"])
def test_no_crash_leaves_a_delivered_message_on_disk(protocol: str) -> None:
    sender, receiver = node(protocol, 1), node(protocol, 0)
    first, second = said(sender, 1), said(sender, 2)
    store: dict[Any, Any] = {}
    persist(store, receiver.receive(second, 1, 3, RADIO))
    held = [key for key in store if key[0] == "held"]
    assert len(held) == 1
    effects = receiver.receive(first, 1, 4, RADIO)
    last = max(place for place, effect in enumerate(effects) if type(effect) is Deliver)
    persist(store, effects[: last + 1])  # the crash falls behind the second delivery
    assert held[0] in store
    persist(store, node(protocol, 0).start(5, round_trip(store)))
    assert held[0] not in store
