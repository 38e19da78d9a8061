"""Explores every schedule of a small world of broadcasting nodes: messages, packets, timers, crashes.

The nodes are the real ones. A packet that was sent can reach its addressee at any later time, any number of
times, or never: that is loss, duplication and reordering at once. Any timer may fire at any moment; the node's
clock then reads what the timer was set to. A crash falls before any step of an input's effects, also of the
recovery from another crash; the node restarts at once from its disk. Equal states are visited once, and an
input that changes nothing leads nowhere. There is no other reduction.

Of every state is asked: is each node's list of deliveries causal, and without a second copy? Of every
`heal_every`th also: if from now on nothing is lost and nobody crashes, is everything delivered everywhere?
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from precede.core.effects import (
    RADIO,
    Accept,
    CancelTimer,
    Deliver,
    Effect,
    Effects,
    Key,
    Medium,
    Persist,
    Send,
    SetTimer,
)
from precede.core.identity import NEIGHBOURS, MessageId, NodeId
from precede.core.instants import HOUR, Duration, Instant
from precede.core.messages import Packet
from precede.core.node import Context, Node, round_trip
from precede.protocols.registry import Entry, make_entry
from tests.protocols.explored.healing import Healing
from tests.protocols.was2021.exploration_state import Still, canonical


class Broken(Exception):
    """An invariant does not hold; the message names it."""


class Timer(NamedTuple):
    key: Key
    at: Instant


class Member(NamedTuple):
    """A node: the number of its state, its clock, its timers, its disk, and what it has delivered."""

    node: int
    clock: Instant = 0
    timers: tuple[Timer, ...] = ()
    disk: tuple[tuple[Key, bytes], ...] = ()
    delivered: tuple[MessageId, ...] = ()


class State(NamedTuple):
    """`air` has every packet ever sent, as (sender, addressee, number of the packet).

    `pasts` has, for each message, what its author had delivered before.
    """

    members: tuple[Member, ...]
    air: frozenset[tuple[NodeId, NodeId, int]]
    pasts: tuple[tuple[MessageId, tuple[MessageId, ...]], ...]
    broadcasts: tuple[int, ...]
    timers: int
    crashes: int


class Explorer:
    """All states within bounds: how many messages each node broadcasts, how many timers fire, how many crash.

    All nodes are neighbours of each other over `over`. `spoil` plants a fault: it changes a node's effects.
    """

    RESTART_TAKES: Duration = 0
    """How far a node's clock moves in a restart."""

    def __init__(
        self,
        entry: Entry,
        options: dict[str, Any],
        broadcasts: tuple[int, ...],
        timers: int = 0,
        crashes: int = 0,
        heal_every: int = 1,
        over: Medium = RADIO,
        spoil: Callable[[Effects], Effects] = lambda effects: effects,
    ) -> None:
        self._entry = entry
        self._options = options
        self._everybody = tuple(range(len(broadcasts)))
        self._bounds = (broadcasts, timers, crashes)
        self._heal_every = heal_every
        self._over = over
        self._spoil = spoil
        self._inputs: list[tuple[Any, ...]] = []
        self._numbers: dict[Any, int] = {}
        self._packets: list[Packet] = []
        self._packet_numbers: dict[str, int] = {}
        self._answers: dict[tuple[int, Any], tuple[int, tuple[Effect, ...]]] = {}
        self._starts: dict[tuple[NodeId, Instant, Any], tuple[int, Effects]] = {}

    def explore(self, most: int | None = None) -> int:
        """Visit every state, breadth first, at most so many. Returns how many; raises `Broken`."""
        first = self._first()
        seen, level = {first}, [first]
        while level:
            later = []
            for state in level:
                for after in self._following(state):
                    if after not in seen:
                        seen.add(after)
                        later.append(after)
                        self._check(after)
                        if len(seen) % self._heal_every == 0:
                            self._check_healed(after)
                if most is not None and len(seen) >= most:
                    return len(seen)
            level = later
        return len(seen)

    def walk(self, seed: int, steps: int) -> None:
        """Follow one random schedule."""
        random, state = Random(seed), self._first()
        for _ in range(steps):
            choices = list(self._following(state))
            if not choices:
                break
            state = random.choice(choices)
            self._check(state)
        self._check_healed(state)

    # Nodes as values --------------------------------------------------------------------------------

    def _make(self, id: NodeId) -> Node:
        return make_entry(self._entry, "node", Context(id, self._everybody, self._options, Still(0), 0))

    def _intern(self, node: Node, inputs: tuple[Any, ...]) -> int:
        """The number of a node's state, which these inputs lead to."""
        number = self._numbers.setdefault(canonical(node), len(self._inputs))
        if number == len(self._inputs):
            self._inputs.append(inputs)
        return number

    def _node(self, number: int) -> Node:
        """A fresh node in this state."""
        id, *inputs = self._inputs[number]
        node = self._make(id)
        for event in inputs:
            self._give(node, event)
        return node

    def _give(self, node: Node, event: tuple[Any, ...]) -> Effects:
        """A node's effects after an input; what it queues is sent at once."""
        effects = list(self._spoil(self._input(node, event)))
        for effect in effects:
            if type(effect) is Send and effect.key is not None:
                effects += node.sent(effect.key, event[1], True)
        return effects

    def _packet(self, packet: Packet) -> int:
        text = repr(packet)
        number = self._packet_numbers.setdefault(text, len(self._packets))
        if number == len(self._packets):
            self._packets.append(packet)
        return number

    def _answer(self, number: int, event: tuple[Any, ...]) -> tuple[int, tuple[Effect, ...]]:
        """A node's next state and its effects after an input; computed once."""
        answer = self._answers.get((number, event))
        if answer is None:
            node = self._node(number)
            effects = self._give(node, event)
            after = self._intern(node, (*self._inputs[number], event))
            answer = self._answers[number, event] = (after, tuple(effects))
        return answer

    def _input(self, node: Node, event: tuple[Any, ...]) -> Effects:
        match event:
            case ("start", now, disk):
                return node.start(now, round_trip({key: pickle.loads(value) for key, value in disk}))
            case ("broadcast", now):
                return node.broadcast(b"", now)
            case ("receive", now, sender, packet):
                known = self._packets[packet] if isinstance(packet, int) else packet
                return node.receive(known, sender, now, self._over)
            case ("timer", now, key):
                return node.timer(key, now)
            case ("up", now, peer):
                return node.link_up(peer, now, self._over)
            case ("down", now, peer):
                return node.link_down(peer, now, self._over)
        raise TypeError(event)

    # The world --------------------------------------------------------------------------------

    def _first(self) -> State:
        broadcasts, timers, crashes = self._bounds
        empty = tuple(Member(0) for _ in self._everybody)
        state = State(empty, frozenset(), (), broadcasts, timers, crashes)
        for id in self._everybody:
            state = self._carry_out(state, id, *self._started(id, 0, ()))
        for id in self._everybody:
            state = self._meet(state, id)
        return state

    def _started(self, id: NodeId, now: Instant, disk: tuple[tuple[Key, bytes], ...]) -> tuple[int, Effects]:
        """The state of a node that has started from a disk, and its effects; computed once."""
        started = self._starts.get((id, now, disk))
        if started is None:
            node, event = self._make(id), ("start", now, disk)
            effects = self._give(node, event)
            started = self._starts[id, now, disk] = self._intern(node, (id, event)), effects
        return started

    def _meet(self, state: State, id: NodeId, changes: tuple[str, ...] = ("up",)) -> State:
        """The links of a node to all others change."""
        for peer in self._everybody:
            if peer != id:
                for change in changes:
                    state = self._act(state, id, (change, state.members[id].clock, peer))
        return state

    def _act(self, state: State, id: NodeId, event: tuple[Any, ...]) -> State:
        number, effects = self._answer(state.members[id].node, event)
        return self._carry_out(state, id, number, effects)

    def _carry_out(self, state: State, id: NodeId, number: int, effects: Effects) -> State:
        member = state.members[id]._replace(node=number)
        air, pasts = state.air, dict(state.pasts)
        for effect in effects:
            if type(effect) is Send:
                to = self._everybody if effect.to == NEIGHBOURS else (effect.to,)
                packet = self._packet(effect.packet)
                air |= {(id, peer, packet) for peer in to if peer != id and peer in self._everybody}
            elif type(effect) is Deliver:
                member = member._replace(delivered=(*member.delivered, effect.message.id))
            elif type(effect) is Accept:
                pasts.setdefault(effect.message.id, member.delivered)
            elif type(effect) is Persist:
                disk = {key: value for key, value in member.disk if key != effect.key}
                if effect.value is not None:
                    disk[effect.key] = pickle.dumps(effect.value)
                member = member._replace(disk=tuple(sorted(disk.items(), key=repr)))
            elif type(effect) is SetTimer or type(effect) is CancelTimer:
                timers = {timer.key: timer.at for timer in member.timers}
                timers.pop(effect.key, None)
                if type(effect) is SetTimer:
                    timers[effect.key] = effect.at
                member = member._replace(
                    timers=tuple(Timer(*item) for item in sorted(timers.items(), key=repr))
                )
        members = (*state.members[:id], member, *state.members[id + 1 :])
        return state._replace(members=members, air=air, pasts=tuple(sorted(pasts.items())))

    def _following(self, state: State) -> Iterator[State]:
        for before, id, event in self._events(state):
            after = self._act(before, id, event)
            if after != state:
                yield after
            if before.crashes:
                effects = self._answer(before.members[id].node, event)[1]
                yield from self._crashes(before, id, effects)

    def _events(self, state: State) -> Iterator[tuple[State, NodeId, tuple[Any, ...]]]:
        """The inputs that are possible now, each with the state in which it happens."""
        for sender, to, packet in sorted(state.air):
            yield state, to, ("receive", state.members[to].clock, sender, packet)
        for id, left in enumerate(state.broadcasts):
            if left:
                broadcasts = (*state.broadcasts[:id], left - 1, *state.broadcasts[id + 1 :])
                yield state._replace(broadcasts=broadcasts), id, ("broadcast", state.members[id].clock)
        if state.timers:
            for id, member in enumerate(state.members):
                for timer in member.timers:
                    yield self._due(state._replace(timers=state.timers - 1), id, timer)

    def _due(self, state: State, id: NodeId, timer: Timer) -> tuple[State, NodeId, tuple[Any, ...]]:
        member = state.members[id]
        clock = max(member.clock, timer.at)
        member = member._replace(clock=clock, timers=tuple(each for each in member.timers if each != timer))
        members = (*state.members[:id], member, *state.members[id + 1 :])
        return state._replace(members=members), id, ("timer", clock, timer.key)

    def _crashes(self, state: State, id: NodeId, effects: Effects) -> Iterator[State]:
        """The states after a crash before each step of these effects, and a restart that may crash again."""
        state = state._replace(crashes=state.crashes - 1)
        for cut in steps_of(effects):
            torn = self._carry_out(state, id, state.members[id].node, effects[:cut])
            member = torn.members[id]
            member = member._replace(timers=(), clock=member.clock + self.RESTART_TAKES)
            torn = torn._replace(members=(*torn.members[:id], member, *torn.members[id + 1 :]))
            number, recovery = self._started(id, member.clock, member.disk)
            yield self._greeted(self._carry_out(torn, id, number, recovery), id)
            if torn.crashes:
                yield from self._crashes(torn, id, recovery)

    def _greeted(self, state: State, id: NodeId) -> State:
        """The neighbours of a restarted node have noticed, and it meets them again."""
        state = self._meet(state, id)
        for peer in self._everybody:
            if peer != id:
                for event in ("down", "up"):
                    state = self._act(state, peer, (event, state.members[peer].clock, id))
        return state

    # The judgement --------------------------------------------------------------------------------

    def _check(self, state: State) -> None:
        self._check_order(state, {id: member.delivered for id, member in enumerate(state.members)})

    def _check_order(self, state: State, deliveries: Mapping[NodeId, Sequence[MessageId]]) -> None:
        pasts = dict(state.pasts)
        for id, delivered in deliveries.items():
            before: dict[MessageId, None] = {}
            for message in delivered:
                if message in before:
                    raise Broken(f"node {id} delivers {message} twice: {delivered}")
                late = [needed for needed in pasts[message] if needed not in before]
                if late and self._must_deliver(id, late, delivered):
                    raise Broken(f"node {id} delivers {message} before {late}")
                before[message] = None

    def _must_deliver(self, id: NodeId, late: list[MessageId], delivered: Sequence[MessageId]) -> bool:
        """Is a node due to deliver these messages, of which it has not delivered any in time?"""
        return True

    def _check_healed(self, state: State) -> None:
        """What is on its way is lost, all links break and come back; from then on every packet arrives once."""
        healing = Healing(
            state, {id: self._node(member.node) for id, member in enumerate(state.members)}, self._give
        )
        for id in self._everybody:
            for peer in self._everybody:
                if peer != id:
                    healing.give(id, "down", peer)
                    healing.give(id, "up", peer)
        messages = len(state.pasts)
        healing.run(HOUR, lambda: all(len(delivered) >= messages for delivered in healing.delivered.values()))
        if any(len(delivered) < messages for delivered in healing.delivered.values()):
            raise Broken(f"never delivered everywhere: {sorted(dict(state.pasts))}, {healing.delivered}")
        self._check_order(state, healing.delivered)


def steps_of(effects: Effects) -> Iterator[int]:
    """The places at which a crash can fall: never between a `Persist` and the `Deliver` directly behind it."""
    for place, effect in enumerate(effects):
        if not (type(effect) is Deliver and place and type(effects[place - 1]) is Persist):
            yield place
