"""VCube compared with the literal Algorithm 2 over random worlds, and its edge cases (vcube2018, section 4)."""

from __future__ import annotations

import gc
import random
import sys

import msgspec
import pytest

from precede.core.effects import WIRED, Deliver, Send
from precede.core.errors import BadInput, Refused
from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.core.node import Context, Node
from precede.protocols import registry
from precede.protocols.vcube2018 import progress as vcube_progress
from precede.protocols.vcube2018.forwarding import packet_of
from precede.protocols.vcube2018.packets import StampedMessage, VCubePacket
from tests.protocols.vcube2018.literal import VARIANTS, LiteralNode
from tests.protocols.vcube2018.worlds import play

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 16, 21, 32)


def context(node: int, nodes: int, **options: object) -> Context:
    return Context(node, tuple(range(nodes)), options, random.Random(node))


def indexed(node: int, nodes: int, **options: object) -> Node:
    return registry.make("vcube", "node", context(node, nodes, **options))


def draw(seed: int) -> tuple[int, dict[str, object]]:
    rng = random.Random(seed)
    options = {
        "aggregation": rng.random() < 0.9,
        "unpack": rng.choice(("insertion", "causal")),
        "mtu": rng.choice((60, 150, 1500)),
    }
    return rng.choice(SIZES), options


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_the_index_and_the_literal_algorithm_send_the_same_packets(block: int) -> None:
    for seed in range(block * 60, block * 60 + 60):
        nodes, options = draw(seed)
        literal = play(nodes, lambda i, n=nodes, o=options: LiteralNode(context(i, n, **o)), seed)
        fast = play(nodes, lambda i, n=nodes, o=options: indexed(i, n, **o), seed)
        assert fast.packets == literal.packets, f"seed {seed}"
        assert [sorted(fast.delivered(i)) for i in range(nodes)] == [
            sorted(literal.delivered(i)) for i in range(nodes)
        ]


def check_clean(seed: int) -> None:
    nodes, options = draw(seed)
    trace = play(nodes, lambda i: indexed(i, nodes, **options), seed)
    faults = trace.undelivered(), trace.duplicates(), trace.sent_twice(), trace.disorder()
    assert faults == (0, 0, 0, 0), f"seed {seed}: undelivered, duplicates, sent twice, disorder = {faults}"
    assert len(trace.broadcasts) * (nodes - 1) == sum(len(ids) for _, _, _, ids, _ in trace.packets)
    for machine in trace.machines:
        assert [machine.sizes()[name] for name in machine.drains()] == [0, 0]
        assert not machine.waiting()


@pytest.mark.parametrize("block", range(2))
def test_every_message_is_sent_once_to_each_child_and_delivered_in_causal_order(block: int) -> None:
    for seed in range(10_000 + block * 60, 10_000 + block * 60 + 60):
        check_clean(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(20))
def test_2000_worlds_have_no_loss_duplicate_or_disorder(block: int) -> None:
    for seed in range(20_000 + block * 100, 20_000 + block * 100 + 100):
        check_clean(seed)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_wrong_reading_is_caught(variant: str) -> None:
    """Each loses, duplicates or sends twice within 50 worlds of 8 nodes."""
    for seed in range(50):
        trace = play(8, lambda i: LiteralNode(context(i, 8), variant), seed, most_messages=2)
        if trace.undelivered() or trace.duplicates() or trace.sent_twice():
            return
    pytest.fail(f"{variant} was never caught")


def test_dropping_old_rows_changes_no_packet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers far apart leave the kept rows; the packets must stay the same."""
    monkeypatch.setattr(vcube_progress, "KEPT_ROWS", 2)
    for seed in range(30):
        literal = play(6, lambda i: LiteralNode(context(i, 6)), seed, most_messages=25)
        fast = play(6, lambda i: indexed(i, 6), seed, most_messages=25)
        assert fast.packets == literal.packets
        assert all(len(machine._delivered.lacking) <= 2 for machine in fast.machines)


@pytest.mark.parametrize("nodes", [1, 2, 3, 8, 11, 16])
def test_a_single_tree_delivers_everything_in_causal_order(nodes: int) -> None:
    for seed in range(15):
        trace = play(nodes, lambda i: indexed(i, nodes, tree="single"), seed)
        assert (trace.undelivered(), trace.duplicates(), trace.disorder()) == (0, 0, 0)
        through_root = sum(id.source != 0 for id in trace.broadcasts)
        carried = sum(len(ids) for _, _, _, ids, _ in trace.packets)
        assert carried == len(trace.broadcasts) * (nodes - 1) + through_root


@pytest.mark.parametrize("nodes", [1, 2, 3, 5, 8, 12, 16, 31, 32])
def test_without_aggregation_there_are_exactly_n_times_n_minus_1_packets(nodes: int) -> None:
    machines = [indexed(i, nodes, aggregation=False) for i in range(nodes)]
    waiting = [
        (i, send) for i in range(nodes) for send in machines[i].broadcast(b"x", 0) if isinstance(send, Send)
    ]
    packets = 0
    while waiting:
        sender, send = waiting.pop()
        packets += 1
        answers = machines[send.to].receive(send.packet, sender, 0, send.over)
        waiting += [(send.to, answer) for answer in answers if isinstance(answer, Send)]
    assert packets == nodes * (nodes - 1)


def test_packet_sizes_follow_the_paper() -> None:
    """20 bytes of header, 4 for each changed entry (the own one included), and the payload."""
    a, b = indexed(0, 4), indexed(1, 4)
    first = next(e for e in a.broadcast(bytes(50), 0) if isinstance(e, Send) and e.to == 1).packet
    assert (first.size_bytes, first.control_bytes, first.control_entries, first.messages) == (74, 4, 1, 1)
    b.receive(first, 0, 1, WIRED)
    answer = next(e for e in b.broadcast(bytes(5), 2) if isinstance(e, Send)).packet
    assert (answer.size_bytes, answer.control_entries) == (20 + 8 + 5, 2)
    again = next(e for e in b.broadcast(b"", 3) if isinstance(e, Send)).packet
    assert (again.size_bytes, again.control_entries) == (24, 1)
    plain = indexed(0, 4, compression=False)
    whole = next(e for e in plain.broadcast(bytes(50), 0) if isinstance(e, Send)).packet
    assert (whole.size_bytes, whole.control_entries) == (20 + 16 + 50, 4)


def test_a_packet_survives_the_wire() -> None:
    a, b, far = indexed(0, 4), indexed(1, 4), indexed(3, 4)
    for send in a.broadcast(b"first", 0):
        if isinstance(send, Send) and send.to == 1:
            b.receive(send.packet, 0, 1, WIRED)
    packet = next(e for e in b.broadcast(b"second", 2) if isinstance(e, Send) and e.to == 3).packet
    decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(packet), type=VCubePacket)
    assert decoded == packet
    effects = far.receive(decoded, 1, 3, WIRED)
    assert not [e for e in effects if isinstance(e, Deliver)]
    (waits,) = far.waiting()
    assert (waits.message, waits.waits_for, waits.since) == (MessageId(1, 0, 1), (MessageId(0, 0, 1),), 3)


def test_messages_with_impossible_ids_are_dropped() -> None:
    node = indexed(0, 4)
    for id in (
        MessageId(-1, 0, 1),
        MessageId(9, 0, 1),
        MessageId(1 << 40, 0, 1),
        MessageId(1, 1, 1),
        MessageId(1, 0, 0),
    ):
        packet = packet_of(StampedMessage(Message(id, b""), (), 1, 1))
        assert node.receive(packet, 1, 0, WIRED) == []


def test_refused_broadcasts_change_nothing_and_bad_members_are_rejected() -> None:
    node = indexed(0, 4)
    with pytest.raises(Refused, match="everybody"):
        node.broadcast(b"", 0, to=(1,))
    accepted = node.broadcast(b"", 0)[0]
    assert accepted.message.id.number == 1
    with pytest.raises(BadInput, match="not among"):
        registry.make("vcube", "node", Context(5, (0, 1), {}, random.Random(0)))
    with pytest.raises(BadInput, match="rooted at node 0"):
        registry.make("vcube", "node", Context(1, (1, 2), {"tree": "single"}, random.Random(0)))


def test_a_delivered_message_is_freed() -> None:
    """Packets are not tracked by the garbage collector, so a cycle through one would never be freed."""
    payload = bytes(range(50))
    before = sys.getrefcount(payload)
    machines = [indexed(i, 4) for i in range(4)]
    waiting = [(0, send) for send in machines[0].broadcast(payload, 0) if isinstance(send, Send)]
    while waiting:
        sender, send = waiting.pop()
        answers = machines[send.to].receive(send.packet, sender, 0, send.over)
        waiting += [(send.to, answer) for answer in answers if isinstance(answer, Send)]
    del send, answers
    gc.collect()
    assert sys.getrefcount(payload) == before


def test_nothing_is_kept_of_a_message_that_waited() -> None:
    """Node 3 is a leaf of the tree of node 0: it only delivers."""
    source, leaf = indexed(0, 4), indexed(3, 4)
    packets = [[e.packet for e in source.broadcast(b"", now) if isinstance(e, Send)][-1] for now in range(2)]
    for packet in reversed(packets):
        effects = leaf.receive(packet, 2, 2, WIRED)
    assert [e.message.id.number for e in effects if type(e) is Deliver] == [1, 2]
    assert leaf._awaited == {}  # type: ignore[attr-defined]
