"""Transfers that take time or are cut off, in every order of transfer; full caches; packets on the wire."""

import msgspec
import pytest

from precede.core.identity import MessageId
from precede.core.instants import MILLISECOND, MINUTE, SECOND
from precede.core.messages import Message
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.packets import HavePacket, MessagesPacket, SummaryPacket, packed
from precede.protocols.registry import Entry
from tests.protocols.guidec2021.contact_worlds import (
    Birth,
    Setting,
    contact_world,
    deliveries,
    play,
    receptions,
    rows_of,
)
from tests.protocols.guidec2021.literal import PRINTED_CAUSAL

TEN = [Birth(0, second * SECOND) for second in range(10)]


def meeting(length: int, **network: object) -> Setting:
    """Node 0 has ten messages when it meets node 1 at second 100 for `length` microseconds."""
    return Setting(2, [(0, 1, 100 * SECOND, 100 * SECOND + length)], TEN, network=network, end=10 * MINUTE)


def received_by_1(setting: Setting, **options: str) -> list[int]:
    rows = play(setting, "causal_barrier", **options)
    return [row.message[2] for row in rows if row.kind == "received" and row.node == 1]


def test_a_contact_that_ends_keeps_the_messages_transferred_before() -> None:
    assert received_by_1(meeting(3 * SECOND + 1, overhead=SECOND)) == [1, 2, 3]
    assert received_by_1(meeting(3 * SECOND, overhead=SECOND)) == [1, 2], "contacts end first"
    assert received_by_1(meeting(1)) == list(range(1, 11)), "transfers without delay need no time"


def test_a_transfer_takes_size_over_bandwidth_plus_overhead() -> None:
    rows = play(meeting(MINUTE, bandwidth=1000.0, overhead=SECOND), "causal_barrier")
    times = [row.at - 100 * SECOND for row in rows if row.kind == "received"]
    first = packed((Envelope(Message(MessageId(0, 0, 1), b"x" * 10), (), None, None, 16, 0),)).size_bytes
    assert times[0] == SECOND + first * MILLISECOND
    assert times[1] > times[0] + SECOND, "the second message names the first and is longer"


def test_a_bandwidth_alone_makes_transfers_take_time() -> None:
    rows = play(meeting(MINUTE, bandwidth=1000.0), "causal_barrier")
    times = [row.at - 100 * SECOND for row in rows if row.kind == "received"]
    first = packed((Envelope(Message(MessageId(0, 0, 1), b"x" * 10), (), None, None, 16, 0),)).size_bytes
    assert times[0] == first * MILLISECOND


def test_a_transmission_to_all_neighbours_takes_its_time_and_reaches_those_in_range_at_its_end() -> None:
    contacts = [(0, 1, 0, MINUTE), (0, 2, 0, 10 * SECOND + 1)]
    setting = Setting(3, contacts, [Birth(0, 10 * SECOND)], network={"bandwidth": 1000.0}, end=MINUTE)
    world, sink = contact_world(setting, "unordered", dissemination="gossip", medium="broadcast")
    world.run(setting.end)
    world.recorder.flush()
    rows = sink.events().to_pylist()
    (sent, *_) = [row for row in rows if row["kind"] == "sent" and row["packet_kind"] == "gossip"]
    (got,) = [row for row in rows if row["kind"] == "received" and row["message_number"] == 1]
    assert (got["node"], got["at_us"]) == ("1", sent["at_us"] + sent["packet_bytes"] * MILLISECOND)


def test_messages_of_a_cut_transfer_are_sent_at_the_next_contact() -> None:
    contacts = [(0, 1, start * SECOND, start * SECOND + 2500 * MILLISECOND) for start in (100, 200, 300, 400)]
    setting = Setting(2, contacts, TEN, network={"overhead": SECOND}, end=10 * MINUTE)
    assert received_by_1(setting) == list(range(1, 9))


@pytest.mark.parametrize(
    ("order", "expected"),
    [("received", [1, 2, 3]), ("oldest", [1, 2, 3]), ("newest", [10, 9, 8]), ("per_source", [1, 2, 3])],
)
def test_messages_are_sent_in_the_chosen_order(order: str, expected: list[int]) -> None:
    assert received_by_1(meeting(3500 * MILLISECOND, overhead=SECOND), order=order) == expected


def test_the_random_order_depends_on_the_seed_alone() -> None:
    setting = meeting(MINUTE, overhead=SECOND)
    drawn = [
        [r.message[2] for r in play(setting, "causal_barrier", seed, order="random") if r.kind == "received"]
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert sorted(drawn[0]) == list(range(1, 11)) != drawn[0]


def test_per_source_sends_messages_of_one_source_together() -> None:
    births = [Birth(node, (10 * turn + node) * SECOND) for turn in range(3) for node in (0, 2)]
    contacts = [(0, 2, 0, 90 * SECOND), (0, 1, 100 * SECOND, 200 * SECOND)]
    setting = Setting(3, contacts, births, network={"overhead": SECOND}, end=10 * MINUTE)
    rows = play(setting, "causal_barrier", order="per_source")
    assert [row.message[0] for row in rows if row.kind == "received" and row.node == 1] == [0, 0, 0, 2, 2, 2]


def test_a_node_with_one_transmitter_sends_to_one_peer_at_a_time() -> None:
    contacts = [(0, peer, 100 * SECOND, 111 * SECOND) for peer in (1, 2)]
    per_link, per_node = (
        len(receptions(play(Setting(3, contacts, TEN, network=net, end=10 * MINUTE), "causal_barrier")))
        for net in ({"overhead": SECOND}, {"overhead": SECOND, "share": "node"})
    )
    assert (per_link, per_node) == (20, 10)


def test_a_message_that_a_peer_received_meanwhile_is_not_sent_to_it() -> None:
    """Nodes 1 and 2 hold all messages when 3 meets them; only what both send at once arrives twice."""
    contacts = [(0, 1, 0, 50 * SECOND), (0, 2, 0, 50 * SECOND)]
    contacts += [(1, 3, 100 * SECOND, 200 * SECOND), (2, 3, 100_500 * MILLISECOND, 200 * SECOND)]
    setting = Setting(4, contacts, TEN, network={"overhead": SECOND}, end=10 * MINUTE)
    world, sink = contact_world(setting, "causal_barrier", order="random")
    world.run(setting.end)
    world.recorder.flush()
    to_3 = [
        row
        for row in sink.events().to_pylist()
        if row["kind"] == "sent" and row["peer"] == "3" and row["packet_kind"] == "messages"
    ]
    assert 10 <= len(to_3) <= 14


def test_a_full_cache_evicts_messages_and_does_not_accept_them_again() -> None:
    contacts = [(0, 1, 20 * SECOND, 30 * SECOND), (0, 1, 40 * SECOND, 50 * SECOND)]
    setting = Setting(2, contacts, TEN, end=10 * MINUTE)
    rows = play(setting, "delta_causal", cache="4", lifetime="5min")
    at_1 = [row.message[2] for row in rows if row.kind == "received" and row.node == 1]
    assert at_1 == [7, 8, 9, 10], "node 0 carries its last four"
    assert [row.reason for row in rows if row.node == 0 and row.kind == "discarded"][:6] == ["evicted"] * 6
    ours = deliveries(rows, 1)
    assert len(ours) == len(set(ours))


def test_ids_of_evicted_messages_without_lifetime_are_forgotten() -> None:
    births = [Birth(0, number * SECOND) for number in range(200)]
    world, sink = contact_world(Setting(2, [(0, 1, 1, 300 * SECOND)], births), "causal_barrier", cache="8")
    for second in range(0, 210, 10):
        world.run(second * SECOND)
        assert all(hosted.node.sizes()["evicted"] <= 2 for hosted in world.nodes if hosted.up)
    world.recorder.flush()
    assert [number for _, _, number in deliveries(rows_of(sink), 1)] == list(range(1, 201))


@pytest.mark.parametrize("protocol", ["causal_barrier", PRINTED_CAUSAL], ids=["ours", "printed"])
def test_an_evicted_message_is_not_accepted_again_after_its_id_is_forgotten(protocol: str | Entry) -> None:
    """Node 2 takes the first eight of a hundred messages, and sends them again at the end."""
    births = [Birth(0, number * SECOND) for number in range(100)]
    contacts = [
        (0, 1, 1, 150 * SECOND),
        (1, 2, 7 * SECOND + 1, 7 * SECOND + 2),
        (1, 2, 200 * SECOND, 210 * SECOND),
    ]
    setting = Setting(3, contacts, births, end=5 * MINUTE)
    rows = play(setting, protocol, cache="8")
    at_1 = [row for row in rows if row.node == 1]
    assert [row.message[2] for row in at_1 if row.kind == "received"] == list(range(1, 101))
    assert [number for _, _, number in deliveries(rows, 1)] == list(range(1, 101))
    assert [row.message[2] for row in at_1 if row.kind == "discarded"] == list(range(1, 93)), (
        "each message once"
    )
    assert [row.message[2] for row in rows if row.node == 2 and row.kind == "received"] == [
        *range(1, 9),
        *range(93, 101),
    ]


@pytest.mark.parametrize("evict", ["first", "random", "deadline"])
def test_a_cache_never_exceeds_its_capacity(evict: str) -> None:
    world, _ = contact_world(meeting(MINUTE), "delta_causal", cache="3", evict=evict)
    for second in range(0, 200, 5):
        world.run(second * SECOND)
        assert all(hosted.node.sizes()["cache"] <= 3 for hosted in world.nodes if hosted.up)


def test_expired_messages_leave_the_cache_and_are_logged() -> None:
    rows = play(meeting(MINUTE), "delta_causal", lifetime="200s", sweep="0s")
    discarded = [row for row in rows if row.kind == "discarded"]
    assert len(discarded) == 20
    assert all(
        row.reason == "expired_cached" and row.at == (200 + row.message[2] - 1) * SECOND for row in discarded
    )


@pytest.mark.parametrize(
    "packet",
    [
        SummaryPacket(frozenset({MessageId(1, 0, 1), MessageId(2, 1, 9)})),
        HavePacket((MessageId(1, 0, 1),)),
        packed((Envelope(Message(MessageId(3, 0, 4), b"abc"), ((1, 2, 3),), 99, None, 24, 1, 5),)),
    ],
)
def test_packets_are_decoded_with_the_same_sizes(packet: SummaryPacket | HavePacket | MessagesPacket) -> None:
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(packet), type=type(packet))
    assert (again.size_bytes, again.control_bytes, again.messages) == (
        packet.size_bytes,
        packet.control_bytes,
        packet.messages,
    )
