"""The contact network: how long transfers take, who hears a transmission to all, links that lose packets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from precede.core.effects import RADIO, Effects, Send
from precede.core.errors import BadInput
from precede.core.identity import NEIGHBOURS
from precede.core.instants import SECOND
from precede.eventlog.recorder import Recorder
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, prepare
from precede.sim.networks.contacts import ContactNetwork
from precede.sim.networks.lossy_contacts import LossyContacts
from precede.sim.world import World
from tests.sim.test_world import Diary, Note

LONG = 1_000 * SECOND


def carried_out(network: ContactNetwork, script: Callable[..., Effects], nodes: int = 2) -> list[Any]:
    """Run nodes that do what the script says on a network; return what befell them."""
    pages: list[tuple[Any, ...]] = []
    recorder = Recorder("r", [str(node) for node in range(nodes)], TableSink())
    world = World(1, nodes, lambda id, incarnation, random: Diary(id, pages, script), network, recorder)
    network.begin()
    for node in range(nodes):
        world.enter(node)
    world.schedule(SECOND, world.broadcast, 0, b"")
    world.run(LONG)
    return pages


def sends(*effects: Send) -> Callable[..., Effects]:
    """Node 0 has these effects when its application broadcasts."""
    return lambda id, what, *rest: effects if (id, what) == (0, "broadcast") else ()


def received(pages: list[Any]) -> list[tuple[int, int, str]]:
    return [(page[0], page[1], page[3]) for page in pages if page[2] == "receive"]


def note(text: str, size: int = 1_000, messages: int = 1) -> Note:
    return Note(text, size_bytes=size, messages=messages)


@pytest.mark.parametrize("share", ["link", "node"])
def test_a_transfer_takes_its_bytes_and_its_overhead(share: Any) -> None:
    contacts = [(0, 1, 0, LONG)]
    one = sends(Send(note("a"), 1, RADIO), Send(note("b"), 1, RADIO))
    timed = ContactNetwork(contacts, 1_000.0, 0, share)
    assert received(carried_out(timed, one)) == [(2 * SECOND, 1, "a"), (3 * SECOND, 1, "b")]
    with_overhead = ContactNetwork(contacts, 1_000.0, SECOND // 2, share)
    assert received(carried_out(with_overhead, one)) == [(2_500_000, 1, "a"), (4 * SECOND, 1, "b")]
    only_overhead = ContactNetwork(contacts, overhead=SECOND // 2, share=share)
    assert received(carried_out(only_overhead, one)) == [(1_500_000, 1, "a"), (2 * SECOND, 1, "b")]


def test_a_transmission_to_all_takes_its_time_and_reaches_who_is_in_range_when_it_ends() -> None:
    contacts = [(0, 1, 0, LONG), (0, 2, 0, 1_200_000), (0, 3, 1_200_000, LONG)]
    script = sends(Send(note("a", 500), NEIGHBOURS, RADIO, "key"))
    pages = carried_out(ContactNetwork(contacts, 1_000.0, 0), script, 4)
    assert received(pages) == [(1_500_000, 1, "a"), (1_500_000, 3, "a")]
    assert [page for page in pages if page[2] == "sent"] == [(1_500_000, 0, "sent", "key", True)]


def test_the_end_of_a_contact_drops_what_is_queued_to_that_neighbour_and_nothing_else() -> None:
    contacts = [(0, 1, 0, 1_500_000), (0, 2, 0, LONG)]
    script = sends(*[Send(note(f"{to}{key}"), to, RADIO, (to, key)) for key in "ab" for to in (1, 2)])
    pages = carried_out(ContactNetwork(contacts, 1_000.0, 0, "node"), script, 3)
    assert received(pages) == [(2_500_000, 2, "2a"), (3_500_000, 2, "2b")]
    sent = [(page[0], page[3], page[4]) for page in pages if page[2] == "sent"]
    dropped = [(1_500_000, (1, key), False) for key in "ab"]
    assert sent == [*dropped, (2_500_000, (2, "a"), True), (3_500_000, (2, "b"), True)]


def test_a_lossy_link_takes_the_time_and_says_that_the_packet_left() -> None:
    contacts = [(0, 1, 0, LONG)]
    script = sends(*[Send(note(str(number), 100), 1, RADIO, ("key", number)) for number in range(200)])
    pages = carried_out(LossyContacts(contacts, 1_000.0, 0, "link", "free", None, 0.3), script)
    arrived = received(pages)
    assert 120 < len(arrived) < 160
    assert all(at == SECOND + (int(text) + 1) * SECOND // 10 for at, _, text in arrived)
    assert [page[4] for page in pages if page[2] == "sent"] == [True] * 200


def test_a_lossy_transmission_to_all_is_drawn_for_each_neighbour() -> None:
    contacts = [(0, peer, 0, LONG) for peer in range(1, 201)]
    network = LossyContacts(contacts, 1_000.0, 0, "node", "free", None, 0.3)
    arrived = received(carried_out(network, sends(Send(note("a"), NEIGHBOURS, RADIO)), 201))
    assert 120 < len(arrived) < 160
    assert network.counters()["transfers_lost"] == 200 - len(arrived)


def test_shared_air_refuses_loss() -> None:
    world = {"kind": "contacts", "nodes": 2, "meetings": [["0", "1", "0s", "9s"]], "loss": 0.1, "share": "air"}
    run = Run(world=world, workload={"script": []}, faults={}, protocol="fifo", options={}, seed=1)
    with pytest.raises(BadInput, match="loss"):
        prepare(run, TableSink())


def test_a_link_that_is_cut_is_down_until_it_is_mended() -> None:
    network = ContactNetwork([(0, 1, 0, LONG)], overhead=0)

    def script(id: int, what: str, *rest: Any) -> Effects:
        if what == "broadcast":
            network.world.schedule(2 * SECOND, network.cut, 1, 0)
            network.world.schedule(3 * SECOND, network.mend, 1, 0)
        return ()

    pages = carried_out(network, script)
    links = {(page[0], page[1], page[2]) for page in pages if "link" in page[2] and page[0] < LONG}
    instants = ((0, "link_up"), (2 * SECOND, "link_down"), (3 * SECOND, "link_up"))
    assert links == {(at, node, what) for at, what in instants for node in (0, 1)}
