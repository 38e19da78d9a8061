"""A number is used up as soon as it is persisted, whatever becomes of its message."""

from __future__ import annotations

from random import Random
from typing import Any

from precede.core.effects import Accept, Deliver, Effects, Persist
from precede.core.instants import MINUTE, SECOND
from precede.core.node import Context, Node
from precede.protocols import registry
from precede.sim.world import round_trip


def new_node() -> Node:
    entry = registry.find("delta_causal")
    options = registry.read_options(
        registry.options_of("delta_causal", "epidemic"), {"durable": True}, entry.name
    )
    return registry.make("delta_causal", "node", Context(0, (0, 1), options, Random(1)))


def persist(store: dict[Any, Any], effects: Effects) -> None:
    for effect in effects:
        if type(effect) is Persist:
            if effect.value is None:
                store.pop(effect.key, None)
            else:
                store[effect.key] = effect.value


def test_the_number_of_a_message_that_died_unsaid_is_not_given_again() -> None:
    store: dict[Any, Any] = {}
    node = new_node()
    node.start(0, {})
    effects = node.broadcast(b"never said", SECOND, None, 5 * SECOND)
    persist(store, effects[:1])  # the crash falls behind the first step
    node = new_node()
    again = node.start(MINUTE, round_trip(store))
    persist(store, again)
    assert Deliver not in [type(effect) for effect in again]
    store = {key: value for key, value in store.items() if key != ("own", 1)}  # it died, and is forgotten
    node = new_node()
    node.start(3 * MINUTE, round_trip(store))
    said = [effect for effect in node.broadcast(b"new", 4 * MINUTE) if type(effect) is Accept]
    assert [effect.message.id.number for effect in said] == [2]
