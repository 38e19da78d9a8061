"""`vector_clock`: causal broadcast in a fixed group (Birman, Schiper, Stephenson 1991, the CBCAST rule).

A message carries the sender's vector: how many messages of each member it had delivered. It waits until the
sender's previous message and all that the vector counts are delivered. On the link the vector has one entry
per member, as published; in memory zero entries are left out. The group is fixed and a member needs its saved
state to come back: one that lost it is refused, for nobody would send it again what it has acknowledged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from msgspec import Struct

from precede.core.effects import Deliver, Effect, Effects, Persist
from precede.core.errors import Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message
from precede.core.node import Context, Saved, Waiting
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.own_messages import OwnMessages, held_key, no_destinations, restored_held
from precede.protocols.options import Durable
from precede.protocols.registry import Entry

_ENTRY_BYTES: Final = 4


class _Pending(Struct, gc=False):
    """A message that waits, and since when."""

    envelope: Envelope
    since: Instant


class VectorClock(Ordering):
    """VT(p)[k] is `_delivered[k]`; a message in hand is filed under one (member, number) it lacks."""

    draining: ClassVar[tuple[str, ...]] = ("pending",)
    stamp_type = dict[int, int]

    def __init__(self, context: Context[Durable]) -> None:
        self._own = OwnMessages(context)
        self._durable: bool = context.options.durable
        self._members = len(context.members)
        self._delivered: dict[NodeId, int] = {}
        self._pending: dict[MessageId, _Pending] = {}
        self._lacking: dict[tuple[NodeId, int], list[MessageId]] = {}

    def start(self, now: Instant, saved: Saved) -> Effects:
        for key, value in saved.items():
            if type(key) is tuple and key[0] == "done":
                self._delivered[int(key[1])] = value
        effects = self._own.start(saved, dict[int, int])
        if self._own.number:
            self._delivered[self._own.node] = self._own.number
        for envelope in restored_held(saved, dict[int, int]):
            if self.knows(envelope.message.id):
                effects.append(Persist(held_key(envelope.message.id), None))
            else:
                self.arrive((envelope,), now, effects)
        return effects

    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        no_destinations(to, "vector_clock")
        if self._own.incarnation:
            raise Refused("vector_clock has a fixed group: a member that lost its saved state cannot come back")
        id = self._own.next_id()
        self._delivered[id.source] = id.number
        deadline = None if lifetime is None else now + lifetime
        size = _ENTRY_BYTES * self._members
        vector = dict(self._delivered)
        envelope = Envelope(Message(id, payload), vector, deadline, None, size, self._members, now)
        return envelope, self._own.accept(envelope)

    def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
        for envelope in envelopes:
            id = envelope.message.id
            lack = self._lack(envelope)
            if lack is None:
                self._deliver(envelope, effects)
                self._wake(id, effects)
                continue
            self._pending[id] = _Pending(envelope, now)
            self._lacking.setdefault(lack, []).append(id)
            if self._durable:
                effects.append(Persist(held_key(id), envelope))

    def _lack(self, envelope: Envelope) -> tuple[NodeId, int] | None:
        """One message that must be delivered first, or None."""
        source = envelope.message.id.source
        delivered = self._delivered
        for member, number in envelope.stamp.items():
            needed = number - 1 if member == source else number
            if delivered.get(member, 0) < needed:
                return member, needed
        return None

    def _deliver(self, envelope: Envelope, effects: list[Effect]) -> None:
        id = envelope.message.id
        self._delivered[id.source] = id.number
        if self._durable:
            effects.append(Persist(("done", id.source), id.number))
        effects.append(Deliver(envelope.message))

    def _wake(self, id: MessageId, effects: list[Effect]) -> None:
        """Whoever was filed under this message is deliverable now, or is filed anew."""
        woken = [(id.source, id.number)]
        while woken:
            for waiting in self._lacking.pop(woken.pop(), ()):
                envelope = self._pending[waiting].envelope
                lack = self._lack(envelope)
                if lack is not None:
                    self._lacking.setdefault(lack, []).append(waiting)
                    continue
                del self._pending[waiting]
                self._deliver(envelope, effects)
                if self._durable:
                    effects.append(Persist(held_key(waiting), None))
                woken.append((waiting.source, waiting.number))

    def knows(self, id: MessageId) -> bool:
        return id.incarnation > 0 or id.number <= self._delivered.get(id.source, 0) or id in self._pending

    def unfinished(self) -> Sequence[Envelope]:
        return self._own.unfinished()

    def waiting(self) -> Sequence[Waiting]:
        return [
            Waiting(id, tuple(self._all_lacking(pending.envelope)), pending.since)
            for id, pending in self._pending.items()
        ]

    def _all_lacking(self, envelope: Envelope) -> list[MessageId]:
        source = envelope.message.id.source
        return [
            MessageId(member, 0, missing)
            for member, number in sorted(envelope.stamp.items())
            for missing in range(self._delivered.get(member, 0) + 1, number + (0 if member == source else 1))
        ]

    def sizes(self) -> Mapping[str, int]:
        return {"pending": len(self._pending), "vector_entries": len(self._delivered)}


ENTRY: Final = Entry(
    name="vector_clock",
    title="causal order with one vector entry per member",
    paper="Birman, Schiper, Stephenson: Lightweight causal and atomic group multicast (1991)",
    order="causal",
    worlds=("point_to_point", "contacts", "flood"),
    options=Durable,
    ordering=VectorClock,
)
