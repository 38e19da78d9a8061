"""`fifo`: an ordering that delivers each source's messages in the order in which it broadcast them."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from mypy_extensions import mypyc_attr

from precede.core.effects import Deliver, Effect, Effects, Persist
from precede.core.identity import MessageId, NodeId
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

_NUMBER_BYTES: Final = 4


@mypyc_attr(allow_interpreted_subclasses=True)
class Fifo(OneByOneOrdering):
    """Counts deliveries per stream; a message waits for the previous one of its stream and for nothing else."""

    draining: ClassVar[tuple[str, ...]] = ("pending",)
    stamp_type = None
    renewable = True

    def __init__(self, context: Context[Durable]) -> None:
        self._own = OwnMessages(context)
        self._durable: bool = context.options.durable
        self._delivered: dict[tuple[NodeId, int], int] = {}
        self._held = HeldMessages(self._durable)
        self._pending: dict[MessageId, tuple[Deliver, Instant]] = {}
        self._sizes = Sizes("pending", "delivered_entries")

    def start(self, now: Instant, saved: Saved) -> Effects:
        for key, value in saved_under(saved, "done"):
            self._delivered[int(key[1]), int(key[2])] = value
        effects = self._own.start(saved, None)
        for stream, number in self._own.earlier.items():
            self._delivered[stream] = max(number, self._delivered.get(stream, 0))
        for envelope in self._held.resume(saved, None, self.knows, effects):
            self.arrive((envelope,), now, effects)
        return effects

    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        refuse_destinations(to, "fifo")
        message = Message(self._own.next_id(), payload)
        envelope = Envelope(message, None, deadline_after(lifetime, now), None, _NUMBER_BYTES, 1, now)
        return envelope, self._own.accept(envelope)

    def take(self, envelope: Envelope, deliver: Deliver, now: Instant, effects: list[Effect]) -> None:
        id = envelope.message.id
        if self._delivered.get((id.source, id.incarnation), 0) + 1 == id.number:
            self._deliver(deliver, effects)
            self._wake(id, effects)
        else:
            self._pending[id] = (deliver, now)
            self._held.hold(envelope, effects)

    def _deliver(self, deliver: Deliver, effects: list[Effect]) -> None:
        id = deliver.message.id
        self._delivered[id.source, id.incarnation] = id.number
        if self._durable:
            effects.append(Persist(("done", id.source, id.incarnation), id.number))
        effects.append(deliver)

    def _wake(self, id: MessageId, effects: list[Effect]) -> None:
        """Deliver the messages that follow a delivered one in its stream without a gap."""
        while True:
            id = MessageId(id.source, id.incarnation, id.number + 1)
            successor = self._pending.pop(id, None)
            if successor is None:
                return
            self._deliver(successor[0], effects)
            self._held.release(id, effects)

    def predecessors(self, id: MessageId, stamp: Any) -> tuple[MessageId, ...]:
        if id.number == 1:
            return ()
        return (MessageId(id.source, id.incarnation, id.number - 1),)

    def knows(self, id: MessageId) -> bool:
        if self._own.is_own(id):
            return id.number <= self._own.number
        return id.number <= self._delivered.get((id.source, id.incarnation), 0) or id in self._pending

    def unfinished(self) -> Sequence[Envelope]:
        return self._own.unfinished()

    def waiting(self) -> Sequence[Waiting]:
        return [
            Waiting(id, (MessageId(id.source, id.incarnation, id.number - 1),), since)
            for id, (_, since) in self._pending.items()
        ]

    def sizes(self) -> Mapping[str, int]:
        return self.counted_sizes().mapping()

    def counted_sizes(self) -> Sizes:
        return self._sizes.set(len(self._pending), len(self._delivered))


ENTRY: Final = Entry(
    name="fifo",
    title="first in, first out per source",
    paper="(folklore; the baseline below causal order)",
    order="fifo",
    worlds=("point_to_point", "contacts", "flood"),
    options=Durable,
    ordering=Fifo,
)
