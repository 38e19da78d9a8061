"""A persisted message number is never used again, whatever happens to its message."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from precede.core.effects import RADIO, Accept, Deliver, Send
from precede.core.instants import MINUTE, SECOND
from precede.core.node import Context, Node, round_trip
from precede.protocols import registry
from precede.protocols.layered.epidemic.packets import MessagesPacket, SummaryPacket
from tests.protocols.stores import persist


def new_node(protocol: str = "delta_causal", incarnation: int = 0) -> Node:
    options = {"durable": True, "dissemination": "epidemic"}
    return registry.make(protocol, "node", Context(0, (0, 1), options, Random(1), incarnation))


def test_the_number_of_a_message_that_expired_unsent_is_not_used_again() -> None:
    store: dict[Any, Any] = {}
    node = new_node()
    node.start(0, {})
    effects = node.broadcast(b"never sent", SECOND, None, 5 * SECOND)
    persist(store, effects[:1])  # the crash comes after the first effect
    node = new_node()
    again = node.start(MINUTE, round_trip(store))
    persist(store, again)
    assert Deliver not in [type(effect) for effect in again]
    store = {key: value for key, value in store.items() if key != ("own", 1)}  # it expired and was erased
    node = new_node()
    node.start(3 * MINUTE, round_trip(store))
    accepts = [effect for effect in node.broadcast(b"new", 4 * MINUTE) if type(effect) is Accept]
    assert [effect.message.id.number for effect in accepts] == [2]


@pytest.mark.parametrize("protocol", ["unordered", "fifo", "causal_barrier", "delta_causal", "hash_dag"])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_message_of_an_earlier_incarnation_is_delivered_to_a_later_one(
    protocol: str, restarted: bool
) -> None:
    """An incarnation without saved state is another process, before and after a restart of its own."""
    earlier = new_node(protocol)
    earlier.broadcast(b"earlier", SECOND)
    earlier.link_up(1, SECOND, RADIO)
    sent = earlier.receive(SummaryPacket(frozenset()), 1, SECOND, RADIO)
    (packet,) = [effect.packet for effect in sent if type(effect) is Send]
    assert isinstance(packet, MessagesPacket)
    store: dict[Any, Any] = {}
    later = new_node(protocol, 1)
    persist(store, later.broadcast(b"later", MINUTE))
    if restarted:
        later = new_node(protocol, 1)
        later.start(MINUTE, round_trip(store))
    effects = later.receive(packet, 1, 2 * MINUTE, RADIO)
    assert [effect.message.payload for effect in effects if type(effect) is Deliver] == [b"earlier"]
