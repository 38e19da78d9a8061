"""Explores every schedule of a small world whose links lose nothing, and whose nodes crash for good.

This is the model of vcube2018: packets of a link arrive once, in the order in which they were sent; a node may
crash before any step of its effects and does not come back. A timer fires only while nothing is on its way
between living nodes, so a silent node is a crashed one. Nodes beyond `members` are newcomers.

Living members must agree: healed, each has delivered what any of them has. A newcomer has joined, and delivers
in causal order from where it began.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from precede.core.effects import WIRED, Effects, Send
from precede.core.identity import MessageId, NodeId
from precede.core.instants import SECOND
from precede.core.node import Context, Node
from precede.protocols.registry import Entry, make_entry
from tests.protocols.explored.healing import Healing
from tests.protocols.explored.worlds import Broken, Explorer, State, steps_of
from tests.protocols.was2021.exploration_state import Still

GONE = -1


class CrashStopExplorer(Explorer):
    """In its states `air` has (sender, addressee, packets on their way, oldest first) for each busy link."""

    def __init__(
        self, entry: Entry, options: dict[str, Any], members: int, broadcasts: tuple[int, ...], **more: Any
    ) -> None:
        super().__init__(entry, options, broadcasts, over=WIRED, **more)
        self._members = tuple(range(members))

    def _make(self, id: NodeId) -> Node:
        return make_entry(self._entry, "node", Context(id, self._members, self._options, Still(0), 0))

    def _sent(self, state: State, id: NodeId, effect: Send) -> frozenset[Any]:
        links = {frame[:2]: frame[2] for frame in state.air}
        links[id, effect.to] = (*links.get((id, effect.to), ()), self._packet(effect.packet))
        return frozenset((*link, packets) for link, packets in links.items())

    def _carry_out(self, state: State, id: NodeId, number: int, effects: Effects) -> State:
        for effect in effects:
            if type(effect) is Send and effect.to in self._everybody and _lives(state, effect.to):
                state = state._replace(air=self._sent(state, id, effect))
        return super()._carry_out(state, id, number, [each for each in effects if type(each) is not Send])

    def _events(self, state: State) -> Iterator[tuple[State, NodeId, tuple[Any, ...]]]:
        for sender, to, packets in sorted(state.air):
            rest = frozenset({(sender, to, packets[1:])} if packets[1:] else ())
            taken = state._replace(air=state.air - {(sender, to, packets)} | rest)
            yield taken, to, ("receive", state.members[to].clock, sender, packets[0])
        for before, id, event in super()._events(state._replace(air=frozenset())):
            speaks = event[0] == "broadcast"
            if _lives(state, id) and (
                self._is_in(self._node(state.members[id].node)) if speaks else not state.air
            ):
                yield before._replace(air=state.air), id, event

    def _is_in(self, node: Any) -> bool:
        return bool(node.joined) and not node._out

    def _crashes(self, state: State, id: NodeId, effects: Effects) -> Iterator[State]:
        state = state._replace(crashes=state.crashes - 1)
        for cut in (*steps_of(effects), len(effects)):
            torn = self._carry_out(state, id, state.members[id].node, effects[:cut])
            gone = torn.members[id]._replace(node=GONE, timers=(), disk=())
            air = frozenset(frame for frame in torn.air if frame[1] != id)
            yield torn._replace(members=(*torn.members[:id], gone, *torn.members[id + 1 :]), air=air)

    def _must_deliver(self, id: NodeId, late: list[MessageId], delivered: Sequence[MessageId]) -> bool:
        return id in self._members or any(needed in delivered for needed in late)

    def _check_healed(self, state: State) -> None:
        nodes = {id: self._node(state.members[id].node) for id in self._everybody if _lives(state, id)}
        healing = Healing(state, nodes, self._give)
        for sender, to, packets in sorted(state.air):
            for packet in packets:
                healing.put_on_its_way(sender, to, packet)
        healing.run(6 * SECOND)
        self._check_order(state, healing.delivered)
        living = [healing.delivered[id] for id in self._members if id in nodes]
        due = {message: None for delivered in living for message in delivered}
        if any(len(delivered) < len(due) for delivered in living):
            raise Broken(f"living members do not agree: {living}")
        for id, node in nodes.items():
            if id not in self._members and not self._is_in(node):
                raise Broken(f"newcomer {id} has not joined")


def _lives(state: State, id: NodeId) -> bool:
    return state.members[id].node != GONE
