"""`gossip`: few frames where everybody is in range, repair where frames are lost, bounds for liars."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.dense import back, chain, clique, contacts, costs, events
from precede.core.effects import RADIO, Deliver, Discard, Send, SetTimer
from precede.core.identity import MessageId
from precede.core.instants import MILLISECOND, SECOND
from precede.core.messages import Message
from precede.core.node import Context, Node
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.experiments.swarm.swarm import run_seed
from precede.protocols import registry
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.gossip.coverage import Coverage
from precede.protocols.layered.gossip.holdings import Holdings
from precede.protocols.layered.gossip.packets import (
    DataPacket,
    DigestPacket,
    RangesPacket,
    WantPacket,
    data_packet,
)
from precede.protocols.layered.gossip.ranges import Ranges, are_ranges, compact, expanded, flat_ranges, pairs
from precede.protocols.layered.parsed_envelopes import batch_of

ORDERINGS = ("unordered", "fifo", "vector_clock", "causal_barrier", "delta_causal", "hash_dag")
ANA, BEN, CEM, DAN = range(4)


def node_of(me: int, **options: Any) -> Node:
    context = Context(me, (0, 1, 2, 3), {"dissemination": "gossip", **options}, Random(1), 0)
    node = registry.make("unordered", "node", context)
    node.start(0, {})
    for peer in (ANA, BEN, CEM):
        if peer != me:
            node.link_up(peer, 0, RADIO)
    return node


def data(source: int, number: int, size: int = 4, neighbours: tuple[int, ...] | None = None) -> DataPacket:
    message = Message(MessageId(source, 0, number), bytes(size))
    return data_packet(batch_of([Envelope(message, None, None, None, 0, 0)]), 7, neighbours)


def packets(effects: Any, kind: type) -> list[Any]:
    return [effect.packet for effect in effects if isinstance(effect, Send) and type(effect.packet) is kind]


def run_timers(node: Node, effects: Any, until: int) -> list[Any]:
    """Fire the node's timers in their order up to an instant; returns all effects."""
    timers: dict[Any, int] = {}
    happened: list[Any] = []
    while True:
        for effect in effects:
            happened.append(effect)
            if isinstance(effect, SetTimer):
                timers[effect.key] = effect.at
        if not timers or min(timers.values()) > until:
            return happened
        key = min(timers, key=lambda key: timers[key])
        effects = node.timer(key, timers.pop(key))


# -- ranges ----------------------------------------------------------------------------------------------


def test_ranges_are_the_set_of_their_numbers() -> None:
    random = Random(3)
    for _ in range(50):
        numbers, ranges = set(), Ranges()
        for _ in range(60):
            number = random.randint(1, 30)
            if random.random() < 0.6:
                numbers.add(number)
                ranges.add(number)
            else:
                numbers.discard(number)
                ranges.remove(number)
            flat = ranges.flat()
            assert flat == flat_ranges(sorted(numbers))
            assert are_ranges(flat)
            assert expanded(compact(flat)) == flat
        other = flat_ranges(sorted(random.sample(range(1, 35), 12)))
        listed = {n for first, last in pairs(other) for n in range(first, last + 1)}
        lacking = {n for first, last in ranges.lacks(other) for n in range(first, last + 1)}
        assert lacking == listed - numbers
        assert list(ranges.common(other)) == sorted(listed & numbers)


@pytest.mark.parametrize("flat", [(1,), (0, 3), (5, 4), (1, 3, 4, 6), (1, 3, 2, 6), (1, 1 << 70), (-3, 4)])
def test_senseless_ranges_are_recognised(flat: tuple[int, ...]) -> None:
    assert not are_ranges(flat)


# -- cost ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "nodes", [5, 10, pytest.param(20, marks=pytest.mark.long), pytest.param(40, marks=pytest.mark.long)]
)
def test_a_broadcast_to_everybody_in_range_takes_few_frames(nodes: int) -> None:
    gossip, flooding = clique(nodes, "gossip", 0.0), clique(nodes, "flooding", 0.0)
    assert gossip["deliveries"] == nodes
    assert gossip["frames"] <= 2 * nodes
    assert gossip["bytes"] <= 1.5 * flooding["bytes"]


def test_without_loss_one_digest_follows_a_message() -> None:
    """The source announces its message, and the others rely on that: over unicast 2 (n - 1) frames."""
    assert clique(10, "gossip", 0.0)["frames"] <= 2.0


def test_messages_on_their_way_are_no_reason_for_digests() -> None:
    """Everybody broadcasts ten times a second: digests differ all the time, but only in the latest messages."""
    script = [{"src": str(n % 10), "at": f"{5_000_000 + 10_007 * n}us"} for n in range(500)]
    log = events({"nodes": 10, "delay": "5ms"}, "gossip", script, "15s")
    cost = costs(log, 500)
    assert cost["deliveries"] == 10
    assert cost["frames"] < 1.5


def test_over_unicast_requests_and_answers_go_to_one_neighbour() -> None:
    node = node_of(BEN, medium="unicast")
    for number in range(1, 4):
        node.receive(data(DAN, number), CEM, SECOND, RADIO)
    effects = node.receive(WantPacket(((BEN, DAN, 0, (1, 2)),)), ANA, 2 * SECOND, RADIO)
    assert [effect.to for effect in effects if isinstance(effect, Send)] == [ANA]
    offer = DigestPacket(3, True, ((DAN, 0, (1, 9)),), 0, None)
    effects = run_timers(node, node.receive(offer, ANA, 3 * SECOND, RADIO), 3 * SECOND + 25_000)
    sent = [effect for effect in effects if isinstance(effect, Send)]
    assert [(effect.to, type(effect.packet)) for effect in sent] == [(ANA, WantPacket)]


class StalledMachine:
    """Twenty nodes on a machine that does nothing for 300 ms at a time: all timers that were due fire together.

    Packets that a node sends are received in the next turn, before timers.
    """

    def __init__(self, nodes: int) -> None:
        self.digests = 0
        self.delivered = 0
        self._now = 0
        self._timers: dict[tuple[int, Any], int] = {}
        self._sent: list[tuple[int, Any]] = []
        self._nodes = [self._node(me, nodes) for me in range(nodes)]
        for me, node in enumerate(self._nodes):
            self._carry_out(me, node.start(0, {}))
            for peer in range(nodes):
                if peer != me:
                    self._carry_out(me, node.link_up(peer, 0, RADIO))

    @staticmethod
    def _node(me: int, nodes: int) -> Node:
        options = {"dissemination": "gossip", "medium": "unicast"}
        return registry.make("unordered", "node", Context(me, tuple(range(nodes)), options, Random(me), 0))

    def _carry_out(self, me: int, effects: Any) -> None:
        for effect in effects:
            if isinstance(effect, SetTimer):
                self._timers[me, effect.key] = effect.at
            elif isinstance(effect, Deliver):
                self.delivered += 1
            elif isinstance(effect, Send):
                self._sent.append((me, effect))
                self.digests += isinstance(effect.packet, DigestPacket)

    def broadcast(self, me: int) -> None:
        self._carry_out(me, self._nodes[me].broadcast(b"", self._now, None, None))

    def run(self, time: int, stalls: Random) -> None:
        """Let an amount of time pass, about half of it in stalls."""
        end = self._now + time
        while self._now < end:
            self._now += 300 * MILLISECOND if stalls.random() < 0.06 else 15 * MILLISECOND
            sent, self._sent = self._sent, []
            for sender, send in sent:
                for me, node in enumerate(self._nodes):
                    if me == send.to or (send.to < 0 and me != sender):
                        self._carry_out(me, node.receive(send.packet, sender, self._now, RADIO))
            for (me, key), at in list(self._timers.items()):
                if at <= self._now:
                    del self._timers[me, key]
                    self._carry_out(me, self._nodes[me].timer(key, self._now))


def test_on_a_busy_machine_a_message_is_still_followed_by_one_digest() -> None:
    """Four machines of 20 members, 80 messages: 142 digests if late ones are not put off, 100 if they are."""
    digests = 0
    for seed in range(4):
        machine, stalls = StalledMachine(20), Random(seed)
        machine.run(20 * SECOND, stalls)
        machine.digests = 0
        for source in range(20):
            machine.broadcast(source)
            machine.run(SECOND, stalls)
        assert machine.delivered == 400
        digests += machine.digests
    assert digests <= 1.5 * 80


def test_lost_frames_are_repaired_soon() -> None:
    cost = clique(10, "gossip", 0.2)
    assert cost["deliveries"] == 10
    assert cost["last_worst_ms"] < 1000


def test_a_chain_relays_and_a_clique_does_not() -> None:
    cost = chain("gossip")
    assert cost["deliveries"] == 10
    assert cost["last_worst_ms"] < 1000


def test_a_node_that_returns_catches_up_with_few_frames() -> None:
    cost = back(5, "gossip")
    assert cost["delivered"] == 1000
    assert cost["frames"] < 300
    assert cost["seconds"] < 12  # the next digest after the partition comes within the longest interval


@pytest.mark.parametrize(("how", "most"), [({"delay": "2s"}, 2_000), ({"bandwidth": 5_000}, 6_000)])
def test_where_answers_take_long_a_node_does_not_ask_for_the_same_again_and_again(
    how: dict[str, Any], most: int
) -> None:
    """With a fixed wait it asked eight times before the first answer, and answers waited behind answers."""
    cost = back(5, "gossip", **how)
    assert cost["delivered"] == 1000
    assert cost["messages"] < most
    assert cost["seconds"] < 30


@pytest.mark.long
@pytest.mark.parametrize(("scenario", "settings"), [("city-bus", {}), ("pedestrians", {"duration": "1h"})])
def test_contacts_carry_the_same_messages_as_epidemic_with_fewer_bytes(
    scenario: str, settings: dict[str, str]
) -> None:
    pairs, size = contacts(scenario, "gossip", settings)
    epidemic, epidemic_size = contacts(scenario, "epidemic", settings)
    assert pairs == epidemic
    assert size < epidemic_size


def test_in_a_triangle_of_links_nobody_sends_what_another_sends() -> None:
    meetings = [[a, b, "1s", "60s"] for a, b in (("0", "1"), ("0", "2"), ("1", "2"))]
    counted = {}
    for dissemination in ("gossip", "epidemic"):
        sink = TableSink()
        options: dict[str, Any] = {"dissemination": dissemination}
        if dissemination == "gossip":
            options["medium"] = "links"
        script = [{"src": str(n % 3), "at": f"{2 + n}s"} for n in range(10)]
        world = {"kind": "contacts", "nodes": 3, "meetings": meetings}
        workload = {"script": script, "size": 100}
        carry_out(Run(world=world, workload=workload, protocol="fifo", options=options, gauges="none"), sink)
        log = sink.events()
        kinds = log["kind"].cast(pa.string()).to_pylist()
        assert kinds.count("delivered") == 30
        counted[dissemination] = sum(size or 0 for size in log["packet_bytes"].to_pylist())
    assert counted["gossip"] < 0.7 * counted["epidemic"]


# -- relays ----------------------------------------------------------------------------------------------


def test_a_message_is_relayed_only_to_neighbours_that_the_transmitter_does_not_reach() -> None:
    covered, uncovered = node_of(BEN), node_of(BEN)
    for node, neighbours, relays in ((covered, (BEN, CEM), 0), (uncovered, (BEN,), 1)):
        effects = node.receive(data(ANA, 1, neighbours=neighbours), ANA, SECOND, RADIO)
        assert len(packets(run_timers(node, effects, SECOND + 15_000), DataPacket)) == relays


def test_a_list_from_before_others_came_is_no_evidence_of_neighbours_out_of_range() -> None:
    coverage = Coverage(BEN)
    for peer in (ANA, CEM):
        coverage.link_up(peer)
    coverage.heard(ANA, 1, (BEN,), 0)
    assert coverage.is_one_room(0)
    coverage.heard(CEM, 1, (ANA, BEN, DAN), 0)  # this node does not hear dan
    assert not coverage.is_one_room(0)


# -- liars -----------------------------------------------------------------------------------------------


def test_a_false_offer_delays_and_never_hides_a_message() -> None:
    node = node_of(BEN)
    false = DigestPacket(1, True, ((DAN, 0, (1, 1 << 60)),), 0, None)
    wants = packets(run_timers(node, node.receive(false, ANA, SECOND, RADIO), 60 * SECOND), WantPacket)
    assert 1 <= len(wants) <= 8
    assert all(sum(last - first + 1 for *_, r in w.wants for first, last in pairs(r)) <= 256 for w in wants)
    node.receive(data(DAN, 5), CEM, 61 * SECOND, RADIO)
    truth = DigestPacket(2, True, ((DAN, 0, (1, 5)),), 0, None)
    asked = packets(run_timers(node, node.receive(truth, CEM, 62 * SECOND, RADIO), 63 * SECOND), WantPacket)
    assert (CEM, DAN, 0, (1, 4)) in asked[0].wants


def test_digests_of_liars_do_not_fill_the_memory() -> None:
    node = node_of(BEN)
    for number in range(300):
        streams = tuple((1000 + number * 50 + n, 0, (1, 1, 3, 3, 5, 9)) for n in range(50))
        node.receive(DigestPacket(number, False, streams, 0, None), ANA, SECOND + number, RADIO)
    gossip: Any = node.dissemination  # type: ignore[attr-defined]
    assert sum(map(len, gossip._wants.offers.values())) <= 1024
    summary = RangesPacket(((DAN, 0, (1, 1 << 60)),))
    on_links = node_of(BEN, medium="links")
    on_links.receive(summary, ANA, SECOND, RADIO)  # would list more ids than fit into any memory


def test_a_want_of_everything_is_answered_with_a_bounded_number_of_messages() -> None:
    node = node_of(BEN)
    for number in range(1, 400):
        node.receive(data(DAN, number), CEM, SECOND, RADIO)
    effects = node.receive(WantPacket(((BEN, DAN, 0, (1, 1 << 60)),) * 90), ANA, 2 * SECOND, RADIO)
    assert sum(packet.messages for packet in packets(effects, DataPacket)) == 256


# -- the cache -------------------------------------------------------------------------------------------


def test_neighbours_that_differ_only_in_a_message_on_its_way_do_not_differ() -> None:
    node, other = Holdings(may_forget=False), Holdings(may_forget=False)
    first, second = (
        batch_of([Envelope(Message(MessageId(3, 0, number), b""), None, None, None, 0, 0)]).contents[0]
        for number in (1, 2)
    )
    for holdings in (node, other):
        holdings.add(first, 0)
    node.add(second, SECOND)
    digest = (other.hash, ((3, 0, (1, 1)),), True)
    assert node.differs_only_lately(*digest, SECOND + 250 * MILLISECOND)
    assert not node.differs_only_lately(*digest, SECOND + 251 * MILLISECOND), "it has had the time to arrive"


def test_so_many_streams_of_which_nothing_is_held_are_remembered() -> None:
    node = Holdings(may_forget=True)
    for source in range(4_096):
        node.know(MessageId(source, 0, 1))
    assert node.knows(MessageId(0, 0, 1))
    node.know(MessageId(4_096, 0, 1))
    assert not node.knows(MessageId(0, 0, 1)), "the oldest is forgotten"
    assert node.knows(MessageId(1, 0, 1))


def test_the_hash_of_what_a_node_holds_is_the_same_in_every_version() -> None:
    """Neighbours of other versions compare it with theirs, and send no digest while it is the same."""
    node = Holdings(may_forget=False)
    for incarnation in (0, 2):
        envelope = Envelope(Message(MessageId(3, incarnation, 7), b""), None, None, None, 0, 0)
        node.add(batch_of([envelope]).contents[0], SECOND)
    assert node.hash == 5376582964150736101 ^ 3025772571181638079


def test_the_cache_is_bounded_in_bytes_and_evicted_messages_are_not_requested_again() -> None:
    node = node_of(BEN, cache_bytes=1000)
    evicted = []
    for number in range(1, 21):
        effects = node.receive(data(DAN, number, 100), CEM, SECOND, RADIO)
        evicted += [effect.message.id.number for effect in effects if isinstance(effect, Discard)]
    assert evicted == list(range(1, 11))
    offer = DigestPacket(3, True, ((DAN, 0, (1, 20)),), 0, None)
    assert not packets(run_timers(node, node.receive(offer, ANA, 2 * SECOND, RADIO), 4 * SECOND), WantPacket)
    request = WantPacket(((BEN, DAN, 0, (1, 20)),))
    (answer,) = packets(node.receive(request, ANA, 5 * SECOND, RADIO), DataPacket)
    assert [one.message.id.number for one in answer.batch.contents] == list(range(11, 21)), "held are the newer"


# -- the swarm -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("ordering", ORDERINGS)
def test_worlds_over_gossip_have_no_finding(ordering: str) -> None:
    results = [run_seed(f"{ordering}+gossip", seed) for seed in range(7_000, 7_006)]
    assert not [(result.seed, *result.remarks) for result in results if result.failed]


@pytest.mark.long
@pytest.mark.parametrize("ordering", ORDERINGS)
def test_two_hundred_worlds_over_gossip_have_no_finding(ordering: str) -> None:
    results = [run_seed(f"{ordering}+gossip", seed) for seed in range(8_000, 8_200)]
    assert not [(result.seed, *result.remarks) for result in results if result.failed]
