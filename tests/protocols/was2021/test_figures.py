"""Figures 2 to 5 of the WAS paper, step by step, and a schedule that an earlier version of our fixes failed."""

from __future__ import annotations

from typing import Any

import pytest

from precede.core.effects import RADIO, CancelSend, CancelTimer, Effect, Send, SetTimer
from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.core.messages import Message
from precede.core.node import Context
from precede.protocols import registry
from precede.protocols.was2021.new_station import NewStation
from precede.protocols.was2021.packets import (
    ConnectAckPacket,
    FirstResponsePacket,
    LeaveAckPacket,
    PrivatePacket,
    SecondResponsePacket,
)
from precede.protocols.was2021.record import Record
from tests.protocols.was2021.theatre import Steady, Theatre

PAIR = ((1, 2),)
"""s1 - s2."""


def kinds(theatre: Theatre, node: int, target: int) -> list[str]:
    """The kinds of the packets from one node to another, in order."""
    return [packet.kind for _, sender, to, packet in theatre.frames if (sender, to) == (node, target)]


def test_figure_2_loss_is_repaired_and_everything_is_discarded() -> None:
    """h1 broadcasts m1, misses it and its acknowledgement, and gets m2 first, which h2 sends after m1."""
    theatre = Theatre(hosts=(11, 12), tree=PAIR)
    theatre.at(100, theatre.enter, 11, 1)
    theatre.at(100, theatre.enter, 12, 2)
    theatre.at(1000, theatre.say, 11, "m1")
    theatre.lose(1000, 1010, "data", host=11)
    theatre.lose(1000, 1200, "station_ack", host=11)
    theatre.at(1020, theatre.say, 12, "m2")
    theatre.run(1060)
    assert theatre.delivered(12) == ["m1", "m2"]
    assert theatre.delivered(11) == ["m1", "m2"]
    assert kinds(theatre, 1, 11).count("data") == 3, "m1 lost, m2, m1 again"
    theatre.run(4000)
    assert kinds(theatre, 11, 1).count("up") == 2, "h1 repeats m1, and s1 ignores the repetition"
    assert theatre.verdict(due=(11, 12)).clean()
    assert not any(theatre.nodes[host].sizes()["sbuffer"] for host in (11, 12))


@pytest.mark.parametrize("lost", ["nothing", "connect", "connect_ack"])
def test_figure_3_a_join_succeeds_if_its_first_frame_is_lost(lost: str) -> None:
    theatre = Theatre(hosts=(11,), tree=PAIR)
    theatre.lose(100, 150, lost, host=11)
    theatre.at(100, theatre.enter, 11, 1)
    theatre.run(140)
    assert theatre.nodes[11].connected == (lost == "nothing")  # type: ignore[attr-defined]
    registered = 11 in theatre.nodes[1].records  # type: ignore[attr-defined]
    assert registered == (lost != "connect"), "the host cannot tell these two cases apart"
    theatre.run(1000)
    assert theatre.verdict().clean()


def crossing() -> Theatre:
    """Figure 4: m1 is broadcast in cell 1 and m2 in cell 2 at once, so s1 has m1, m2 and s2 has m2, m1."""
    theatre = Theatre(hosts=(11, 12, 13), tree=PAIR)
    theatre.at(100, theatre.enter, 11, 1)
    theatre.at(100, theatre.enter, 12, 2)
    theatre.at(100, theatre.enter, 13, 1)
    theatre.at(1000, theatre.say, 11, "m1")
    theatre.at(1000, theatre.say, 12, "m2")
    return theatre


def test_figure_4_stations_number_concurrent_messages_differently() -> None:
    theatre = crossing()
    theatre.run(1030)
    for station, words in ((1, [b"m1", b"m2"]), (2, [b"m2", b"m1"])):
        buffer = theatre.nodes[station].buffer  # type: ignore[attr-defined]
        assert [message.payload for message in buffer.messages.values()] == words
    assert theatre.delivered(11) == ["m1", "m2"]
    assert theatre.delivered(12) == ["m2", "m1"]


def test_figure_5_handoff_recovers_what_was_discarded_and_skips_what_was_delivered() -> None:
    """h1 has m1 and not m2; s1 has discarded m1, s2 has discarded m2; m3 is broadcast during the handoff."""
    theatre = crossing()
    theatre.lose(1000, 1900, "data", host=11, word="m2")
    # In cell 2 h2 misses m1, so that s2 keeps m1 and discards m2, as in the figure.
    theatre.lose(1000, 2500, "data", host=12, word="m1")
    theatre.at(1800, theatre.enter, 11, 2)
    theatre.at(1815, theatre.say, 13, "m3")
    theatre.run(5000)
    sent = [packet for _, _, _, packet in theatre.frames]
    first = next(packet for packet in sent if isinstance(packet, FirstResponsePacket))
    second = next(packet for packet in sent if isinstance(packet, SecondResponsePacket))
    answer = next(
        packet
        for packet in sent
        if isinstance(packet, ConnectAckPacket) and packet.host == 11 and packet.ses == 2
    )
    assert [(id.source, id.number) for id in first.undelivered] == [(12, 1)]
    assert first.accepted == 1
    assert [message.payload for message in second.recovered] == [b"m2"]
    assert [(id.source, id.number) for id in second.received] == [(13, 1)]
    assert (answer.start, answer.recovered) == (3, 1), "m2 as number 2, then s2's own numbers from m3 on"
    assert any(isinstance(packet, PrivatePacket) and packet.message.payload == b"m2" for packet in sent)
    assert theatre.delivered(11) == ["m1", "m2", "m3"]
    assert theatre.verdict(due=(11, 12, 13)).clean()


def test_a_recovered_message_that_is_lost_is_sent_again() -> None:
    theatre = crossing()
    theatre.lose(1000, 1900, "data", host=11, word="m2")
    theatre.lose(1000, 2500, "data", host=12, word="m1")
    theatre.at(1800, theatre.enter, 11, 2)
    theatre.lose(1800, 2100, "private", host=11)
    theatre.run(2100)
    assert kinds(theatre, 2, 11).count("private") > 0
    assert theatre.delivered(11) == ["m1"]
    theatre.run(5000)
    assert theatre.delivered(11) == ["m1", "m2"]
    assert theatre.verdict(due=(11, 12, 13)).clean()


def test_one_timer_runs_while_recovered_messages_are_sent() -> None:
    station = registry.make("was", "station", Context(2, (1, 2, 11), {"stations": 2}, Steady()))
    record = Record(11, (), 2, 2, 1, 1, 1, owner=True, private={1: Message(MessageId(12, 0, 1), b"m")})
    station.records[11] = record  # type: ignore[attr-defined]
    transmission = station.transmission  # type: ignore[attr-defined]
    effects: list[Effect] = []
    transmission.send_private(record, 10, effects)
    transmission.private_sent(11, 1, 20, effects)
    timers = [effect for effect in effects if isinstance(effect, SetTimer)]
    assert timers == [SetTimer("private", 10 + transmission.options.retransmit)]
    again: list[Effect] = []
    transmission.repeat_private(10 + transmission.options.retransmit, again)
    assert [type(effect) for effect in again] == [Send, SetTimer]


def test_packets_queued_for_a_host_that_moves_on_are_cancelled() -> None:
    """The station's radio is busy: a recovered message is still queued when the host's record is given away."""
    station = registry.make("was", "station", Context(2, (1, 2, 11), {"stations": 2}, Steady()))
    record = Record(11, (), 2, 2, 1, 1, 1)
    record.private_at = {1: None, 2: 40}
    station.records[11] = record  # type: ignore[attr-defined]
    effects: list[Effect] = []
    station.registrations.release(record, effects)  # type: ignore[attr-defined]
    assert CancelSend(("private", 11, 1)) in effects
    assert CancelSend(("private", 11, 2)) not in effects, "it has left"


@pytest.mark.parametrize("most", [1, 2, 9])
def test_a_second_response_in_parts_recovers_the_same(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in figure 5, with three messages that h1 lacks and s2 has discarded."""
    whole, parts = NewStation.on_second_response, []

    def receive(self: NewStation, packet: SecondResponsePacket, now: Instant, effects: list[Effect]) -> None:
        for part in packet.divided(most) if packet.recovered else (packet,):
            assert isinstance(part, SecondResponsePacket)
            parts.append(len(part.recovered))
            whole(self, part, now, effects)

    monkeypatch.setattr(NewStation, "on_second_response", receive)
    theatre = crossing()
    for word in ("m2", "n2", "o2"):
        theatre.lose(1000, 1900, "data", host=11, word=word)
    theatre.at(1000, theatre.say, 12, "n2")
    theatre.at(1000, theatre.say, 12, "o2")
    theatre.lose(1000, 2500, "data", host=12, word="m1")
    theatre.at(1800, theatre.enter, 11, 2)
    theatre.at(1815, theatre.say, 13, "m3")
    theatre.run(5000)
    assert parts == {1: [1, 1, 1], 2: [2, 1], 9: [3]}[most]
    assert theatre.delivered(11) == ["m1", "m2", "n2", "o2", "m3"]
    assert theatre.verdict(due=(11, 12, 13)).clean()


def test_a_denial_in_an_overtaken_connection_makes_no_second_owner() -> None:
    """s0 gave the record to the newest connection and denies an older one, which must not start a new record.

    The chain is s1 - s3 - s4 - s0 - s2. Host 10: s0, then s1 (Ses 2), then s2 (Ses 3), then s1 again (Ses 4).
    """
    theatre = Theatre(hosts=(10, 12), tree=((1, 3), (3, 4), (4, 0), (0, 2)))
    theatre.at(100, theatre.enter, 10, 0)
    theatre.at(100, theatre.enter, 12, 2)
    theatre.at(1000, theatre.enter, 10, 1)
    theatre.at(1044, theatre.enter, 10, 2)
    theatre.at(1120, theatre.enter, 10, 1)
    for ms in range(1000, 1400):
        theatre.run(ms)
        owners = [
            station
            for station in theatre.stations
            if (record := theatre.nodes[station].records.get(10)) and record.owner  # type: ignore[attr-defined]
        ]
        assert len(owners) <= 1, f"at {ms} ms: {owners}"
    theatre.at(1500, theatre.say, 12, "a")
    theatre.run(5000)
    assert theatre.verdict(due=(10, 12)).clean()


def test_only_the_acknowledgement_of_this_leave_ends_it() -> None:
    """E12: a host that leaves repeats its request under a new connection number until that is acknowledged."""
    host: Any = registry.make("was", "host", Context(5, (), {"stations": 2}, Steady(0)))
    host.start(0, {})
    host.link_up(0, 0, RADIO)
    host.leave(1_000)
    for packet in (LeaveAckPacket(4, host.ses), LeaveAckPacket(5, host.ses - 1)):
        assert host.receive(packet, 0, 2_000, RADIO) == []
        assert not host.left
    assert host.receive(LeaveAckPacket(5, host.ses), 0, 3_000, RADIO) == [CancelTimer("connect")]
    assert host.left
