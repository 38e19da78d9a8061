"""The rules one by one: places on the screen, guards, waits, restarts, and rules that are wrong on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
import pytest

from precede.core.context import Context
from precede.core.effects import RADIO, Deliver, Effect, Observe, Persist, Send, SetTimer
from precede.core.errors import BadInput, Refused
from precede.core.identity import MessageId
from precede.core.instants import SECOND
from precede.core.messages import Message, Packet
from precede.core.node import Node, round_trip
from precede.experiments.swarm.plan import draw_plan, find_drawer
from precede.experiments.swarm.swarm import run_plan
from precede.protocols import registry
from precede.protocols.layered.direct_packet import DirectPacket
from precede.protocols.layered.envelope import Envelope
from precede.protocols.rules import lamport, sds
from precede.protocols.rules.bloom import BloomFilter
from precede.protocols.rules.screen import Screen
from tests.protocols.stores import persist

ANA, BEN, CEM = 0, 1, 2


def node(rule: str, number: int, **options: Any) -> Node:
    made = registry.make(rule, "node", Context(number, (ANA, BEN, CEM), options, Random(1)))
    made.start(0, {})
    return made


def say(sender: Node, at: int) -> Packet:
    """Broadcast at this reading of the sender's clock; return the packet that carries the message."""
    effects = sender.broadcast(b"x", at)
    return next(e.packet for e in effects if type(e) is Send and type(e.packet) is DirectPacket)


def shown(effects: Sequence[Effect]) -> list[tuple[str, str | None]]:
    """The messages that are shown, and directly above which other one."""
    above, listed = None, []
    for effect in effects:
        if type(effect) is Observe:
            above = str(effect.message.id)
        elif type(effect) is Deliver:
            listed.append((str(effect.message.id), above))
            above = None
    return listed


def test_a_screen_is_sorted_and_says_what_is_below() -> None:
    screen = Screen()
    first, second, third = (MessageId(1, 0, number) for number in (1, 2, 3))
    assert screen.insert(5, second) is None
    assert screen.insert(5, first) == second  # equal numbers: by id
    assert screen.insert(9, third) is None
    assert screen.insert(1, second) == third  # it keeps its place
    assert screen.last(2) == (second, third)
    assert (len(screen), screen.last_number()) == (3, 9)


def test_timestamps_put_an_answer_from_a_slow_clock_above_its_question() -> None:
    ana, ben, cem = node("timestamp", ANA), node("timestamp", BEN), node("timestamp", CEM)
    question = say(ana, 100)
    assert shown(ben.receive(question, ANA, 40, RADIO)) == [("0:1", None)]
    answer = say(ben, 41)  # ben's clock is 60 behind
    assert shown(cem.receive(question, ANA, 110, RADIO)) == [("0:1", None)]
    assert shown(cem.receive(answer, BEN, 111, RADIO)) == [("1:1", "0:1")]


@pytest.mark.parametrize(("guard", "place"), [("0s", None), ("10s", None), ("1h", "0:1")])
def test_the_guard_counts_a_time_ahead_of_the_own_clock_as_now(guard: str, place: str | None) -> None:
    ana, ben = node("timestamp", ANA), node("timestamp", BEN, guard=guard)
    ben.receive(say(ana, 100 * SECOND), ANA, SECOND, RADIO)  # ana's clock is 99 s ahead
    own = ben.broadcast(b"later", 20 * SECOND)
    assert shown(own) == [("1:1", place)]


@pytest.mark.parametrize("rule", ["timestamp", "lamport"])
def test_a_wait_lets_earlier_messages_come_first_and_expires(rule: str) -> None:
    ana, ben = node(rule, ANA), node(rule, BEN, wait="5s")
    first, second = say(ana, 1), say(ana, 2)
    held = ben.receive(second, ANA, SECOND, RADIO)
    timer = next(effect for effect in held if type(effect) is SetTimer and effect.key[0] == "show")
    assert timer.at == 6 * SECOND
    assert shown(held) == []
    assert [(str(item.message), item.until) for item in ben.waiting()] == [("0:2", 6 * SECOND)]
    assert shown(ben.receive(first, ANA, 2 * SECOND, RADIO)) == []
    assert shown(ben.timer(timer.key, timer.at)) == [("0:1", None), ("0:2", None)]
    assert ben.sizes()["pending"] == 0
    assert shown(ben.timer(("show", ANA, 0, 1), 7 * SECOND)) == []


def test_lamport_puts_a_late_question_above_its_answer() -> None:
    ana, ben, cem = node("lamport", ANA), node("lamport", BEN), node("lamport", CEM)
    question = say(ana, 0)
    ben.receive(question, ANA, 0, RADIO)
    answer = say(ben, 0)
    assert shown(cem.receive(answer, BEN, 0, RADIO)) == [("1:1", None)]
    assert shown(cem.receive(question, ANA, 0, RADIO)) == [("0:1", "1:1")]


def test_the_largest_lamport_time_of_a_liar_stops_nobody() -> None:
    ben = node("lamport", BEN)
    packet = say(node("lamport", ANA), 0)
    assert isinstance(packet, DirectPacket)
    lie = msgspec.structs.replace(packet.envelope, stamp=lamport.LARGEST)
    ben.receive(msgspec.structs.replace(packet, envelope=lie), ANA, 0, RADIO)
    own = say(ben, 1)
    assert isinstance(own, DirectPacket)
    assert own.envelope.stamp == lamport.LARGEST
    assert msgspec.convert(own.envelope.stamp, lamport.LamportTime) == lamport.LARGEST


def test_sds_waits_for_the_history_that_a_message_names() -> None:
    ana, ben = node("sds", ANA), node("sds", BEN)
    first, second = say(ana, 1), say(ana, 2)
    assert shown(ben.receive(second, ANA, 3, RADIO)) == []
    assert [tuple(map(str, item.waits_for)) for item in ben.waiting()] == [("0:1",)]
    assert shown(ben.receive(first, ANA, 4, RADIO)) == [("0:1", None), ("0:2", None)]


def test_sds_shows_a_message_whose_history_is_lost_after_the_wait() -> None:
    ana, ben = node("sds", ANA), node("sds", BEN, wait="5s")
    lost, second, third = say(ana, 1), say(ana, 2), say(ana, 3)
    assert shown(ben.receive(third, ANA, 0, RADIO)) == []
    assert shown(ben.receive(second, ANA, 1, RADIO)) == []
    assert shown(ben.timer(("show", ANA, 0, 2), 5 * SECOND)) == [("0:2", None)]
    assert shown(ben.timer(("show", ANA, 0, 3), 5 * SECOND)) == [("0:3", None)]
    assert shown(ben.receive(lost, ANA, 6 * SECOND, RADIO)) == [("0:1", "0:2")]


def test_a_history_of_two_does_not_name_the_third_of_three_concurrent_messages() -> None:
    """The draft's causal history is bounded: an answer is shown before one of its questions."""
    ana, ben, cem = node("sds", ANA), node("sds", BEN), node("sds", CEM)
    dan = registry.make("sds", "node", Context(3, (ANA, BEN, CEM, 3), {}, Random(1)))
    dan.start(0, {})
    questions = [say(ana, 1), say(ben, 1), say(cem, 1)]
    for source, question in enumerate(questions):
        dan.receive(question, source, 2, RADIO)
    answer = say(dan, 3)
    eva = node("sds", 4)
    for source in (BEN, CEM):
        eva.receive(questions[source], source, 4, RADIO)
    assert shown(eva.receive(answer, 3, 5, RADIO)) == [("3:1", None)]
    assert shown(eva.receive(questions[ANA], ANA, 6, RADIO)) == [("0:1", "1:1")]


def test_acknowledgements_come_from_histories_and_from_two_filters() -> None:
    ana, ben, cem = node("sds", ANA), node("sds", BEN), node("sds", CEM)
    first = say(ana, 1)
    ben.receive(first, ANA, 2, RADIO)
    assert ana.sizes()["own_unacknowledged"] == 1
    ana.receive(say(ben, 3), BEN, 4, RADIO)
    assert ana.sizes()["own_unacknowledged"] == 0  # the answer names it
    lone = say(ana, 5)
    for other, start in ((ben, 6), (cem, 8)):
        other.receive(lone, ANA, start, RADIO)
        say(other, start)
        say(other, start)
    replies = [(say(ben, 9), BEN), (say(cem, 9), CEM)]  # their histories are their own messages by now
    ana.receive(replies[0][0], BEN, 10, RADIO)
    assert ana.sizes()["own_unacknowledged"] == 1
    ana.receive(replies[1][0], CEM, 11, RADIO)
    assert ana.sizes()["own_unacknowledged"] == 0


def test_a_bloom_filter_never_denies_what_it_has_and_seldom_claims_more() -> None:
    bloom = BloomFilter(100)
    ids = [MessageId(source, 0, number) for source in range(10) for number in range(1, 11)]
    for id in ids:
        bloom.add(id)
    written = bloom.written()
    assert len(written) == bloom.size_bytes == 120
    assert bloom.may_hold(written, ids) == ids
    others = [MessageId(source, 1, number) for source in range(100) for number in range(1, 101)]
    assert len(bloom.may_hold(written, others)) < 200  # 1 in 100 by design
    bloom.add(MessageId(99, 0, 1))  # it was full: the older half is forgotten
    assert len(bloom.may_hold(bloom.written(), ids[:50])) < 10
    assert bloom.may_hold(bloom.written(), ids[50:]) == ids[50:]
    assert bloom.may_hold(b"\xff" * 119, ids) == []  # of another size


def test_the_wire_bounds_the_history_and_the_filter() -> None:
    id = MessageId(1, 0, 1)
    for stamp in (
        [1, [id] * (sds.LONGEST_HISTORY + 1), b""],
        [1, [], bytes(1 << 17)],
        [-1, [], b""],
    ):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(msgspec.to_builtins(stamp), sds.SdsStamp)


@pytest.mark.parametrize("rule", ["timestamp", "lamport", "sds"])
def test_a_restart_keeps_the_screen(rule: str) -> None:
    """At every crash between two effects, the screen after the restart is that of the log."""
    ana, ben = node(rule, ANA), node(rule, BEN)
    packets = [say(ana, 10), say(ana, 20)]
    of_ben = say(ben, 15)
    for steps in range(12):
        cut = steps
        store: dict[Any, Any] = {}
        cem = registry.make(rule, "node", Context(CEM, (ANA, BEN, CEM), {"durable": True}, Random(1)))
        cem.start(0, {})
        persist(store, cem.receive(packets[0], ANA, 11, RADIO))
        persist(store, cem.receive(of_ben, BEN, 16, RADIO))
        effects = [*cem.broadcast(b"own", 30), *cem.receive(packets[1], ANA, 31, RADIO)]
        while cut < len(effects) and type(effects[cut - 1]) is Persist and type(effects[cut]) is Deliver:
            cut += 1
        persist(store, effects[:cut])
        delivered = {id for id, _ in shown(effects[:cut])}
        again = registry.make(rule, "node", Context(CEM, (ANA, BEN, CEM), {"durable": True}, Random(1)))
        restored = again.start(32, round_trip(store))
        assert not delivered & {id for id, _ in shown(restored)}
        own_saved = any(type(effect) is Persist and effect.key[0] == "own" for effect in effects[:cut])
        assert ("2:1" in delivered | {id for id, _ in shown(restored)}) == own_saved
        assert again.sizes()["shown"] == 2 + own_saved + ("0:2" in delivered)


@pytest.mark.parametrize("rule", ["timestamp", "lamport", "sds"])
def test_destinations_and_bad_options_are_refused(rule: str) -> None:
    with pytest.raises(Refused, match=f"{rule} delivers to every node"):
        node(rule, ANA).broadcast(b"x", 1, to=(BEN,))
    with pytest.raises(BadInput, match="option 'wait'"):
        node(rule, ANA, wait="soon")


class Forgetful(lamport.Lamport):
    """Wrong on purpose: counts its own messages only, so that an answer can sort before its question."""

    def stamp_now(self, now: int) -> tuple[Any, int, int]:
        return self._own.number + 1, 8, 1


class Hasty(lamport.Lamport):
    """Wrong on purpose: shows every message at the bottom, wherever it sorts."""

    def _placed(self, id: MessageId, number: int) -> list[Effect]:
        return [effect for effect in super()._placed(id, number) if type(effect) is not Observe]


@pytest.mark.parametrize("sabotaged", [Forgetful, Hasty])
def test_a_sabotaged_rule_is_caught(sabotaged: Any) -> None:
    drawer = find_drawer("lamport")
    entry = msgspec.structs.replace(registry.find("lamport"), ordering=sabotaged)
    caught = [run_plan(draw_plan("lamport", seed, drawer), drawer, entry) for seed in range(6)]
    assert any(result.violations for result in caught)
    assert any("above" in remark for result in caught for remark in result.remarks)


def test_a_filter_has_the_same_bits_in_every_version() -> None:
    """Nodes of different versions compare their filters."""
    bloom = BloomFilter(8)
    bloom.add(MessageId(3, 0, 7))
    assert bloom.written().hex() == "2a000000001500000080"
    assert bloom.may_hold(bloom.written(), [MessageId(3, 0, 8), MessageId(3, 0, 7)]) == [MessageId(3, 0, 7)]


def test_a_liars_message_that_names_a_message_before_it_exists_is_shown_with_that() -> None:
    rule = sds.Sds(Context(0, (0, 1), sds.SdsOptions(), Random(1)))
    rule.start(0, {})
    stamp = sds.SdsStamp(5, (MessageId(0, 0, 1),), b"")
    effects: list[Effect] = []
    rule.arrive([Envelope(Message(MessageId(1, 0, 1), b"lie"), stamp, None, None, 0, 0)], 10, effects)
    assert not any(isinstance(effect, Deliver) for effect in effects)
    _, effects = rule.stamp(b"own", 20, None, None)
    shown = [effect.message.id for effect in effects if isinstance(effect, Deliver)]
    assert MessageId(1, 0, 1) in shown
