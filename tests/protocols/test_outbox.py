"""Outbox: what a link that comes up brings at once, and the intervals between retransmissions."""

from __future__ import annotations

from precede.core.effects import RADIO, Effect, Send, SetTimer
from precede.core.identity import MessageId
from precede.protocols.acknowledgement import AckPacket
from precede.protocols.outbox import Outbox
from tests.protocols.multicast.multicast_world import make

RTO = 200_000
FIRST, SECOND = MessageId(0, 0, 1), MessageId(0, 0, 2)
PACKET = AckPacket(())
"""Any packet: an outbox does not look into it."""


def timer_of(id: MessageId) -> tuple[str | int, ...]:
    return ("net", "rto", id.source, id.incarnation, id.number)


def test_a_peer_whose_link_comes_up_gets_what_it_has_not_acknowledged() -> None:
    outbox, ignored = Outbox(RTO), list[Effect]()
    outbox.send(FIRST, {1: PACKET, 2: PACKET}, 0, ignored)
    outbox.send(SECOND, {1: PACKET, 2: PACKET}, 0, ignored)
    outbox.acknowledged(FIRST, 1, ignored)
    effects: list[Effect] = []
    outbox.link_up(1, 5 * RTO, effects)
    assert effects == [Send(PACKET, 1, RADIO), SetTimer(timer_of(SECOND), 6 * RTO)]
    effects.clear()
    outbox.link_up(3, 5 * RTO, effects)
    assert effects == []


def test_after_a_link_came_up_the_intervals_grow_from_the_first_one_again() -> None:
    outbox, ignored = Outbox(RTO), list[Effect]()
    outbox.send(FIRST, {1: PACKET}, 0, ignored)
    for _ in range(9):
        outbox.timer(timer_of(FIRST), 0)
    assert outbox.timer(timer_of(FIRST), 0)[-1] == SetTimer(timer_of(FIRST), 32 * RTO)
    outbox.link_up(1, 0, ignored)
    assert outbox.timer(timer_of(FIRST), 0)[-1] == SetTimer(timer_of(FIRST), 2 * RTO)


def test_a_multicast_reaches_a_member_as_soon_as_its_link_is_up() -> None:
    """It used to wait for the next retransmission, up to 6.4 s later: longer than many meetings."""
    node = make("prs", 0, 3, rto=RTO)
    sent = [effect for effect in node.broadcast(b"hello", 0, (1, 2)) if isinstance(effect, Send)]
    again = [effect for effect in node.link_up(2, 7 * RTO, RADIO) if isinstance(effect, Send)]
    assert again == [effect for effect in sent if effect.to == 2]
