"""What a restarted node says next, what it forgets, and summaries that are repeated."""

from __future__ import annotations

from random import Random
from typing import Any

from precede.core.effects import RADIO, Accept, Deliver, Effects, Persist, Send, SetTimer
from precede.core.identity import MessageId
from precede.core.instants import MINUTE, SECOND
from precede.core.messages import Message
from precede.core.node import Context, Node, round_trip
from precede.protocols import registry
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.packets import SummaryPacket, packed


def new(protocol: str, **options: Any) -> Node:
    given = {"durable": True, "dissemination": "epidemic", **options}
    return registry.make(protocol, "node", Context(0, (0, 1), given, Random(1)))


def saved(effects: Effects) -> Envelope:
    """The envelope that a broadcast puts into the store."""
    (envelope,) = [
        e.value for e in effects if isinstance(e, Persist) and isinstance(e.key, tuple) and e.key[0] == "net"
    ]
    assert isinstance(envelope, Envelope)
    return envelope


def test_the_first_message_after_a_restart_names_the_one_that_a_crash_cut_off() -> None:
    """The crash came after the first write of the broadcast: the message has its number, and no more."""
    node = new("causal_barrier")
    node.start(0, {})
    effects = node.broadcast(b"cut off", SECOND)
    (first, *_) = [effect for effect in effects if isinstance(effect, Persist)]
    again = new("causal_barrier")
    again.start(MINUTE, round_trip({first.key: first.value}))
    after = again.broadcast(b"next", 2 * MINUTE)
    assert [e.message.id.number for e in after if isinstance(e, Accept)] == [2]
    assert saved(after).stamp == ((0, 1),), "it comes after the message that was cut off"


def test_a_node_names_what_may_be_alive_by_a_clock_that_is_behind() -> None:
    """With a skew of ten seconds, a message that expired here five seconds ago may be delivered elsewhere."""
    node = new("delta_causal", skew="10s", lifetime="10min")
    node.start(0, {})
    earlier = Envelope(Message(MessageId(1, 0, 1), b"x"), (), MINUTE + 5 * SECOND, None, 0, 0)
    assert delivered(node.receive(packed([earlier]), 1, SECOND, RADIO)) == [1]
    now = MINUTE + 10 * SECOND
    later = Envelope(Message(MessageId(2, 0, 1), b"y"), (), 5 * MINUTE, None, 0, 0)
    assert delivered(node.receive(packed([later]), 1, now, RADIO)) == [1], "old ones are forgotten"
    assert (1, 1, MINUTE + 5 * SECOND) in saved(node.broadcast(b"answer", now)).stamp


def delivered(effects: Effects) -> list[int]:
    return [effect.message.id.number for effect in effects if isinstance(effect, Deliver)]


def test_summaries_are_repeated_at_the_interval_of_refresh() -> None:
    node = new("unordered", refresh="5s")
    started = node.start(0, {})
    (timer,) = [effect for effect in started if isinstance(effect, SetTimer)]
    assert timer.at == 5 * SECOND
    node.link_up(1, SECOND, RADIO)
    for turn in (1, 2):
        effects = node.timer(timer.key, turn * 5 * SECOND)
        (summary,) = summaries(effects)
        assert summary.to == 1
        if summary.key is not None:
            node.sent(summary.key, turn * 5 * SECOND, True)
        assert [e.at for e in effects if isinstance(e, SetTimer)] == [(turn + 1) * 5 * SECOND]


def test_a_summary_is_not_repeated_to_a_peer_before_the_last_one_has_left() -> None:
    """On a slow link repeated summaries would fill the queue, and messages would never get their turn."""
    node = new("unordered", refresh="5s")
    (timer,) = [effect for effect in node.start(0, {}) if isinstance(effect, SetTimer)]
    for peer in (1, 2):
        node.link_up(peer, SECOND, RADIO)
    first = {send.to: send.key for send in summaries(node.timer(timer.key, 5 * SECOND))}
    assert set(first) == {1, 2}
    assert not summaries(node.timer(timer.key, 10 * SECOND))
    assert not node.sent(first[2], 12 * SECOND, True)
    assert [send.to for send in summaries(node.timer(timer.key, 15 * SECOND))] == [2]
    node.link_down(1, 16 * SECOND, RADIO)
    node.link_up(1, 17 * SECOND, RADIO)
    node.sent(first[1], 18 * SECOND, False)
    assert [send.to for send in summaries(node.timer(timer.key, 20 * SECOND))] == [1]


def summaries(effects: Effects) -> list[Send]:
    return [e for e in effects if isinstance(e, Send) and isinstance(e.packet, SummaryPacket)]
