"""Nodes whose ids, incarnations and message numbers begin far from 0, in a world that counts from 0.

`builder` makes the nodes of a protocol with ids and incarnations moved up by a constant, and translates what
passes between a node and the simulator. With `numbers_from`, a node starts with the store it would have if each
source had broadcast so many messages and everybody had delivered them. Multicast nodes know the incarnations.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from precede.core.effects import (
    Accept,
    Arrive,
    CancelTimer,
    Deliver,
    Discard,
    Effect,
    Effects,
    Medium,
    Observe,
    Persist,
    Send,
    SetTimer,
)
from precede.core.identity import NEIGHBOURS, MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Context, Node, Saved, Waiting
from precede.experiments.swarm.plan import MULTICASTS, Plan
from precede.protocols import registry
from precede.protocols.around import Around
from precede.protocols.layered.own_messages import delivered_key

IDS: Final = ((1 << 31) - 2, (1 << 32) - 2, (1 << 48) - 64)
"""The first id: such that ids pass 2^31 or 2^32, or that 64 nodes have the highest ids there are."""
INCARNATIONS: Final = (0, (1 << 15) - 8)
NUMBERS: Final = ((1 << 31) - 3, (1 << 32) - 3, (1 << 40) - 100_000)

_PROGRESS: Final[Mapping[str, Callable[[NodeId, int, int], tuple[Any, Any]]]] = {
    "unordered": lambda source, incarnation, number: (("done", source, incarnation), [number]),
    "fifo": lambda source, incarnation, number: (("done", source, incarnation), number),
    "vector_clock": lambda source, incarnation, number: (("done", source), number),
    "causal_barrier": lambda source, incarnation, number: (("top", source, incarnation), (number, ())),
}
"""What a node has in its store about a source of which it has delivered `number` messages, by protocol."""

_UNCHANGED: Final = (SetTimer, CancelTimer, Persist)
"""Effects without an id that the simulator sees."""

AGED: Final = tuple(_PROGRESS)
"""The protocols whose nodes can start with high message numbers."""


class Renamed(Around[Node]):
    """A node with a high id. The simulator sees it under a low one."""

    def __init__(self, inner: Node, plan: Plan, aged: Mapping[Any, Any]) -> None:
        super().__init__(inner)
        self._ids = plan.ids_from
        self._incarnations = plan.incarnations_from
        self._numbers = plan.numbers_from
        self._aged = aged

    def start(self, now: Instant, saved: Saved) -> Effects:
        written = [] if saved else [Persist(key, value) for key, value in self._aged.items()]
        return [*written, *self.passed(self.inner.start(now, {**self._aged, **saved}))]

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        moved = None if to is None else [node + self._ids for node in to]
        return self.passed(self.inner.broadcast(payload, now, moved, lifetime))

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        return self.passed(self.inner.receive(packet, sender + self._ids, now, over))

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        return self.passed(self.inner.link_up(peer + self._ids, now, over))

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        return self.passed(self.inner.link_down(peer + self._ids, now, over))

    def waiting(self) -> Sequence[Waiting]:
        return [
            replace(one, message=self._id(one.message), waits_for=tuple(map(self._id, one.waits_for)))
            for one in self.inner.waiting()
        ]

    def passed(self, effects: Effects) -> Effects:
        return [effect if isinstance(effect, _UNCHANGED) else self._seen(effect) for effect in effects]

    def _seen(self, effect: Effect) -> Effect:
        """Return an effect with the ids that the simulator knows. Packets and stored values keep theirs."""
        if isinstance(effect, Send):
            to = effect.to if effect.to == NEIGHBOURS else effect.to - self._ids
            return Send(effect.packet, to, effect.over, effect.key)
        if isinstance(effect, Accept):
            named = effect.destinations
            named = None if named is None else tuple(node - self._ids for node in named)
            return replace(effect, message=self._message(effect.message), destinations=named)
        if isinstance(effect, Arrive):
            return Arrive(tuple(map(self._message, effect.messages)))
        if isinstance(effect, Deliver):
            return Deliver(self._message(effect.message), effect.content)
        if isinstance(effect, Discard):
            return Discard(self._message(effect.message), effect.reason)
        if isinstance(effect, Observe):
            return replace(effect, message=self._message(effect.message))
        return effect

    def _message(self, message: Message) -> Message:
        return replace(message, id=self._id(message.id))

    def _id(self, id: MessageId) -> MessageId:
        return MessageId(id.source - self._ids, id.incarnation - self._incarnations, id.number - self._numbers)


def builder(plan: Plan) -> registry.BuildNode:
    """Return the function that builds the nodes of a plan, with high ids if the plan has them."""
    if not (plan.ids_from or plan.incarnations_from or plan.numbers_from):
        return registry.build_node

    def build(entry: registry.Entry[Any], role: str, context: Context[Any]) -> Node:
        moved = replace(
            context,
            node=context.node + plan.ids_from,
            members=tuple(member + plan.ids_from for member in context.members),
            incarnation=context.incarnation + plan.incarnations_from,
        )
        return Renamed(registry.build_node(entry, role, moved), plan, _aged(plan, moved))

    return build


def _aged(plan: Plan, context: Context[Any]) -> dict[Any, Any]:
    """Return what a node finds in its store at its first start."""
    protocol, first, number = plan.run.protocol, plan.incarnations_from, plan.numbers_from
    if protocol in MULTICASTS and first:
        return {("life", member): first for member in context.members if member != context.node}
    if not number:
        return {}
    store = dict(_PROGRESS[protocol](member, first, number) for member in context.members)
    return {**store, delivered_key(context.incarnation): number}
