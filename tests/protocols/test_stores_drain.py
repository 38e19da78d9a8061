"""What is over leaves the store: own messages that were passed on, steps under a checkpoint, empty sendings."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from precede.core.effects import RADIO, CancelTimer, Effect, Send, SetTimer
from precede.core.identity import MessageId
from precede.core.node import Context, Node, round_trip
from precede.protocols import registry
from precede.protocols.acknowledgement import AckPacket
from precede.protocols.multicast.packets import LifePacket
from precede.protocols.outbox import Outbox
from tests.protocols.stores import Store, persist


def kinds(store: Store) -> set[str]:
    return {key[0] if isinstance(key, tuple) else key for key in store}


def new(protocol: str, incarnation: int = 0, **options: Any) -> Node:
    given = {"durable": True, **options}
    return registry.make(protocol, "node", Context(0, (0, 1, 2), given, Random(1), incarnation))


@pytest.mark.parametrize("protocol", ["unordered", "fifo", "causal_barrier", "vector_clock"])
def test_an_own_message_that_all_have_acknowledged_leaves_the_store(protocol: str) -> None:
    store: Store = {}
    node = new(protocol, dissemination="direct")
    persist(store, node.start(0, {}))
    persist(store, node.broadcast(b"x", 1))
    assert "own" in kinds(store)
    for peer in (1, 2):
        persist(store, node.receive(AckPacket((MessageId(0, 0, 1),)), peer, 2, RADIO))
    assert "own" not in kinds(store)


@pytest.mark.parametrize("dissemination", ["epidemic", "gossip"])
def test_an_own_message_is_in_the_store_once_when_the_cache_has_it(dissemination: str) -> None:
    store: Store = {}
    node = new("unordered", dissemination=dissemination)
    persist(store, node.start(0, {}))
    persist(store, node.broadcast(b"x", 1))
    assert "own" not in kinds(store)
    assert ("net", 0, 0, 1) in store


def test_a_message_without_addressees_waits_for_no_acknowledgement() -> None:
    outbox = Outbox(1000)
    effects: list[Effect] = []
    outbox.send(MessageId(0, 0, 1), {}, 0, effects)
    assert len(outbox) == 0
    assert effects == []


def test_no_timer_runs_for_a_message_that_all_have_acknowledged() -> None:
    outbox = Outbox(1000)
    id = MessageId(0, 0, 1)
    effects: list[Effect] = []
    outbox.send(id, {1: AckPacket(()), 2: AckPacket(())}, 0, effects)
    (timer,) = (effect for effect in effects if isinstance(effect, SetTimer))
    assert not outbox.acknowledged(id, 1, effects)
    assert not any(isinstance(effect, CancelTimer) for effect in effects)
    assert outbox.acknowledged(id, 2, effects)
    assert effects[-1] == CancelTimer(timer.key)


@pytest.mark.parametrize("protocol", ["prs", "rst", "ses"])
def test_crashes_before_the_checkpoint_do_not_let_the_journal_grow(protocol: str) -> None:
    """Each life ends after the first effect, which persists a step: the next start makes the checkpoint."""
    store: Store = {}
    for life in range(3):
        node = new(protocol, rto=1000, checkpoint=1)
        persist(store, node.start(life, round_trip(store)))
        assert "step" not in kinds(store)
        persist(store, node.broadcast(b"x", life, (1,))[:1])
        assert "step" in kinds(store)


@pytest.mark.parametrize("protocol", ["prs", "rst", "ses"])
def test_a_checkpoint_leaves_no_step_and_no_announcement_in_the_store(protocol: str) -> None:
    """A later incarnation, whose announcement nobody has acknowledged, takes a checkpoint and restarts."""
    store: Store = {}
    node = new(protocol, incarnation=1, rto=1000)
    started = node.start(0, {})
    assert [effect.to for effect in started if isinstance(effect, Send)] == [1, 2]
    persist(store, started)
    steps = 0
    while "state" not in store:
        steps += 1
        persist(store, node.broadcast(b"x", steps, (1,)))
        persist(store, node.receive(AckPacket((MessageId(0, 1, steps),)), 1, steps, RADIO))
        assert steps < 1000
    assert "step" not in kinds(store)
    again = new(protocol, incarnation=1, rto=1000)
    sent = [e.packet for e in again.start(0, round_trip(store)) if isinstance(e, Send)]
    assert [packet for packet in sent if isinstance(packet, LifePacket)] == [LifePacket(1), LifePacket(1)]


@pytest.mark.parametrize("protocol", ["prs", "rst", "ses"])
@pytest.mark.parametrize("restarts", [False, True])
def test_the_state_does_not_grow_with_the_incarnations_of_others(protocol: str, restarts: bool) -> None:
    store: Store = {}
    node: Any = new(protocol, rto=1000)
    persist(store, node.start(0, {}))
    sizes = []
    for incarnation in range(1, 41):
        persist(store, node.receive(LifePacket(incarnation), 1, incarnation, RADIO))
        persist(store, node.broadcast(b"x", incarnation, (1, 2)))
        if restarts:
            node = new(protocol, rto=1000)
            persist(store, node.start(incarnation, round_trip(store)))
        sizes.append(entries(node.rule.save()))
    assert max(sizes[-10:]) <= max(sizes[5:15])


def entries(saved: Any) -> int:
    """How many values a saved state has, at any depth."""
    if isinstance(saved, dict):
        return sum(1 + entries(value) for value in saved.values())
    if isinstance(saved, list | tuple):
        return sum(entries(value) for value in saved)
    return 1
