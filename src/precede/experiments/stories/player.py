"""Plays scenario texts: real protocol nodes, and packets that wait until a sentence lets them arrive.

There is no network model: a packet waits until a sentence `receives` it, so the page fixes the schedule. Time
passes only by `at` and `after`; timers that become due fire in order.
"""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

import msgspec
from msgspec import Struct

from precede.core.dispatch import EffectHandler, store_value
from precede.core.effects import (
    RADIO,
    Accept,
    CancelTimer,
    Deliver,
    Discard,
    Effects,
    Key,
    Observe,
    Persist,
    Send,
    SetTimer,
)
from precede.core.errors import BadInput, Refused
from precede.core.identity import NEIGHBOURS, MessageId, NodeId
from precede.core.instants import Duration, Instant, format_duration
from precede.core.messages import Message, Packet
from precede.core.node import Context, Node, round_trip
from precede.experiments.stories.text import ScenarioText, Step
from precede.protocols import registry

_MOST_TIMERS: Final = 10_000


class Mismatch(Struct, frozen=True):
    """A step whose effects differ from those on the page."""

    line: int
    step: str
    expected: tuple[str, ...]
    shown: tuple[str, ...]


def play(text: ScenarioText, entry: registry.Entry[Any] | None = None) -> list[list[str]]:
    """Play all steps of a page; return for each the lines that follow from it."""
    if text.stations:
        from precede.experiments.stories.cell_player import CellPlayer

        player: Player = CellPlayer(text, entry)
    else:
        player = Player(text, entry)
    return [player.play(step) for step in text.steps]


def mismatches(text: ScenarioText, shown: list[list[str]]) -> list[Mismatch]:
    """Return the steps at which the page and the played result differ."""
    return [
        Mismatch(step.line, step.text, step.expected, tuple(follows))
        for step, follows in zip(text.steps, shown, strict=True)
        if list(step.expected) != follows
    ]


class Actor:
    """One node of the page, with its store and its timers."""

    def __init__(self, id: NodeId) -> None:
        self.id = id
        self.node: Node = Node()
        self.incarnation = 0
        self.accepted = 0
        self.store: dict[Key, Any] = {}
        self.timers: dict[Key, Instant] = {}
        self.up = False
        self.offset: Duration = 0
        self.crash_after: int | None = None
        self.held: dict[MessageId, None] = {}


class Player(EffectHandler):
    """Plays steps. It has the actors by name, the packets in flight and the links that are up."""

    def __init__(self, text: ScenarioText, entry: registry.Entry[Any] | None = None) -> None:
        self.text = text
        self.entry = entry or registry.find(text.protocol)
        self.now: Instant = 0
        self.names = text.nodes
        self.actors = {name: Actor(place) for place, name in enumerate(text.nodes)}
        self.air: list[tuple[NodeId, NodeId, Packet]] = []
        self.links: dict[tuple[NodeId, NodeId], None] = {}
        self.message_names: dict[MessageId, str] = {}
        self.ids: dict[str, MessageId] = {}
        self.lines: list[str] = []
        self._name = ""
        for actor in self.actors.values():
            self._start(actor)

    def play(self, step: Step) -> list[str]:
        self.lines = []
        getattr(self, "_clock_of" if step.verb == "clock" else f"_{step.verb}")(step)
        for name, actor in self.actors.items():
            self._show_held(name, actor)
            self._show_more(name, actor)
        return self.lines

    def _show_more(self, name: str, actor: Actor) -> None:
        """Does nothing; subclasses show further changes in a node."""

    def _broadcasts(self, step: Step) -> None:
        actor = self._living(step)
        self._name = step.message
        to = None if step.to is None else tuple(sorted(self.actors[name].id for name in step.to))
        try:
            effects = actor.node.broadcast(step.message.encode(), self._clock(actor), to, step.time)
        except Refused as error:
            self.lines.append(f"{step.node} refuses {step.message}: {error}")
            return
        before = len(self.air)
        self._carry_out(actor, effects)
        self._show_constraints(step, self.air[before:])

    def _receives(self, step: Step) -> None:
        actor = self._living(step)
        sender, packet = self._take(step, actor)
        self._receive(actor, sender, packet)

    def _misses(self, step: Step) -> None:
        self._take(step, self.actors[step.node])

    def _enters(self, step: Step) -> None:
        raise self._wrong(step, "there are no cells: name the stations in a line `stations: ...`")

    def _take(self, step: Step, actor: Actor) -> tuple[NodeId, Packet]:
        """Remove and return the oldest packet in flight that a sentence names. Raise `BadInput` if none is."""
        for place, (sender, to, packet) in enumerate(self.air):
            named = not step.peer or self.names[sender] == step.peer
            if to == actor.id and named and self._is(packet, step.message):
                del self.air[place]
                return sender, packet
        origin = f" from {step.peer}" if step.peer else ""
        raise self._wrong(step, f"no packet with {step.message} is on its way to {step.node}{origin}")

    def _arrive(self, step: Step) -> None:
        while self.air:
            sender, to, packet = self.air.pop(0)
            actor = self.actors[self.names[to]]
            if actor.up:
                self._receive(actor, sender, packet)

    def _meets(self, step: Step) -> None:
        for one, other in ((step.node, step.peer), (step.peer, step.node)):
            actor, peer = self.actors[one], self.actors[other].id
            self.links[actor.id, peer] = None
            if actor.up:
                self._carry_out(actor, actor.node.link_up(peer, self._clock(actor), RADIO))

    def _parts(self, step: Step) -> None:
        pair = (self.actors[step.node].id, self.actors[step.peer].id)
        self.air = [item for item in self.air if {item[0], item[1]} != set(pair)]
        for one, other in ((step.node, step.peer), (step.peer, step.node)):
            actor, peer = self.actors[one], self.actors[other].id
            self.links.pop((actor.id, peer), None)
            if actor.up:
                self._carry_out(actor, actor.node.link_down(peer, self._clock(actor), RADIO))

    def _crashes(self, step: Step) -> None:
        actor = self._living(step)
        if step.count is not None:
            actor.crash_after = step.count
        else:
            self._down(actor)

    def _restarts(self, step: Step) -> None:
        actor = self.actors[step.node]
        if actor.up:
            raise self._wrong(step, f"{step.node} is up")
        if not step.keep:
            actor.incarnation, actor.accepted, actor.store = actor.incarnation + 1, 0, {}
        self._start(actor)

    def _leaves(self, step: Step) -> None:
        actor = self._living(step)
        self._carry_out(actor, actor.node.leave(self._clock(actor)))
        actor.up = False

    def _clock_of(self, step: Step) -> None:
        self.actors[step.node].offset = step.time or 0

    def _at(self, step: Step) -> None:
        assert step.time is not None
        if step.time < self.now:
            raise self._wrong(step, "time does not go backwards")
        self._wait(step.time)

    def _after(self, step: Step) -> None:
        assert step.time is not None
        self._wait(self.now + step.time)

    def _wait(self, until: Instant) -> None:
        """Let time pass until an instant. Timers fire in the order in which they are due."""
        standing = 0
        while True:
            due = [
                (max(at - actor.offset, self.now), actor.id, repr(key), key)
                for actor in self.actors.values()
                if actor.up
                for key, at in actor.timers.items()
                if at - actor.offset <= until
            ]
            if not due:
                break
            at, id, _, key = min(due, key=lambda item: item[:3])
            standing = standing + 1 if at == self.now else 0
            if standing > _MOST_TIMERS:
                raise RuntimeError(
                    f"after {_MOST_TIMERS:,} timers that were due at once (the last one: {key!r} of node "
                    f"{self.names[id]}) time stands still at {format_duration(self.now)}"
                )
            self.now = at
            actor = self.actors[self.names[id]]
            del actor.timers[key]
            self._carry_out(actor, actor.node.timer(key, self._clock(actor)))
        self.now = until

    def _start(self, actor: Actor) -> None:
        members = tuple(range(len(self.names)))
        context = Context(actor.id, members, self.text.options, Random(actor.id), actor.incarnation)
        actor.node = registry.make_entry(self.entry, self._role(actor), context)
        actor.up = True
        actor.held = {}
        self._carry_out(actor, actor.node.start(self._clock(actor), round_trip(actor.store)))

    def _role(self, actor: Actor) -> str:
        return self.entry.roles[0]

    def _down(self, actor: Actor) -> None:
        actor.up, actor.crash_after, actor.timers = False, None, {}

    def _receive(self, actor: Actor, sender: NodeId, packet: Packet) -> None:
        self._carry_out(actor, actor.node.receive(packet, sender, self._clock(actor), RADIO))

    def _carry_out(self, actor: Actor, effects: Effects) -> None:
        self.carry_out(actor.id, effects, self._clock(actor))

    def _actor(self, node: NodeId) -> Actor:
        return self.actors[self.names[node]]

    def begin_step(self, node: NodeId) -> bool:
        """Count down to a crash that the page puts amid effects. Return False when the node goes down."""
        actor = self._actor(node)
        if actor.crash_after is not None:
            if actor.crash_after == 0:
                self.lines.append(f"{self.names[node]} is down")
                self._down(actor)
                return False
            actor.crash_after -= 1
        return True

    def send(self, node: NodeId, effect: Send, now: Instant) -> None:
        actor = self._actor(node)
        self._send(actor, effect.packet, effect.to)
        if effect.key is not None:
            self.carry_out(node, actor.node.sent(effect.key, now, True), now)

    def deliver(self, node: NodeId, effect: Deliver, now: Instant) -> None:
        self.lines.append(f"{self.names[node]} delivers {self._called(effect.message.id)}")

    def discard(self, node: NodeId, effect: Discard, now: Instant) -> None:
        self.lines.append(f"{self.names[node]} discards {self._called(effect.message.id)} ({effect.reason})")

    def observe(self, node: NodeId, effect: Observe, now: Instant) -> None:
        self.lines.append(f"{self.names[node]} observes {effect.name} of {self._called(effect.message.id)}")

    def accept(self, node: NodeId, effect: Accept, now: Instant) -> None:
        actor, id = self._actor(node), effect.message.id
        if id.number > actor.accepted:
            actor.accepted = id.number
            self.message_names[id] = self._name
            self.ids[self._name] = id

    def persist(self, node: NodeId, effect: Persist, now: Instant) -> None:
        store_value(self._actor(node).store, effect)

    def set_timer(self, node: NodeId, effect: SetTimer, now: Instant) -> None:
        self._actor(node).timers[effect.key] = effect.at

    def cancel_timer(self, node: NodeId, effect: CancelTimer, now: Instant) -> None:
        self._actor(node).timers.pop(effect.key, None)

    def _send(self, actor: Actor, packet: Packet, to: NodeId) -> None:
        if to != NEIGHBOURS:
            self.air.append((actor.id, to, packet))
            self._show_aggregate(actor, packet, to)
            return
        linked = [peer for source, peer in self.links if source == actor.id]
        for peer in linked or [other.id for other in self.actors.values() if other is not actor]:
            self.air.append((actor.id, peer, packet))

    def _show_aggregate(self, actor: Actor, packet: Packet, to: NodeId) -> None:
        """Show which messages a packet carries, if its protocol aggregates and it carries several."""
        if getattr(packet, "aggregates", False) and packet.messages > 1:
            together = " ".join(self._called(message.id) for message in carried(packet))
            self.lines.append(f"{self.names[actor.id]} sends {together} to {self.names[to]} in one packet")

    def _is(self, packet: Packet, name: str) -> bool:
        """Does this packet carry the message of that name, or is the name its kind?"""
        if packet.kind == name:
            return True
        id = self.ids.get(name)
        return id is not None and any(message.id == id for message in carried(packet))

    def _show_held(self, name: str, actor: Actor) -> None:
        waiting = {item.message: item.waits_for for item in actor.node.waiting()} if actor.up else {}
        for id, lacking in waiting.items():
            if id not in actor.held:
                lacks = f", waiting for {', '.join(map(self._called, lacking))}" if lacking else ""
                self.lines.append(f"{name} holds {self._called(id)}{lacks}")
        actor.held = dict.fromkeys(waiting)

    def _show_constraints(self, step: Step, sent: list[tuple[NodeId, NodeId, Packet]]) -> None:
        """Show the ordering constraints in the packets of a multicast, if the packets list them."""
        receivers: dict[str, list[str]] = {}
        for _, to, packet in sent:
            constraints = getattr(packet, "constraints", None)
            if constraints is not None:
                lines = [
                    f"{self.names[node]} after {', '.join(map(self._called, ids))}"
                    for node, ids in sorted(constraints().items())
                ]
                receivers.setdefault("; ".join(lines) or "nothing", []).append(self.names[to])
        for carries, names in receivers.items():
            copy = step.message if len(receivers) == 1 else f"{step.message} to {' '.join(names)}"
            self.lines.append(f"{copy} carries {carries}")

    def _called(self, id: MessageId) -> str:
        return self.message_names.get(id, str(id))

    def _clock(self, actor: Actor) -> Instant:
        return self.now + actor.offset

    def _living(self, step: Step) -> Actor:
        actor = self.actors[step.node]
        if not actor.up:
            raise self._wrong(step, f"{step.node} is down")
        return actor

    def _wrong(self, step: Step, cause: str) -> BadInput:
        return BadInput(f"{self.text.file}:{step.line}: {cause}")


def carried(value: Any) -> Iterator[Message]:
    """Yield every message inside a packet, however deep."""
    if isinstance(value, Message):
        yield value
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from carried(getattr(value, field))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from carried(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from carried(item)
