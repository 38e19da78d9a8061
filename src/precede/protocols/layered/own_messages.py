"""Numbers an ordering's own messages and persists them until they are sent.

A message and its number are persisted before the message is accepted. After a restart `OwnMessages` repeats the
acceptance and the own delivery that a crash may have prevented, and lists the messages to send again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from precede.core.effects import Accept, Deliver, Effect, Key, Persist
from precede.core.errors import Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.node import Context, Saved, restore
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.saved_state import saved_envelopes, saved_under
from precede.protocols.options import Durable


class OwnMessages:
    """Numbers and accepts the messages that this node broadcasts in this incarnation."""

    def __init__(self, context: Context[Durable]) -> None:
        self.node = context.node
        self.incarnation = context.incarnation
        self.number = 0
        self._durable: bool = context.options.durable
        self.kept: Sequence[Envelope] = ()
        """After a restart: own messages that may not have been accepted, delivered or sent before it."""
        self.earlier: dict[tuple[NodeId, int], int] = {}
        """How far the messages of this node's earlier incarnations were delivered, if the state is theirs."""

    def next_id(self) -> MessageId:
        """Return the id for the next own message. `accept` then takes that message and advances the number."""
        return MessageId(self.node, self.incarnation, self.number + 1)

    def accept(self, envelope: Envelope) -> list[Effect]:
        """Advance the number of own messages. Return the effects that persist, accept and deliver this one."""
        id = envelope.message.id
        self.number = id.number
        accepted = Accept(envelope.message, envelope.destinations, envelope.deadline, envelope)
        if not self._durable:
            return [accepted, Deliver(envelope.message, envelope)]
        return [
            Persist(own_key(id), envelope),
            accepted,
            Persist(delivered_key(id.incarnation), id.number),
            Deliver(envelope.message, envelope),
        ]

    def is_own(self, id: MessageId) -> bool:
        return id.source == self.node and id.incarnation == self.incarnation

    def start(self, saved: Saved, stamp_type: Any, now: Instant | None = None) -> list[Effect]:
        """After a restart: return effects that a crash may have prevented, and note the messages to send again.

        With `now`, a message whose deadline passed while the node was down is not delivered. The state may be
        that of an earlier incarnation: its messages are finished, and numbers begin again at 1.
        """
        delivered = _saved_deliveries(saved)
        kept = saved_envelopes(saved, "own", stamp_type)
        effects: list[Effect] = []
        for envelope in kept:
            id = envelope.message.id
            if id.incarnation == self.incarnation:
                effects.append(Accept(envelope.message, envelope.destinations, envelope.deadline, envelope))
            alive = now is None or envelope.deadline is None or now < envelope.deadline
            if id.number > delivered.get(id.incarnation, 0):
                delivered[id.incarnation] = id.number  # an expired message uses its number up too
                effects.append(Persist(delivered_key(id.incarnation), id.number))
                if alive:
                    effects.append(Deliver(envelope.message, envelope))
        self.number = delivered.pop(self.incarnation, 0)
        self.earlier = {(self.node, incarnation): number for incarnation, number in delivered.items()}
        self.kept = kept
        return effects

    def unfinished(self) -> Sequence[Envelope]:
        """Return the own messages to send again. The second call returns none."""
        kept, self.kept = self.kept, ()
        return kept


def own_key(id: MessageId) -> Key:
    """Return the key under which an own message is persisted until it need not be sent any more."""
    return ("own", id.incarnation, id.number) if id.incarnation else ("own", id.number)


def delivered_key(incarnation: int) -> Key:
    """Return the key of the last number that was delivered of this node's own messages of an incarnation."""
    return ("own_delivered", incarnation) if incarnation else "own_delivered"


def _saved_deliveries(saved: Saved) -> dict[int, int]:
    delivered = {int(key[1]): int(value) for key, value in saved_under(saved, "own_delivered")}
    first = restore(saved, "own_delivered", int, 0)
    return {0: first, **delivered} if first else delivered


def deadline_after(lifetime: Duration | None, now: Instant) -> Instant | None:
    """Return the deadline of a message broadcast now, or None. Raise Refused for a lifetime of 0 or less."""
    if lifetime is None:
        return None
    if lifetime <= 0:
        raise Refused(f"lifetime: expected a duration above 0, got {lifetime} microseconds")
    return now + lifetime


def refuse_destinations(to: Sequence[NodeId] | None, protocol: str) -> None:
    """Raise Refused if destinations are given: the order holds only if every member receives every message."""
    if to is not None:
        raise Refused(f"{protocol} delivers to every node: for destination sets use a multicast protocol (prs)")
