"""The same copies at the same instants, under another ordering: what would a protocol have delivered, and when?

Real nodes of a protocol run over the first copies of a deployment. Each broadcasts its messages and receives
its copies at the instants of its own clock; only the ordering decides when a message is delivered. Nothing is
assumed about radio links. The log leaves open the order of events of one second: the seed draws it, so an
interval over seeds is what the log does not decide.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from msgspec import Struct

from precede.audit.copies import Copies
from precede.core.dispatch import EffectHandler
from precede.core.effects import RADIO, Accept, CancelTimer, Deliver, Discard, Key, Observe, Send, SetTimer
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.core.node import Context, Node
from precede.protocols import registry
from precede.witness.verify import verify

DISSEMINATION: Final = {"dissemination": "direct", "rto": "0s"}
"""The source stamps a message once and sends it to all; nothing is acknowledged or sent again."""

ABOVE: Final = "above"
"""The name of the observation that says where on a screen a message is shown (docs/concepts/display.md)."""


class Outcome(Struct, frozen=True):
    """What a protocol did with the copies of a deployment.

    `delivered` counts messages handed over at nodes that did not create them. `waiting` were received and still
    wait at the end of the log, `discarded` were given up. `fifo` and `causal` count violations among the
    deliveries, by the witness; `answers_above` and `revisions` are those of display order, on a screen that
    appends unless the protocol says where. `waits_us` are the times from reception to delivery,
    `control_bytes` those of the stamps, for all copies.
    """

    copies: int
    delivered: int
    waiting: int
    discarded: int
    fifo: int
    causal: int
    answers_above: int
    revisions: int
    waits_us: tuple[int, ...]
    control_bytes: int


class _Event(Struct, frozen=True):
    message: int
    at: Instant
    is_creation: bool


def replay_copies(
    copies: Copies, protocol: str, options: Mapping[str, Any], seed: int, end_us: Instant
) -> Outcome:
    """Let the nodes of a protocol receive the copies, and wait until `end_us` by their own clocks.

    Raise BadInput for an unknown protocol.
    """
    player = _Player(copies, protocol, options, seed)
    player.play(_sequences(copies, Random(f"order of equal instants {seed}")))
    player.end(end_us)
    return player.outcome()


def _sequences(copies: Copies, random: Random) -> list[list[_Event]]:
    """Return the events of each node in an order that its clock allows; the generator orders equal instants."""
    events: list[list[_Event]] = [[] for _ in copies.names]
    for node, message, at in zip(
        copies.node.tolist(), copies.message.tolist(), copies.earliest.tolist(), strict=True
    ):
        events[node].append(_Event(message, at, False))
    by_rank = sorted(range(len(copies.labels)), key=lambda m: (copies.created[m], copies.rank[m]))
    for message in by_rank:
        events[int(copies.source[message])].append(_Event(message, int(copies.created[message]), True))
    for own in events:
        random.shuffle(own)
        own.sort(key=lambda event: event.at)
        creations = iter(sorted((e for e in own if e.is_creation), key=lambda e: int(copies.rank[e.message])))
        own[:] = [next(creations) if event.is_creation else event for event in own]
    return events


class _Player(EffectHandler):
    """Drives the nodes and records what they deliver."""

    def __init__(self, copies: Copies, protocol: str, options: Mapping[str, Any], seed: int) -> None:
        self._copies = copies
        entry = registry.find(protocol)
        members = tuple(range(len(copies.names)))
        written = {**DISSEMINATION, **options}
        self._nodes: list[Node] = [
            registry.make_entry(
                entry, entry.roles[0], Context(node, members, written, Random(f"{seed} {node}"), 0)
            )
            for node in members
        ]
        self._timers: list[dict[Key, Instant]] = [{} for _ in members]
        self._packets: dict[int, Packet] = {}
        self._labels: dict[MessageId, int] = {}
        self._received: dict[tuple[NodeId, int], Instant] = {}
        self._steps = [0] * len(members)
        self._rows: list[dict[str, Any]] = []
        self._waits: list[int] = []
        self._discarded = self._control_bytes = 0
        self._creating = -1

    def play(self, sequences: Sequence[Sequence[_Event]]) -> None:
        """Play the events of all nodes: a message is created before anybody receives it."""
        for node, own in enumerate(sequences):
            if own:
                self.carry_out(node, self._nodes[node].start(own[0].at, {}), own[0].at)
        places = [0] * len(sequences)
        moved = True
        while moved:
            moved = False
            for node, own in enumerate(sequences):
                while places[node] < len(own) and self._is_possible(own[places[node]]):
                    self._take(node, own[places[node]])
                    places[node] += 1
                    moved = True
        assert places == [len(own) for own in sequences], "messages that depend on themselves"

    def end(self, at: Instant) -> None:
        """Let time pass at every node until the end of the log."""
        for node in range(len(self._nodes)):
            self._fire(node, at)

    def outcome(self) -> Outcome:
        """Return what happened; the witness judges the deliveries."""
        received = len(self._received)
        delivered = len(self._waits)
        display = verify(self._rows, "display")
        return Outcome(
            copies=received,
            delivered=delivered,
            waiting=received - delivered - self._discarded,
            discarded=self._discarded,
            fifo=verify(self._rows, "fifo").violations,
            causal=verify(self._rows, "causal").violations,
            answers_above=display.counts.get("answer_above", 0),
            revisions=display.revisions or 0,
            waits_us=tuple(self._waits),
            control_bytes=self._control_bytes,
        )

    def _is_possible(self, event: _Event) -> bool:
        return event.is_creation or event.message in self._packets

    def _take(self, node: NodeId, event: _Event) -> None:
        self._fire(node, event.at)
        if event.is_creation:
            self._creating = event.message
            self.carry_out(node, self._nodes[node].broadcast(b"", event.at), event.at)
            return
        packet, source = self._packets[event.message], int(self._copies.source[event.message])
        self._received[node, event.message] = event.at
        self._control_bytes += packet.control_bytes
        self.carry_out(node, self._nodes[node].receive(packet, source, event.at, RADIO), event.at)

    def _fire(self, node: NodeId, until: Instant) -> None:
        timers = self._timers[node]
        while due := [(at, repr(key), key) for key, at in timers.items() if at <= until]:
            at, _, key = min(due)
            del timers[key]
            self.carry_out(node, self._nodes[node].timer(key, at), at)

    def _record(self, node: NodeId, kind: str, message: int, reason: str = "") -> None:
        named = {"node": self._copies.names[node], "message": self._copies.labels[message]}
        self._rows.append({**named, "step": self._steps[node], "kind": kind, "reason": reason})
        self._steps[node] += 1

    def accept(self, node: NodeId, effect: Accept, now: Instant) -> None:
        self._labels[effect.message.id] = self._creating
        self._record(node, "broadcast", self._creating)

    def send(self, node: NodeId, effect: Send, now: Instant) -> None:
        self._packets.setdefault(self._creating, effect.packet)

    def deliver(self, node: NodeId, effect: Deliver, now: Instant) -> None:
        message = self._labels[effect.message.id]
        self._record(node, "delivered", message)
        if int(self._copies.source[message]) != node:
            self._waits.append(now - self._received[node, message])

    def discard(self, node: NodeId, effect: Discard, now: Instant) -> None:
        if (node, self._labels[effect.message.id]) in self._received:
            self._discarded += 1

    def observe(self, node: NodeId, effect: Observe, now: Instant) -> None:
        if effect.name == ABOVE:
            self._record(node, "observed", self._labels[effect.message.id], ABOVE)

    def set_timer(self, node: NodeId, effect: SetTimer, now: Instant) -> None:
        self._timers[node][effect.key] = effect.at

    def cancel_timer(self, node: NodeId, effect: CancelTimer, now: Instant) -> None:
        self._timers[node].pop(effect.key, None)
