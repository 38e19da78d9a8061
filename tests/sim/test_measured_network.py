"""The network that replays measured transfers: each end has its own instants, packets take recorded times."""

from __future__ import annotations

from typing import Any

from precede.core.effects import RADIO, Send
from precede.core.identity import NEIGHBOURS
from precede.core.instants import SECOND
from precede.core.transfers import LinkEnd, Transfer
from precede.sim.networks.measured import MeasuredNetwork
from tests.sim.test_contacts_network import carried_out, note, received, sends

NOTE = ("note", ())
OTHER = ("other", ())


def end(node: int, peer: int, up: int, down: int | None, *sent: Transfer) -> LinkEnd:
    return LinkEnd(node, peer, up, down, list(sent))


def links(pages: list[Any]) -> list[tuple[int, int, str]]:
    return [(page[0], page[1], page[2]) for page in pages if page[2] in ("link_up", "link_down")]


def test_each_end_of_a_link_comes_and_goes_at_its_own_instants() -> None:
    ends = [end(0, 1, 10, 30), end(1, 0, 12, 31), end(0, 1, 20, 90), end(0, 1, 40, None)]
    pages = carried_out(MeasuredNetwork(ends), sends())
    assert links(pages) == [
        (10, 0, "link_up"),
        (12, 1, "link_up"),
        (30, 0, "link_down"),
        (31, 1, "link_down"),
        (40, 0, "link_up"),
    ], "the end that is up is not begun again, and the end that was not begun does not end it"


def test_a_packet_takes_as_long_as_the_same_packet_took_and_packets_stay_in_order() -> None:
    sent = [Transfer(SECOND, 500, 70, NOTE), Transfer(SECOND, 300, 80, NOTE)]
    network = MeasuredNetwork([end(0, 1, 0, None, *sent), end(1, 0, 0, None)])
    pages = carried_out(network, sends(*[Send(note(text), 1, RADIO, text) for text in "ab"]))
    assert received(pages) == [(SECOND + 500, 1, "a"), (SECOND + 500, 1, "b")]
    assert [page[:5] for page in pages if page[2] == "sent"] == [
        (SECOND + 70, 0, "sent", "a", True),
        (SECOND + 80, 0, "sent", "b", True),
    ]
    assert network.counters() == {"transfers_measured": 2, "transfers_like_others": 0, "transfers_cut": 0}


def test_a_packet_that_was_not_recorded_takes_as_long_as_the_one_sent_nearest_in_time() -> None:
    sent = [
        Transfer(SECOND - 50, 500, 1, OTHER),
        Transfer(SECOND + 49, 300, 1, OTHER),
        Transfer(9 * SECOND, 7, 1, OTHER),
    ]
    network = MeasuredNetwork(
        [end(0, 1, 0, None, *sent), end(1, 0, 0, None), end(0, 2, 0, None), end(2, 0, 0, None)]
    )
    pages = carried_out(network, sends(Send(note("a"), NEIGHBOURS, RADIO)), 3)
    assert received(pages) == [(SECOND + 300, 1, "a"), (SECOND + 300, 2, "a")], "to 2 the median of all"
    assert network.counters()["transfers_like_others"] == 2


def test_a_packet_to_an_end_that_is_down_is_cut_and_one_without_a_link_does_not_leave() -> None:
    sent = Transfer(SECOND, 500, 70, NOTE)
    network = MeasuredNetwork([end(0, 1, 0, None, sent), end(1, 0, 0, SECOND + 499)])
    pages = carried_out(network, sends(Send(note("a"), 1, RADIO, "k"), Send(note("b"), 2, RADIO, "none")), 3)
    assert received(pages) == []
    assert network.counters()["transfers_cut"] == 1
    assert [(page[3], page[4]) for page in pages if page[2] == "sent"] == [("none", False), ("k", True)]
