"""A restart with a full cache: the ordering receives a message before the cache evicts it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from precede.core.effects import RADIO, Deliver, Discard, Effects, Persist
from precede.core.identity import MessageId
from precede.core.instants import MINUTE
from precede.core.messages import Message
from precede.core.node import Context, Node, round_trip
from precede.protocols import registry
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.packets import packed


def new_node(protocol: str) -> Node:
    options = {"durable": True, "cache": 1, "evict": "deadline", "dissemination": "epidemic"}
    return registry.make(protocol, "node", Context(0, (0, 1), options, Random(1)))


def message(number: int, deadline: int) -> Envelope:
    return Envelope(Message(MessageId(1, 0, number), b"x"), (), deadline, None, 0, 0)


def delivered(effects: Effects) -> list[int]:
    return [effect.message.id.number for effect in effects if type(effect) is Deliver]


@pytest.mark.parametrize("protocol", ["delta_causal", "hash_dag", "unordered", "fifo"])
def test_a_restart_delivers_a_message_before_it_is_evicted(protocol: str) -> None:
    store: dict[Any, Any] = {}
    node = new_node(protocol)
    node.start(0, {})
    effects = node.receive(packed([message(1, 9 * MINUTE)]), 1, 1, RADIO)
    assert delivered(effects) == [1]
    store.update({effect.key: effect.value for effect in effects if type(effect) is Persist})
    store = {key: value for key, value in store.items() if value is not None}
    effects = node.receive(packed([message(2, 5 * MINUTE)]), 1, 2, RADIO)
    first = next(effect for effect in effects if type(effect) is Persist)
    store[first.key] = first.value  # the crash comes after the first write
    assert delivered(new_node(protocol).start(MINUTE, round_trip(store))) == [2]


def test_carried_payloads_are_bounded_in_bytes() -> None:
    options = {"cache_bytes": 1000, "dissemination": "epidemic"}
    node = registry.make("unordered", "node", Context(0, (0, 1), options, Random(1)))
    node.start(0, {})
    evicted = []
    for number in range(1, 21):
        large = Envelope(Message(MessageId(1, 0, number), b"x" * 100), (), 9 * MINUTE, None, 0, 0)
        effects = node.receive(packed([large]), 1, 1, RADIO)
        evicted += [effect.message.id.number for effect in effects if type(effect) is Discard]
    assert evicted == list(range(1, 11))
