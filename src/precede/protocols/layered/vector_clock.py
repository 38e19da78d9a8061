"""`vector_clock`: causal broadcast in a fixed group (Birman, Schiper, Stephenson 1991, the CBCAST rule).

A message carries its sender's vector: how many messages of each member the sender had delivered. It waits until
the sender's previous message and all messages that the vector counts are delivered. On the link the vector has
one entry per member, as published; in memory zero entries are left out. The group is fixed. A member that lost
its saved state may not broadcast again, because nobody would resend what it has acknowledged.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, final

from mypy_extensions import mypyc_attr

from precede.core.effects import Deliver, Effect, Effects, Persist
from precede.core.errors import Refused
from precede.core.identity import Count, MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message
from precede.core.node import Context, Saved, Waiting
from precede.core.peaks import Sizes
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.held_messages import HeldMessages
from precede.protocols.layered.ordering import OneByOneOrdering
from precede.protocols.layered.own_messages import OwnMessages, deadline_after, refuse_destinations
from precede.protocols.layered.saved_state import saved_under
from precede.protocols.options import Durable
from precede.protocols.registry import Entry

_ENTRY_BYTES: Final = 4


@final
class _Pending:
    """A message that waits, and the instant of its arrival."""

    __slots__ = ("deliver", "envelope", "since")

    def __init__(self, envelope: Envelope, deliver: Deliver, since: Instant) -> None:
        self.envelope = envelope
        self.deliver = deliver
        self.since = since


@mypyc_attr(allow_interpreted_subclasses=True)
class VectorClock(OneByOneOrdering):
    """Causal order by vector clocks; `_delivered[k]` is the paper's VT(p)[k].

    `_waiting_for` is an index of the waiting messages by one (member, number) that each of them lacks.
    """

    draining: ClassVar[tuple[str, ...]] = ("pending",)
    stamp_type: ClassVar[Any] = dict[NodeId, Count]  # without the annotation, mypyc leaves it out as an alias

    def __init__(self, context: Context[Durable]) -> None:
        self._own = OwnMessages(context)
        self._durable: bool = context.options.durable
        self._members = len(context.members)
        self._delivered: dict[NodeId, int] = {}
        self._held = HeldMessages(self._durable)
        self._pending: dict[MessageId, _Pending] = {}
        self._sizes = Sizes("pending", "vector_entries")
        self._waiting_for: dict[tuple[NodeId, int], list[MessageId]] = {}

    def start(self, now: Instant, saved: Saved) -> Effects:
        for key, value in saved_under(saved, "done"):
            self._delivered[int(key[1])] = value
        effects = self._own.start(saved, dict[int, int])
        if self._own.number:
            self._delivered[self._own.node] = self._own.number
        for envelope in self._held.resume(saved, dict[int, int], self.knows, effects):
            self.arrive((envelope,), now, effects)
        return effects

    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        refuse_destinations(to, "vector_clock")
        if self._own.incarnation:
            raise Refused("vector_clock: a member that lost its saved state cannot broadcast in a fixed group")
        deadline = deadline_after(lifetime, now)
        id = self._own.next_id()
        self._delivered[id.source] = id.number
        size = _ENTRY_BYTES * self._members
        vector = dict(self._delivered)
        envelope = Envelope(Message(id, payload), vector, deadline, None, size, self._members, now)
        effects = self._own.accept(envelope)
        self._wake(id, effects)  # only a liar's message waits for one that did not exist
        return envelope, effects

    def take(self, envelope: Envelope, deliver: Deliver, now: Instant, effects: list[Effect]) -> None:
        id = envelope.message.id
        lack = self._lack(envelope)
        if lack is None:
            self._deliver(deliver, effects)
            self._wake(id, effects)
            return
        self._pending[id] = _Pending(envelope, deliver, now)
        self._waiting_for.setdefault(lack, []).append(id)
        self._held.hold(envelope, effects)

    def _lack(self, envelope: Envelope) -> tuple[NodeId, int] | None:
        """Return one message (member, number) that must be delivered before this one, or None."""
        source, own_number = envelope.message.id.source, envelope.message.id.number
        delivered = self._delivered
        for member, number in envelope.stamp.items():
            needed = own_number - 1 if member == source else number
            if delivered.get(member, 0) < needed:
                return member, needed
        return None if delivered.get(source, 0) == own_number - 1 else (source, own_number - 1)

    def _deliver(self, deliver: Deliver, effects: list[Effect]) -> None:
        id = deliver.message.id
        self._delivered[id.source] = id.number
        if self._durable:
            effects.append(Persist(("done", id.source), id.number))
        effects.append(deliver)

    def _wake(self, id: MessageId, effects: list[Effect]) -> None:
        """Deliver the messages that waited for this one, or file them under the next message they lack."""
        delivered = [(id.source, id.number)]
        while delivered:
            for waiting in self._waiting_for.pop(delivered.pop(), ()):
                pending = self._pending[waiting]
                lack = self._lack(pending.envelope)
                if lack is not None:
                    self._waiting_for.setdefault(lack, []).append(waiting)
                    continue
                del self._pending[waiting]
                self._deliver(pending.deliver, effects)
                self._held.release(waiting, effects)
                delivered.append((waiting.source, waiting.number))

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
        return self.counted_sizes().mapping()

    def counted_sizes(self) -> Sizes:
        return self._sizes.set(len(self._pending), len(self._delivered))


ENTRY: Final = Entry(
    name="vector_clock",
    title="causal order with one vector entry per member",
    paper="Birman, Schiper, Stephenson: Lightweight causal and atomic group multicast (1991)",
    order="causal",
    worlds=("point_to_point", "contacts", "flood"),
    options=Durable,
    ordering=VectorClock,
)
