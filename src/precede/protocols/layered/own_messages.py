"""What the simple orderings share: numbering own messages, and persisting them until they are safe elsewhere.

`OwnMessages` hands out numbers, persists number and content before the message is accepted, and after a restart
says which own messages must be accepted, delivered or sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from precede.core.effects import Accept, Deliver, Effect, Persist
from precede.core.errors import Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.node import Context, Saved, restore
from precede.protocols.layered.envelope import Envelope
from precede.protocols.options import Durable


class OwnMessages:
    """This node's own messages in this life."""

    def __init__(self, context: Context[Durable]) -> None:
        self.node = context.node
        self.incarnation = context.incarnation
        self.number = 0
        self._durable: bool = context.options.durable
        self.kept: Sequence[Envelope] = ()
        """After a restart: own messages that may not have been accepted, delivered or sent."""

    def next_id(self) -> MessageId:
        """The id the next message will have; `accept` makes it so."""
        return MessageId(self.node, self.incarnation, self.number + 1)

    def accept(self, envelope: Envelope) -> list[Effect]:
        """Persist, Accept, own Deliver: a message of one's own is delivered at once."""
        id = envelope.message.id
        self.number = id.number
        announce = Accept(envelope.message, envelope.destinations, envelope.deadline)
        if not self._durable:
            return [announce, Deliver(envelope.message)]
        return [
            Persist(("own", id.number), envelope),
            announce,
            Persist("own_delivered", id.number),
            Deliver(envelope.message),
        ]

    def start(self, saved: Saved, stamp_type: Any, now: Instant | None = None) -> list[Effect]:
        """After a restart: accept and deliver what a crash may have cut, and remember what is to be sent.

        With `now`, a message whose deadline passed while the node was down is not delivered.
        """
        delivered = restore(saved, "own_delivered", int, 0)
        kept = sorted(
            (
                restored_envelope(value, stamp_type)
                for key, value in saved.items()
                if type(key) is tuple and key[0] == "own"
            ),
            key=lambda envelope: envelope.message.id.number,
        )
        effects: list[Effect] = []
        for envelope in kept:
            number = envelope.message.id.number
            effects.append(Accept(envelope.message, envelope.destinations, envelope.deadline))
            alive = now is None or envelope.deadline is None or now < envelope.deadline
            if number > delivered:
                effects.append(Persist("own_delivered", number))  # also of the dead: its number is used up
                if alive:
                    effects.append(Deliver(envelope.message))
        self.number = max([delivered, *(envelope.message.id.number for envelope in kept)])
        self.kept = kept
        return effects

    def unfinished(self) -> Sequence[Envelope]:
        """Own messages to send again, once."""
        kept, self.kept = self.kept, ()
        return kept


def held_key(id: MessageId) -> tuple[str | int, ...]:
    """Where a message that waits is persisted."""
    return ("held", id.source, id.incarnation, id.number)


def restored_held(saved: Saved, stamp_type: Any) -> list[Envelope]:
    """The messages that waited when the node went down, in a fixed order."""
    found = [
        restored_envelope(value, stamp_type)
        for key, value in saved.items()
        if type(key) is tuple and key[0] == "held"
    ]
    return sorted(found, key=lambda envelope: envelope.message.id)


def no_destinations(to: Sequence[NodeId] | None, protocol: str) -> None:
    """Refuse a destination set where order would need every member to see every message."""
    if to is not None:
        raise Refused(f"{protocol} delivers to everybody; for destination sets take a multicast order (prs)")


def restored_envelope(value: Any, stamp_type: Any) -> Envelope:
    """A persisted envelope in its own types."""
    envelope = msgspec.convert(value, Envelope)
    if stamp_type is None:
        return envelope
    return msgspec.structs.replace(envelope, stamp=msgspec.convert(envelope.stamp, stamp_type))
