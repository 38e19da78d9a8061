"""MulticastNode: refused broadcasts, crashes and restarts, incarnations, saved state."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from precede.core.effects import Accept, Arrive, Deliver, Effects, Persist, Send, SetTimer
from precede.core.errors import BadInput, Refused
from precede.core.identity import MessageId
from precede.core.node import Context, Node, round_trip
from precede.protocols import registry
from precede.protocols.acknowledgement import AckPacket
from precede.protocols.multicast.node import ANNOUNCEMENT
from precede.protocols.multicast.packets import LifePacket
from tests.protocols.multicast.multicast_world import make
from tests.protocols.stores import persist

RIVALS = (("prs", {}), ("rst", {}), ("ses", {}), ("prs", {"pruning": "optimal"}))
DURABLE = {"rto": 200_000, "durable": True}


def _state(node: Any) -> bytes:
    return msgspec.msgpack.encode([node.rule.save(), node._number, dict(node.sizes())])


@pytest.mark.parametrize(("protocol", "options"), RIVALS)
@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ((), "empty"),
        ((1, 0), "not one of its own destinations"),
        ((1, 77), "destination 77 is not in the address book"),
        ((1, 2, 1), "named twice"),
    ],
)
def test_bad_destinations_are_refused_and_leave_the_state_unchanged(
    protocol: str, options: dict[str, Any], to: tuple[int, ...], reason: str
) -> None:
    node: Any = make(protocol, 0, 4, **options)
    node.broadcast(b"x", 0, (1, 2))
    before = _state(node)
    with pytest.raises(Refused, match=reason):
        node.broadcast(b"x", 1, to)
    assert _state(node) == before
    (accept,) = [e for e in node.broadcast(b"x", 2, (3,)) if isinstance(e, Accept)]
    assert accept.message.id.number == 2, "a refused message takes no number"


def test_a_refusal_names_its_reason() -> None:
    node = make("prs", 0, 3)
    with pytest.raises(Refused, match="lifetimes"):
        node.broadcast(b"", 0, (1,), lifetime=5)
    alone = make("prs", 0, 1)
    with pytest.raises(Refused, match="empty"):
        alone.broadcast(b"", 0)
    everybody = make("prs", 0, 3, case="broadcast")
    with pytest.raises(Refused, match="everybody"):
        everybody.broadcast(b"", 0, (1,))
    assert [e.destinations for e in everybody.broadcast(b"", 0) if isinstance(e, Accept)] == [(1, 2)]
    for options in ({"case": "broadcast", "pruning": "optimal"}, {"pruning": "optimal", "encoding": "bitmap"}):
        with pytest.raises(BadInput):
            make("prs", 0, 3, **options)
    with pytest.raises(BadInput, match="48 bits"):
        make("prs", 1 << 50, 3)


def test_without_destinations_a_message_goes_to_all_known_nodes() -> None:
    node = make("prs", 1, 3)
    assert _destinations(node.broadcast(b"", 0)) == (0, 2)
    node.link_up(9, 1, 0)
    assert _destinations(node.broadcast(b"", 2)) == (0, 2, 9)


def _destinations(effects: Effects) -> tuple[int, ...] | None:
    (accept,) = [e for e in effects if isinstance(e, Accept)]
    return accept.destinations


def test_packets_are_decoded_to_equal_packets() -> None:
    for protocol, options in (*RIVALS, ("prs", {"case": "broadcast"})):
        sender: Any = make(protocol, 0, 3, **options)
        for _ in range(3):
            effects = sender.broadcast(b"payload", 0)
        packet = next(e.packet for e in effects if isinstance(e, Send))
        again = msgspec.msgpack.decode(msgspec.msgpack.encode(packet), type=type(packet))
        assert again == packet
        assert type(packet) in registry.find(protocol).packets


def test_duplicates_are_acknowledged_and_not_delivered() -> None:
    sender, receiver = make("prs", 0, 2, rto=1000), make("prs", 1, 2, rto=1000)
    (packet,) = [e.packet for e in sender.broadcast(b"", 0, (1,)) if isinstance(e, Send)]
    kinds = [type(e) for e in receiver.receive(packet, 0, 1, 0)]
    assert kinds == [Arrive, Deliver, Send]
    (again,) = receiver.receive(packet, 0, 2, 0)
    assert isinstance(again, Send)
    assert sender.sizes()["unacknowledged"] == 1
    sender.receive(again.packet, 1, 3, 0)
    assert sender.sizes()["unacknowledged"] == 0


def test_a_message_from_another_sender_than_its_source_is_ignored() -> None:
    sender, receiver = make("prs", 0, 3), make("prs", 1, 3)
    (packet,) = [e.packet for e in sender.broadcast(b"", 0, (1,)) if isinstance(e, Send)]
    assert not receiver.receive(packet, 2, 1, 0)


class _Disk:
    """One node with a store; a crash can come after any atomic step of the effects it returned."""

    def __init__(self, protocol: str, node: int, nodes: int, **options: Any) -> None:
        self.build = lambda: make(protocol, node, nodes, **DURABLE, **options)
        self.node: Node = self.build()
        self.store: dict[Any, Any] = {}
        self.delivered: list[MessageId] = []
        self.accepted = 0
        self.sent: list[tuple[Any, int]] = []
        self.carry_out(self.node.start(0, {}))

    def carry_out(self, effects: Effects, steps: int | None = None) -> int:
        """Carry out effects, or only their first `steps` atomic steps, followed by a crash and a restart.

        Returns the number of atomic steps.
        """
        groups: list[list[Any]] = []
        for effect in effects:
            if groups and isinstance(effect, Deliver) and isinstance(groups[-1][-1], Persist):
                groups[-1].append(effect)
            else:
                groups.append([effect])
        for group in groups[:steps]:
            for effect in group:
                self._perform(effect)
        if steps is not None:
            self.node = self.build()
            self.carry_out(self.node.start(0, round_trip(self.store)))
        return len(groups)

    def _perform(self, effect: Any) -> None:
        match effect:
            case Persist(key, None):
                self.store.pop(key, None)
            case Persist(key, value):
                self.store[key] = value
            case Deliver(message):
                self.delivered.append(message.id)
            case Accept(message):
                self.accepted = max(self.accepted, message.id.number)
            case Send(packet, to):
                self.sent.append((packet, to))
            case _:
                assert isinstance(effect, (Arrive, SetTimer)) or type(effect).__name__ == "CancelTimer"


def _chain(protocol: str, **options: Any) -> list[tuple[Any, int]]:
    """Packets to node 3, sent in turn by 0, 1 and 2, each of which causally follows the one before."""
    nodes = [make(protocol, node, 4, rto=0, **options) for node in range(3)]
    chain = []
    for turn in range(6):
        sends = [
            e for e in nodes[turn % 3].broadcast(b"%d" % turn, 0, _others(turn % 3)) if isinstance(e, Send)
        ]
        chain += [(send.packet, turn % 3) for send in sends if send.to == 3]
        for send in sends:
            if send.to != 3:
                nodes[send.to].receive(send.packet, turn % 3, 0, 0)
    return chain


def _others(node: int) -> tuple[int, ...]:
    return tuple(other for other in range(4) if other != node)


@pytest.mark.parametrize(("protocol", "options"), [*RIVALS, ("prs", {"case": "broadcast"})])
def test_a_crash_after_any_effect_of_a_reception_loses_and_repeats_nothing(
    protocol: str, options: dict[str, Any]
) -> None:
    """Six messages arrive in random order with crashes in between; each is delivered once, in order."""
    chain = _chain(protocol, **options)
    expected = [packet.message.id for packet, _ in chain]
    random = Random(1)
    crashes = 0
    for seed in range(60):
        random = Random(seed)
        disk = _Disk(protocol, 3, 4, **options)
        acknowledged: set[MessageId] = set()
        while len(acknowledged) < len(chain):
            packet, sender = random.choice(chain[::-1])
            effects = disk.node.receive(packet, sender, 0, 0)
            steps = random.choice([None, *range(len(effects) + 1)])
            crashes += steps is not None
            disk.carry_out(effects, steps)
            acknowledged = {id for ack, _ in disk.sent if isinstance(ack, AckPacket) for id in ack.ids}
        assert disk.delivered == expected, seed
        assert not disk.node.waiting()
        assert not any(key[0] == "held" for key in disk.store if type(key) is tuple)
    assert crashes > 500


@pytest.mark.parametrize(("protocol", "options"), RIVALS)
def test_a_crash_after_any_effect_of_a_broadcast_sends_it_to_all_or_to_none(
    protocol: str, options: dict[str, Any]
) -> None:
    """The message is accepted and sent to all destinations, or to none; its number is never used twice."""
    for steps in range(8):
        disk = _Disk(protocol, 0, 4, **options)
        disk.carry_out(disk.node.broadcast(b"first", 0, (1, 2, 3)))
        count = disk.carry_out(disk.node.broadcast(b"second", 0, (1, 2)), steps)
        assert count == 5, "persist, accept, two sends, a timer"
        existed = steps > 0
        assert disk.accepted == (2 if existed else 1)
        got = {(packet.message.id.number, to) for packet, to in disk.sent}
        assert got == {(1, 1), (1, 2), (1, 3)} | ({(2, 1), (2, 2)} if existed else set())
        before = len(disk.sent)
        disk.carry_out(disk.node.broadcast(b"third", 0, (1,)))
        third = disk.sent[before][0]
        assert third.message.id.number == (3 if existed else 2)
        needs = make(protocol, 1, 4, **options).rule.needs(third.stamp)  # type: ignore[attr-defined]
        assert needs == {0: 2 if existed else 1}, "it comes after what was sent before the crash"


def test_a_restart_continues_from_the_checkpoint() -> None:
    sender = make("prs", 0, 2)
    disk = _Disk("prs", 1, 2)
    for number in range(1, 201):
        (packet,) = [e.packet for e in sender.broadcast(b"", 0, (1,)) if isinstance(e, Send)]
        disk.carry_out(disk.node.receive(packet, 0, 0, 0))
        if number % 3 == 0:
            disk.carry_out(disk.node.broadcast(b"", 0, (0,)))
    state = _state(disk.node)
    assert sum(key[0] == "step" for key in disk.store if type(key) is tuple) < 64
    disk.carry_out(disk.node.broadcast(b"lost", 0, (0,)), 0)
    assert _state(disk.node) == state
    assert len(disk.delivered) == 200
    assert {packet.message.id.number for packet, _ in disk.sent if type(packet) is not AckPacket} == set(
        range(1, 67)
    )


def test_a_restart_skips_and_erases_steps_that_the_checkpoint_covers() -> None:
    sender = make("prs", 0, 2)
    for crash_after in range(4, 70, 5):
        disk = _Disk("prs", 1, 2)
        for _ in range(64):
            (packet,) = [e.packet for e in sender.broadcast(b"", 0, (1,)) if isinstance(e, Send)]
            effects = disk.node.receive(packet, 0, 0, 0)
            long = len(effects) > 10
            disk.carry_out(effects, crash_after if long else None)
        assert long, "the 64th delivery makes the checkpoint"
        steps = [key for key in disk.store if type(key) is tuple and key[0] == "step"]
        assert not steps
        assert len(disk.delivered) == len(set(disk.delivered)) == 64
        sender = make("prs", 0, 2)


def test_a_new_incarnation_is_a_new_process() -> None:
    """A node without its saved state announces it; messages to its old incarnation are only acknowledged."""
    options = registry.read_options(registry.find("prs"), {"rto": 1000})
    sender = make("prs", 0, 3, rto=1000)
    (old,) = [e.packet for e in sender.broadcast(b"old", 0, (1,)) if isinstance(e, Send)]
    restarted = registry.find("prs").build("node", Context(1, (0, 1, 2), options, Random(1), 1))  # type: ignore[misc]
    hello = {e.to: e.packet for e in restarted.start(0, {}) if isinstance(e, Send)}
    assert hello == {0: LifePacket(1), 2: LifePacket(1)}
    (ack,) = restarted.receive(old, 0, 1, 0)
    assert isinstance(ack, Send)
    assert ack.packet == AckPacket((MessageId(0, 0, 1),))
    (answer,) = [e for e in sender.receive(hello[0], 1, 2, 0) if isinstance(e, Send)]
    restarted.receive(answer.packet, 0, 3, 0)
    assert sender.sizes()["unacknowledged"] == 0, "given up: its destination process does not exist any more"
    assert restarted.sizes()["unacknowledged"] == 1, "node 2 has not answered yet"
    (new,) = [e.packet for e in sender.broadcast(b"new", 4, (1,)) if isinstance(e, Send)]
    delivered = [e.message.payload for e in restarted.receive(new, 0, 5, 0) if isinstance(e, Deliver)]
    assert delivered == [b"new"], "it does not wait for messages to the old incarnation"


def test_a_node_that_left_is_not_addressed_and_not_waited_for() -> None:
    stays, leaves = make("prs", 0, 3, rto=1000), make("prs", 1, 3, rto=1000)
    stays.broadcast(b"", 0, (1,))
    farewell = next(e.packet for e in leaves.leave(1) if isinstance(e, Send))
    with pytest.raises(Refused, match="leaving"):
        leaves.broadcast(b"", 2, (0,))
    stays.receive(farewell, 1, 3, 0)
    assert stays.sizes()["unacknowledged"] == 0
    assert stays.sizes()["barrier_tuples"] == 0
    assert _destinations(stays.broadcast(b"", 4)) == (2,)
    with pytest.raises(Refused, match="destination 1"):
        stays.broadcast(b"", 5, (1,))


@pytest.mark.parametrize(("protocol", "options"), [*RIVALS, ("prs", {"case": "broadcast"})])
def test_a_saved_state_does_not_change_with_later_inputs(protocol: str, options: dict[str, Any]) -> None:
    """A driver may keep the value in memory until it writes it."""
    receiver: Any = make(protocol, 3, 4, **options)
    kept: list[tuple[Any, bytes]] = []
    for packet, sender in _chain(protocol, **options):
        receiver.receive(packet, sender, 0, 0)
        receiver.broadcast(b"", 0)
        saved = receiver.rule.save()
        kept.append((saved, msgspec.msgpack.encode(saved)))
    for saved, written in kept:
        assert msgspec.msgpack.encode(saved) == written
    again: Any = make(protocol, 3, 4, **options)
    again.rule.load(msgspec.msgpack.decode(kept[-1][1]))
    assert msgspec.msgpack.encode(again.rule.save()) == kept[-1][1]


@pytest.mark.parametrize(("protocol", "options"), RIVALS)
def test_a_later_incarnation_restarts_though_nobody_has_acknowledged_its_announcement(
    protocol: str, options: dict[str, Any]
) -> None:
    """The checkpoint names what is unacknowledged, without the announcement, which is no message."""
    settings = {**DURABLE, **options, "checkpoint": 1}

    def later() -> Node:
        context = Context(1, (0, 1, 2), settings, Random(1), 1)
        return registry.make(protocol, "node", context)

    node, store = later(), dict[Any, Any]()
    for effects in (node.start(0, {}), node.broadcast(b"said", 1, (0,))):
        persist(store, effects)
    again = later().start(2, round_trip(store))
    said = [e.packet for e in again if isinstance(e, Send) and not isinstance(e.packet, LifePacket)]
    assert [packet.message.payload for packet in said] == [b"said"]
    assert {e.to for e in again if isinstance(e, Send) and isinstance(e.packet, LifePacket)} == {0, 2}


@pytest.mark.parametrize("restarted", [False, True])
def test_nothing_is_remembered_about_messages_to_earlier_incarnations(restarted: bool) -> None:
    node, store = make("prs", 0, 3, **DURABLE), dict[Any, Any]()
    for number in range(1, 4):
        for effects in (node.broadcast(b"", number, (1,)), node.receive(LifePacket(number), 1, number, 0)):
            persist(store, effects)
    if restarted:
        node = make("prs", 0, 3, **DURABLE)
        node.start(9, round_trip(store))
    assert node.sizes()["barrier_tuples"] == 0


@pytest.mark.parametrize(("protocol", "options"), RIVALS)
def test_a_leaving_node_tells_a_new_incarnation_of_a_node_that_knew(
    protocol: str, options: dict[str, Any]
) -> None:
    """Otherwise the new incarnation would send to the node that left for ever."""
    leaves = make(protocol, 0, 3, **options, **DURABLE)
    assert _leaves_sent(leaves.leave(0)) == {1, 2}
    leave = MessageId(0, 0, ANNOUNCEMENT)
    leaves.receive(AckPacket((leave,)), 1, 1, 0)
    assert _leaves_sent(leaves.receive(LifePacket(1), 1, 2, 0)) == {1, 2}, "2 has not acknowledged yet"
    assert not _leaves_sent(leaves.receive(LifePacket(1), 1, 3, 0)), "only the timer repeats it"
    for peer in (1, 2):
        leaves.receive(AckPacket((leave,)), peer, 4, 0)
    assert leaves.sizes()["unacknowledged"] == 0


def _leaves_sent(effects: Effects) -> set[int]:
    """Return the nodes to which these effects say that the node leaves."""
    return {e.to for e in effects if isinstance(e, Send) and e.packet == LifePacket(0, True)}
