"""`causal_barrier`: causal broadcast without lifetimes (guidec2021, section IV, codes 1 to 7).

A message names its immediate predecessors (its causal barrier) and waits until all of them are delivered. Maps
instead of vectors: nobody needs to know who takes part. A message that waits is filed under one predecessor it
lacks, with a pointer into its barrier, so a delivery touches only whoever waits for it; the paper's
checkPendingMessages scans everything pending.

Where we depart from the printed codes, and why, is in papers/guidec2021/reading.md: streams instead of hosts
(E6, E7), a message's own number against what was delivered (E8), pruned barriers (E11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, TypeAlias

from precede.core.effects import Deliver, Discard, Effect, Effects, Persist
from precede.core.errors import Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message
from precede.core.node import Context, Saved, Waiting, restore
from precede.protocols.guidec2021.options import CausalBarrierOptions
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.own_messages import OwnMessages, held_key, no_destinations, restored_held
from precede.protocols.layered.streams import Stream, id_in, stream_in, stream_of, top_key
from precede.protocols.registry import Entry

Predecessor: TypeAlias = tuple[Stream, int]
Barrier: TypeAlias = tuple[Predecessor, ...]

HEADER_BYTES: Final = 16
"""host id and sequence tag, eight bytes each; the paper has no byte model."""
ENTRY_BYTES: Final = 16


class Pending:
    """A message in hand, since when, and the place in its barrier of the predecessor it is filed under."""

    __slots__ = ("envelope", "place", "since")

    def __init__(self, envelope: Envelope, place: int, since: Instant) -> None:
        self.envelope = envelope
        self.place = place
        self.since = since


class CausalBarrier(Ordering):
    """The paper's registries: `c_barrier`, `co_delivered`, `pending`."""

    draining: ClassVar[tuple[str, ...]] = ("pending",)
    stamp_type = Barrier

    def __init__(self, context: Context[CausalBarrierOptions]) -> None:
        self._own = OwnMessages(context)
        self._durable: bool = context.options.durable
        self._prune: bool = context.options.prune
        self._barrier: dict[Stream, int] = {}
        self._delivered: dict[Stream, int] = {}
        self._pending: dict[MessageId, Pending] = {}
        self._filed: dict[Predecessor, list[Pending]] = {}

    def start(self, now: Instant, saved: Saved) -> Effects:
        tops: dict[Stream, tuple[int, Barrier]] = {}
        for key, value in saved.items():
            if type(key) is tuple and key[0] == "top":
                tops[stream_in(key)] = restore({key: value}, key, tuple[int, Barrier], (0, ()))
        self._delivered = {stream: number for stream, (number, _) in tops.items()}
        self._barrier = dict(self._delivered)
        for _, barrier in tops.values():
            self._cover(barrier)
        effects = self._own.start(saved, Barrier)
        for envelope in self._own.kept:
            self._finish(envelope, effects)
        for envelope in restored_held(saved, Barrier):
            id = envelope.message.id
            if id.number <= self._delivered.get(stream_of(id), 0):
                effects.append(Persist(held_key(id), None))
            else:
                self.arrive((envelope,), now, effects)
        return effects

    def _finish(self, envelope: Envelope, effects: list[Effect]) -> None:
        """An own message that was numbered when the node went down, before its registries were saved."""
        id = envelope.message.id
        stream = stream_of(id)
        if id.number > self._delivered.get(stream, 0):
            self._delivered[stream] = id.number
            self._barrier = {stream: id.number}
            effects.append(Persist(top_key(stream), (id.number, envelope.stamp)))

    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        no_destinations(to, "causal_barrier")
        if lifetime is not None:
            raise Refused("causal_barrier keeps a message for ever; for lifetimes take delta_causal")
        id = self._own.next_id()
        stream = stream_of(id)
        barrier: Barrier = tuple(self._barrier.items())
        entries = len(barrier)
        size = HEADER_BYTES + ENTRY_BYTES * entries
        envelope = Envelope(Message(id, payload), barrier, None, None, size, entries, now)
        effects = self._own.accept(envelope)
        if self._durable:
            effects.insert(1, Persist(top_key(stream), (id.number, barrier)))
        self._barrier = {stream: id.number}
        self._delivered[stream] = id.number
        self._wake((stream, id.number), effects)
        return envelope, effects

    def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
        delivered = self._delivered
        for envelope in envelopes:
            id = envelope.message.id
            stream = (id.source, id.incarnation) if id.incarnation else id.source
            if id.number <= delivered.get(stream, 0):
                effects.append(Discard(envelope.message, "duplicate"))
                continue
            for predecessor in envelope.stamp:
                if delivered.get(predecessor[0], 0) < predecessor[1]:
                    self._wait(Pending(envelope, envelope.stamp.index(predecessor), now), effects)
                    break
            else:
                self._deliver(envelope, stream, effects)
                if self._filed:
                    self._wake((stream, id.number), effects)

    def _wait(self, pending: Pending, effects: list[Effect]) -> None:
        id = pending.envelope.message.id
        self._pending[id] = pending
        self._file(pending)
        if self._durable:
            effects.append(Persist(held_key(id), pending.envelope))

    def _file(self, pending: Pending) -> None:
        lacked: Predecessor = pending.envelope.stamp[pending.place]
        waiting = self._filed.get(lacked)
        if waiting is None:
            self._filed[lacked] = [pending]
        else:
            waiting.append(pending)

    def _deliver(self, envelope: Envelope, stream: Stream, effects: list[Effect]) -> None:
        """performDelivery (code 3); then, unlike the paper, strike out what this message's barrier covers."""
        message = envelope.message
        number = message.id.number
        self._delivered[stream] = number
        if self._prune:
            self._cover(envelope.stamp)
        self._barrier[stream] = number
        if self._durable:
            effects.append(Persist(top_key(stream), (number, envelope.stamp)))
        effects.append(Deliver(message))

    def _cover(self, barrier: Barrier) -> None:
        known = self._barrier
        for stream, number in barrier:
            if known.get(stream, number + 1) <= number:
                del known[stream]

    def _wake(self, delivered: Predecessor, effects: list[Effect]) -> None:
        """Whoever was filed under this message is deliverable now, or is filed under the next it lacks."""
        woken = [delivered]
        for lacked in woken:
            for pending in self._filed.pop(lacked, ()):
                if self._lacks(pending):
                    self._file(pending)
                    continue
                id = pending.envelope.message.id
                del self._pending[id]
                self._deliver(pending.envelope, stream_of(id), effects)
                if self._durable:
                    effects.append(Persist(held_key(id), None))
                woken.append((stream_of(id), id.number))

    def _lacks(self, pending: Pending) -> bool:
        """Move the pointer to the next undelivered predecessor; what was passed stays delivered."""
        barrier: Barrier = pending.envelope.stamp
        for place in range(pending.place, len(barrier)):
            stream, number = barrier[place]
            if self._delivered.get(stream, 0) < number:
                pending.place = place
                return True
        return False

    def knows(self, id: MessageId) -> bool:
        if id.source == self._own.node and id.incarnation == self._own.incarnation:
            return id.number <= self._own.number
        return id.number <= self._delivered.get(stream_of(id), 0) or id in self._pending

    def unfinished(self) -> Sequence[Envelope]:
        return self._own.unfinished()

    def waiting(self) -> Sequence[Waiting]:
        return [
            Waiting(id, self._lacking(pending.envelope.stamp), pending.since)
            for id, pending in self._pending.items()
        ]

    def _lacking(self, barrier: Barrier) -> tuple[MessageId, ...]:
        return tuple(id_in(s, number) for s, number in barrier if self._delivered.get(s, 0) < number)

    def sizes(self) -> Mapping[str, int]:
        return {
            "causal_barrier": len(self._barrier),
            "co_delivered": len(self._delivered),
            "pending": len(self._pending),
        }


ENTRY: Final = Entry(
    name="causal_barrier",
    title="causal order from immediate predecessors, no group to know",
    paper="Guidec, Launay, Mahéo: Causal and Δ-causal broadcast in opportunistic networks (2021), section IV",
    order="causal",
    worlds=("contacts", "point_to_point", "flood"),
    options=CausalBarrierOptions,
    ordering=CausalBarrier,
)
