"""What a `causal_barrier` node knows after a restart, after another node's cut, and of a source that lies."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from precede.core.effects import Deliver, Discard, Effect, Persist
from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.core.node import Context, round_trip
from precede.protocols.guidec2021.causal_barrier import CausalBarrier
from precede.protocols.guidec2021.options import CausalBarrierOptions
from precede.protocols.layered.envelope import Envelope


def ordering(durable: bool = True, prune: bool = False) -> CausalBarrier:
    options = CausalBarrierOptions(durable=durable, prune=prune)
    return CausalBarrier(Context(0, (0, 1, 2, 3), options, Random(1)))


def message(source: int, number: int, *barrier: tuple[int, int]) -> Envelope:
    return Envelope(Message(MessageId(source, 0, number), b""), barrier, None, None, 0, 0)


def arrive(node: CausalBarrier, *envelopes: Envelope) -> list[Effect]:
    effects: list[Effect] = []
    for envelope in envelopes:
        node.arrive((envelope,), 0, effects)
    return effects


def about(kind: type[Any], effects: list[Effect]) -> list[tuple[int, int]]:
    ids = [effect.message.id for effect in effects if type(effect) is kind]
    return [(id.source, id.number) for id in ids]


def stored(*parts: list[Effect]) -> dict[Any, Any]:
    """What a store holds after these effects."""
    store: dict[Any, Any] = {}
    for effect in (effect for part in parts for effect in part if isinstance(effect, Persist)):
        store[effect.key] = effect.value
    return {key: value for key, value in round_trip(store).items() if value is not None}


def held(store: dict[Any, Any]) -> list[tuple[int, int]]:
    return sorted((key[1], key[3]) for key in store if key[0] == "held")


def waits(node: CausalBarrier) -> dict[tuple[int, int], list[tuple[int, int]]]:
    return {
        (one.message.source, one.message.number): [(id.source, id.number) for id in one.waits_for]
        for one in node.waiting()
    }


# -- restarts --------------------------------------------------------------------------------------------


def test_a_message_that_waited_waits_after_a_restart_and_is_delivered_after_its_predecessor():
    effects = arrive(ordering(), message(1, 2, (1, 1)))
    node = ordering()
    node.start(5, stored(effects))
    assert waits(node) == {(1, 2): [(1, 1)]}
    assert about(Deliver, arrive(node, message(1, 1))) == [(1, 1), (1, 2)]


def test_an_own_message_that_a_crash_cut_off_counts_as_delivered():
    node = ordering()
    accepted = node.stamp(b"cut off", 0, None, None)[1]
    (first, *_) = [effect for effect in accepted if isinstance(effect, Persist)]
    again = ordering()
    effects = again.start(1, stored([first]))
    assert again.delivered_tops() == [(0, 0, 1)]
    third = ordering()
    third.start(2, stored([first], list(effects)))
    assert third.delivered_tops() == [(0, 0, 1)]
    assert third.stamp(b"next", 3, None, None)[0].stamp == ((0, 1),)


def test_it_knows_its_own_messages_those_delivered_and_those_that_wait():
    node = ordering()
    node.stamp(b"", 0, None, None)
    arrive(node, message(1, 1), message(2, 5, (2, 4)))
    known = [(0, 1), (1, 1), (2, 5)]
    unknown = [(0, 2), (1, 2), (2, 4), (2, 6)]
    assert [(s, n) for s, n in known + unknown if node.knows(MessageId(s, 0, n))] == known


# -- cuts ------------------------------------------------------------------------------------------------


def test_waiting_messages_are_taken_again_behind_the_cut():
    other = ordering()
    arrive(other, message(1, 1), message(1, 2), message(2, 1, (1, 2)))
    waiting = [message(1, 2, (1, 1)), message(1, 3, (1, 2), (2, 1)), message(3, 2, (3, 1))]
    node = ordering()
    before = arrive(node, *waiting)
    assert held(stored(before)) == [(1, 2), (1, 3), (3, 2)]
    effects: list[Effect] = []
    node.adopt(other.cut(), 7, effects)
    assert about(Discard, effects) == [(1, 2)], "it is in the cut"
    assert about(Deliver, effects) == [(1, 3)]
    assert waits(node) == {(3, 2): [(3, 1)]}
    assert held(stored(before, effects)) == [(3, 2)], "the store keeps what still waits, and nothing else"
    assert dict(node.stamp(b"", 8, None, None)[0].stamp) == {1: 3, 2: 1}


@pytest.mark.parametrize("durable", [True, False])
def test_a_cut_is_stored_if_the_node_is_durable(durable: bool):
    other = ordering(prune=True)
    arrive(other, message(1, 1), message(2, 1, (1, 1)), message(3, 1))
    node = ordering(durable, prune=True)
    effects: list[Effect] = []
    node.adopt(other.cut(), 7, effects)
    assert any(isinstance(effect, Persist) for effect in effects) == durable
    if durable:
        node = ordering(prune=True)
        node.start(8, stored(effects))
    assert sorted(node.delivered_tops()) == [(1, 0, 1), (2, 0, 1), (3, 0, 1)]
    assert dict(node.stamp(b"", 9, None, None)[0].stamp) == {2: 1, 3: 1}, "the cut's barrier covers the first"


def test_a_cut_that_lacks_what_was_delivered_here_cannot_be_adopted():
    node, behind, equal = ordering(), ordering(), ordering()
    arrive(node, message(1, 1), message(1, 2))
    arrive(behind, message(1, 1), message(2, 1))
    arrive(equal, message(1, 1), message(1, 2))
    assert not node.can_adopt(behind.cut())
    assert node.can_adopt(equal.cut())
    assert not node.can_adopt(b"junk")


# -- sources that lie ------------------------------------------------------------------------------------


@pytest.mark.parametrize("others", [0, 8])  # messages that wait for other streams: few are looked up, many not
def test_a_message_that_skips_numbers_releases_those_that_wait_for_what_it_skips(others: int):
    node = ordering()
    further = [message(2, number, (3, number)) for number in range(20, 20 + others)]
    arrive(node, *further, message(2, 1, (1, 4)), message(2, 2, (1, 6)), message(2, 3, (1, 7)))
    assert about(Deliver, arrive(node, message(1, 6))) == [(1, 6), (2, 1), (2, 2)]
    assert waits(node)[2, 3] == [(1, 7)]
    assert len(waits(node)) == others + 1


def test_a_message_that_waits_longer_than_a_later_one_of_its_stream_is_discarded():
    node = ordering()
    before = arrive(node, message(1, 1, (2, 1)), message(1, 2, (3, 1)))
    effects = arrive(node, message(3, 1), message(2, 1))
    assert about(Deliver, effects) == [(3, 1), (1, 2), (2, 1)]
    assert about(Discard, effects) == [(1, 1)]
    assert held(stored(before, effects)) == []


def test_a_message_waits_for_all_that_it_lacks_and_for_nothing_else():
    node = ordering()
    arrive(node, message(1, 1), message(2, 2, (1, 1), (1, 2), (3, 3)))
    assert waits(node) == {(2, 2): [(1, 2), (3, 3)]}
    assert about(Deliver, arrive(node, message(3, 3))) == [(3, 3)]
    assert about(Deliver, arrive(node, message(1, 2))) == [(1, 2), (2, 2)]
