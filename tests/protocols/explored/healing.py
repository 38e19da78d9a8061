"""Healing: what becomes of an explored state if from now on nothing is lost and nobody crashes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from precede.core.effects import Accept, CancelTimer, Deliver, Discard, Effects, Key, Send, SetTimer
from precede.core.identity import NEIGHBOURS, MessageId, NodeId
from precede.core.instants import Instant

if TYPE_CHECKING:
    from precede.core.node import Node
    from tests.protocols.explored.worlds import State


class Healing:
    """Living nodes that go on: packets arrive once, in the order of sending, timers fire when due."""

    def __init__(self, state: State, nodes: dict[NodeId, Node], send_input: Callable[..., Effects]) -> None:
        members = {id: state.members[id] for id in nodes}
        self.delivered: dict[NodeId, list[MessageId]] = {id: list(members[id].delivered) for id in nodes}
        self.accepted: dict[MessageId, None] = {message: None for message, _ in state.pasts}
        """Messages that their authors have accepted and not given up."""
        self._nodes = nodes
        self._input = send_input
        self._clocks: dict[NodeId, Instant] = {id: members[id].clock for id in nodes}
        self._timers: dict[NodeId, dict[Key, Instant]] = {
            id: {timer.key: timer.at for timer in members[id].timers} for id in nodes
        }
        self._on_their_way: deque[tuple[NodeId, NodeId, Any]] = deque()
        self.deaf: NodeId | None = None
        """Nothing of this node arrives, and nothing arrives there."""

    def give(self, id: NodeId, kind: str, *details: Any) -> None:
        """An input of a node, at what its clock reads."""
        node = self._nodes[id]
        self._carry_out(id, self._input(node, (kind, self._clocks[id], *details)))

    def put_on_its_way(self, sender: NodeId, to: NodeId, packet: Any) -> None:
        self._on_their_way.append((sender, to, packet))

    def _carry_out(self, id: NodeId, effects: Effects) -> None:
        for effect in effects:
            if type(effect) is Send:
                addressees = self._nodes if effect.to == NEIGHBOURS else (effect.to,)
                self._on_their_way.extend((id, to, effect.packet) for to in addressees if to != id)
            elif type(effect) is Accept:
                self.accepted[effect.message.id] = None
            elif type(effect) is Discard and effect.message.id.source == id and effect.reason != "cut":
                self.accepted.pop(effect.message.id, None)
            elif type(effect) is Deliver:
                self.delivered[id].append(effect.message.id)
            elif type(effect) is SetTimer:
                self._timers[id][effect.key] = effect.at
            elif type(effect) is CancelTimer:
                self._timers[id].pop(effect.key, None)

    def run(self, duration: Instant, is_complete: Callable[[], bool] = lambda: False) -> None:
        """Go on until all is complete, or for so long by the clocks, or until nothing happens any more."""
        end = max(self._clocks.values()) + duration
        while not is_complete():
            if self._on_their_way:
                sender, to, packet = self._on_their_way.popleft()
                if to in self._nodes and self.deaf not in (sender, to):
                    self.give(to, "receive", sender, packet)
                continue
            due = [
                (at, id, repr(key), key) for id, timers in self._timers.items() for key, at in timers.items()
            ]
            if not due or min(due)[0] > end:
                return
            at, id, _, key = min(due)
            del self._timers[id][key]
            self._clocks[id] = max(self._clocks[id], at)
            self.give(id, "timer", key)
