"""Explores every schedule of a small group in total order: joins, votes, foundings, with crashes (DRIFT).

The nodes are the real ones, with every part. The world is that of `worlds`: packets arrive at any time, any
number of times, or never; any timer may fire at any moment; a crash falls before any step of an input's
effects, also of a recovery, and the node restarts from its disk. Nodes beyond `members` are newcomers, which
start outside of the group and are to become sources.

Reductions. Equal states are visited once, and an input that changes nothing leads nowhere. Only timers whose
key begins with a word of `kinds` fire; in `healing` all do.

Invariants, by the word that a `Broken` begins with:

    order        any two nodes deliver the messages between their first and last common one alike; none twice
    views        nodes of a group that are in a view with one number have the same voters in it
    group        nodes that may not move from their groups are in the same one
    streams      no two nodes are sources with one stream
    healing      once nothing is lost, every message that was accepted and not given up is delivered, everybody
                 is a source, and what each of them then broadcasts is delivered everywhere, in one order
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from random import Random
from typing import Any, NamedTuple

from precede.core.effects import Discard, Effects, Key
from precede.core.identity import MessageId, NodeId
from precede.core.instants import MILLISECOND, SECOND, Duration
from precede.core.node import Context, Node
from precede.protocols.drift2006.node import DriftNode
from precede.protocols.drift2006.state import NO_GROUP
from precede.protocols.floods.stream import StreamId
from precede.protocols.registry import Entry, make_entry
from tests.protocols.explored.healing import Healing
from tests.protocols.explored.worlds import Broken, Explorer, State
from tests.protocols.was2021.exploration_state import Still

HEALED_AFTER: Duration = 120 * SECOND


class Facts(NamedTuple):
    """What invariants ask of a node: its group, its view and the voters in it, its own stream."""

    me: NodeId
    group: int
    view: int
    voters: tuple[StreamId, ...]
    stream: StreamId | None


def _facts_of(node: Node) -> Facts:
    assert isinstance(node, DriftNode)
    state = node.state
    return Facts(state.me, state.group, state.view.number, state.view.voters, state.own_stream)


class TotalOrderExplorer(Explorer):
    """In its states `pasts` has every accepted message that its author has not given up."""

    RESTART_TAKES = MILLISECOND
    """The numbers of a node's control packets are instants: they ascend if a restart takes longer than they."""

    def __init__(
        self,
        entry: Entry,
        options: dict[str, Any],
        members: int,
        broadcasts: tuple[int, ...],
        kinds: tuple[str, ...] = ("join", "view", "net", "quiet"),
        **more: Any,
    ) -> None:
        super().__init__(entry, options, broadcasts, **more)
        self._members = tuple(range(members))
        self._kinds = kinds
        self._facts: list[Facts] = []

    def _make(self, id: NodeId) -> Node:
        return make_entry(self._entry, "node", Context(id, self._members, self._options, Still(0), 0))

    def _intern(self, node: Node, inputs: tuple[Any, ...]) -> int:
        number = super()._intern(node, inputs)
        if number == len(self._facts):
            self._facts.append(_facts_of(node))
        return number

    def _meet(self, state: State, id: NodeId, changes: tuple[str, ...] = ("up",)) -> State:
        return state  # DRIFT takes no notice of links

    def _greeted(self, state: State, id: NodeId) -> State:
        return state

    def _facts_in(self, state: State) -> list[Facts]:
        return [self._facts[member.node] for member in state.members]

    def _carry_out(self, state: State, id: NodeId, number: int, effects: Effects) -> State:
        after = super()._carry_out(state, id, number, effects)
        pasts: dict[MessageId, tuple[MessageId, ...]] = {message: () for message, _ in after.pasts}
        for effect in effects:
            if type(effect) is Discard and effect.message.id.source == id and effect.reason != "cut":
                pasts.pop(effect.message.id, None)
        return after._replace(pasts=tuple(sorted(pasts.items())))

    def _events(self, state: State) -> Iterator[tuple[State, NodeId, tuple[Any, ...]]]:
        for before, id, event in super()._events(state):
            if event[0] == "broadcast" and self._facts[state.members[id].node].stream is None:
                continue
            if event[0] == "timer" and kind_of(event[2]) not in self._kinds:
                continue
            yield before, id, event

    def walk(self, seed: int, steps: int) -> None:
        """Follow one random schedule, in which a twelfth of the inputs end in a crash, and heal it."""
        random, state = Random(seed), self._first()
        for _ in range(steps):
            choices = list(self._events(state))
            if not choices:
                break
            before, id, event = random.choice(choices)
            if before.crashes and random.random() < 1 / 12:
                effects = self._answer(before.members[id].node, event)[1]
                crashed = list(self._crashes(before, id, effects))
                state = random.choice(crashed) if crashed else state
            else:
                state = self._act(before, id, event)
            self._check(state)
        self._check_healed(state)

    # The judgement --------------------------------------------------------------------------------

    def _check(self, state: State) -> None:
        super()._check(state)
        self._check_views(self._facts_in(state))

    def _check_order(self, state: State, deliveries: Mapping[NodeId, Sequence[MessageId]]) -> None:
        for id, delivered in deliveries.items():
            if len(set(delivered)) < len(delivered):
                raise Broken(f"order: node {id} delivers a message twice: {delivered}")
        for (one, first), (other, second) in combinations(deliveries.items(), 2):
            common = [message for message in first if message in second]
            if common and _between(first, common) != _between(second, common):
                raise Broken(f"order: {one} delivers {first}, {other} delivers {second}")

    def _check_views(self, nodes: Sequence[Facts]) -> None:
        inside = [facts for facts in nodes if facts.group != NO_GROUP]
        for one, other in combinations(inside, 2):
            if one.group != other.group:
                raise Broken(f"group: {one} and {other}")
            if one.view == other.view and one.voters != other.voters:
                raise Broken(f"views: {one} and {other}")
        streams = [facts.stream for facts in inside if facts.stream is not None]
        if len(set(streams)) < len(streams):
            raise Broken(f"streams: two nodes have one: {streams}")

    def _check_healed(self, state: State, start: Callable[[Healing], None] = lambda healing: None) -> None:
        nodes: dict[NodeId, Any] = {id: self._node(state.members[id].node) for id in self._everybody}
        healing = Healing(state, nodes, self._give)
        start(healing)
        for id, left in enumerate(state.broadcasts):
            for _ in range(left):
                if nodes[id].state.own_stream is not None:
                    healing.give(id, "broadcast")

        def is_settled() -> bool:
            return all(node.state.own_stream is not None for node in nodes.values()) and all(
                message in healing.delivered[id] for id in self._members for message in healing.accepted
            )

        healing.run(HEALED_AFTER, is_settled)
        sources = {id: node.state.own_stream for id, node in nodes.items()}
        if not is_settled():
            raise Broken(
                f"healing: {list(healing.accepted)} are due, {healing.delivered} delivered; sources {sources}"
            )
        probes = [MessageId(id, 0, node.state.message_number + 1) for id, node in nodes.items()]
        for id in nodes:
            healing.give(id, "broadcast")
        healing.run(HEALED_AFTER, lambda: all(set(probes) <= set(each) for each in healing.delivered.values()))
        if any(sorted(delivered[-len(probes) :]) != probes for delivered in healing.delivered.values()):
            raise Broken(f"healing: not everybody delivers what all broadcast at last: {healing.delivered}")
        self._check_order(state, healing.delivered)
        self._check_views([_facts_of(node) for node in nodes.values()])


def kind_of(key: Key) -> Any:
    """The first word of a timer's key."""
    return key[0] if isinstance(key, tuple) else key


def _between(delivered: Sequence[MessageId], common: Sequence[MessageId]) -> Sequence[MessageId]:
    """What a node delivers from the first to the last of these messages."""
    places = [delivered.index(message) for message in common]
    return delivered[min(places) : max(places) + 1]
