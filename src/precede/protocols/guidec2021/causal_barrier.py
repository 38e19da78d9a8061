"""`causal_barrier`: causal broadcast without lifetimes (guidec2021, section IV, codes 1 to 7).

A message names its immediate predecessors (its causal barrier) and waits until all of them are delivered. The
paper uses maps instead of vectors, so nobody needs to know the group.

The paper's checkPendingMessages scans all pending messages; we file each under one predecessor that it lacks,
because a delivery then touches only the messages that wait for it. Our other departures are explained in
papers/guidec2021/reading.md: streams instead of hosts (E6, E7), duplicates recognised by number (E8), pruned
barriers (E11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec

from precede.core.effects import Deliver, Discard, Effect, Effects, Persist
from precede.core.errors import Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message
from precede.core.node import Context, Saved, Waiting
from precede.core.peaks import Sizes
from precede.protocols.guidec2021.cut import Barrier, Cut, Predecessor
from precede.protocols.guidec2021.options import CausalBarrierOptions
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.held_messages import HeldMessages
from precede.protocols.layered.ordering import BatchOrdering
from precede.protocols.layered.own_messages import OwnMessages, refuse_destinations
from precede.protocols.layered.parsed_envelopes import ParsedEnvelope
from precede.protocols.layered.saved_state import saved_under
from precede.protocols.layered.streams import Stream, id_in, stream_in, stream_of, top_key
from precede.protocols.registry import Entry

HEADER_BYTES: Final = 16
"""The size of a host id and a sequence tag, eight bytes each. This is our model: the paper has none."""
ENTRY_BYTES: Final = 16


class Pending:
    """A message that waits, since when, and the position in its barrier of a predecessor that it lacks."""

    __slots__ = ("envelope", "position", "since")

    def __init__(self, envelope: Envelope, position: int, since: Instant) -> None:
        self.envelope = envelope
        self.position = position
        self.since = since


class CausalBarrier(BatchOrdering):
    """Causal order by barriers, with the paper's registries `c_barrier`, `co_delivered` and `pending`.

    `_waiting_for` is an index of the pending messages by one predecessor that each of them lacks.
    """

    draining: ClassVar[tuple[str, ...]] = ("pending",)
    stamp_type = Barrier
    renewable = True

    def __init__(self, context: Context[CausalBarrierOptions]) -> None:
        self._own = OwnMessages(context)
        self._durable: bool = context.options.durable
        self._prune: bool = context.options.prune
        self._barrier: dict[Stream, int] = {}
        self._delivered: dict[Stream, int] = {}
        self._pending: dict[MessageId, Pending] = {}
        self._sizes = Sizes("causal_barrier", "co_delivered", "pending")
        self._waiting_for: dict[Predecessor, list[Pending]] = {}
        self._held = HeldMessages(self._durable)

    def start(self, now: Instant, saved: Saved) -> Effects:
        tops: dict[Stream, tuple[int, Barrier]] = {}
        for key, value in saved_under(saved, "top"):
            tops[stream_in(key)] = msgspec.convert(value, tuple[int, Barrier])
        self._delivered = {stream: number for stream, (number, _) in tops.items()}
        self._barrier = dict(self._delivered)
        for _, barrier in tops.values():
            self._cover(barrier)
        effects = self._own.start(saved, Barrier)
        for envelope in self._own.kept:
            self._finish(envelope, effects)
        for envelope in self._held.resume(saved, Barrier, self.knows, effects):
            self.arrive((envelope,), now, effects)
        return effects

    def _finish(self, envelope: Envelope, effects: list[Effect]) -> None:
        """Finish an own broadcast that a crash cut off between numbering and saving the registries."""
        id = envelope.message.id
        stream = stream_of(id)
        if id.number > self._delivered.get(stream, 0):
            self._delivered[stream] = id.number
            self._barrier = {stream: id.number}
            effects.append(Persist(top_key(stream), (id.number, envelope.stamp)))

    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        refuse_destinations(to, "causal_barrier")
        if lifetime is not None:
            raise Refused("causal_barrier has no lifetimes: use delta_causal for messages that expire")
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
        self._wake([(stream, id.number)], effects)
        return envelope, effects

    def take_envelopes(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
        for envelope in envelopes:
            self._take(
                envelope, stream_of(envelope.message.id), Deliver(envelope.message, envelope), now, effects
            )

    def take_parsed(self, contents: list[ParsedEnvelope], now: Instant, effects: list[Effect]) -> None:
        for parsed in contents:
            self._take(parsed.envelope, parsed.stream, parsed.deliver, now, effects)

    def _take(
        self, envelope: Envelope, stream: Stream, deliver: Deliver, now: Instant, effects: list[Effect]
    ) -> None:
        """Deliver a message, let it wait for a predecessor, or discard it as a duplicate."""
        delivered = self._delivered
        id = envelope.message.id
        if id.number <= delivered.get(stream, 0):
            effects.append(Discard(envelope.message, "duplicate"))
            return
        for predecessor in envelope.stamp:
            if delivered.get(predecessor[0], 0) < predecessor[1]:
                pending = Pending(envelope, envelope.stamp.index(predecessor), now)
                self._pending[id] = pending
                self._file(pending)
                self._held.hold(envelope, effects)
                return
        settled = self._settled(stream, id.number) if self._waiting_for else None
        self._deliver(envelope, stream, deliver, effects)
        if settled is not None:
            self._wake(settled, effects)

    def _file(self, pending: Pending) -> None:
        lacked: Predecessor = pending.envelope.stamp[pending.position]
        self._waiting_for.setdefault(lacked, []).append(pending)

    def _deliver(self, envelope: Envelope, stream: Stream, deliver: Deliver, effects: list[Effect]) -> None:
        """Deliver a message and add it to `c_barrier` (performDelivery, code 3).

        With the option `prune`, unlike the paper, the predecessors that it covers leave `c_barrier`.
        """
        number = envelope.message.id.number
        self._delivered[stream] = number
        if self._prune:
            self._cover(envelope.stamp)
        self._barrier[stream] = number
        if self._durable:
            effects.append(Persist(top_key(stream), (number, envelope.stamp)))
        effects.append(deliver)

    def _cover(self, barrier: Barrier) -> None:
        """Remove from `c_barrier` the messages that a barrier names, and earlier messages of their streams."""
        mine = self._barrier
        for stream, number in barrier:
            if mine.get(stream, number + 1) <= number:
                del mine[stream]

    def _settled(self, stream: Stream, number: int) -> list[Predecessor]:
        """Return the predecessors that nothing needs to wait for once this message is delivered.

        A source that keeps to the protocol skips no number of its stream; for a liar's, what it skips is over.
        """
        last = self._delivered.get(stream, 0)
        if number - last <= len(self._waiting_for):
            return [(stream, earlier) for earlier in range(last + 1, number + 1)]
        return [lacked for lacked in self._waiting_for if lacked[0] == stream and lacked[1] <= number]

    def _wake(self, settled: list[Predecessor], effects: list[Effect]) -> None:
        """Deliver the messages that waited for these predecessors, or file them under the next they lack."""
        for lacked in settled:
            for pending in self._waiting_for.pop(lacked, ()):
                if self._lacks(pending):
                    self._file(pending)
                    continue
                message = pending.envelope.message
                stream, number = stream_of(message.id), message.id.number
                del self._pending[message.id]
                if number <= self._delivered.get(stream, 0):  # only a liar's: its later message waited for less
                    effects.append(Discard(message, "duplicate"))
                else:
                    settled += self._settled(stream, number)
                    self._deliver(pending.envelope, stream, Deliver(message, pending.envelope), effects)
                self._held.release(message.id, effects)

    def _lacks(self, pending: Pending) -> bool:
        """Move `position` to the next undelivered predecessor. Returns False if there is none."""
        barrier: Barrier = pending.envelope.stamp
        for position in range(pending.position, len(barrier)):
            stream, number = barrier[position]
            if self._delivered.get(stream, 0) < number:
                pending.position = position
                return True
        return False

    def knows(self, id: MessageId) -> bool:
        if self._own.is_own(id):
            return id.number <= self._own.number
        return id.number <= self._delivered.get(stream_of(id), 0) or id in self._pending

    def predecessors(self, id: MessageId, stamp: Any) -> tuple[MessageId, ...]:
        return tuple(id_in(stream, number) for stream, number in stamp)

    # -- state transfer ----------------------------------------------------------------------------------

    def waits_since(self) -> Instant | None:
        return next((pending.since for pending in self._pending.values()), None)

    def delivered_tops(self) -> Sequence[tuple[NodeId, int, int]]:
        ids = [id_in(stream, number) for stream, number in self._delivered.items()]
        return [(id.source, id.incarnation, id.number) for id in ids]

    def cut(self) -> bytes:
        """Return what was delivered here, and `c_barrier`: the latest of it."""
        cut = Cut(tuple(self._delivered.items()), tuple(self._barrier.items()))
        return msgspec.msgpack.encode(cut)

    def can_adopt(self, cut: bytes) -> bool:
        try:
            delivered = dict(msgspec.msgpack.decode(cut, type=Cut).delivered)
        except msgspec.MsgspecError:
            return False
        return all(delivered.get(stream, 0) >= number for stream, number in self._delivered.items())

    def adopt(self, cut: bytes, now: Instant, effects: list[Effect]) -> None:
        """Go on from the cut of another node. Messages that waited are taken again, behind the cut."""
        their = msgspec.msgpack.decode(cut, type=Cut)
        self._delivered = dict(their.delivered)
        self._barrier = {stream: number for stream, number in their.barrier if stream in self._delivered}
        if self._durable:
            # A restart covers with the stamps what is not in `c_barrier`: one stamp names all of it.
            covered = tuple(entry for entry in their.delivered if entry[0] not in self._barrier)
            for stream, number in their.delivered:
                is_first = stream == next(iter(self._barrier), None)
                effects.append(Persist(top_key(stream), (number, covered if is_first else ())))
        waiting, self._pending, self._waiting_for = self._pending, {}, {}
        for id, pending in waiting.items():
            if id.number <= self._delivered.get(stream_of(id), 0):
                effects.append(Discard(pending.envelope.message, "duplicate"))
                self._held.release(id, effects)
            else:
                self.arrive((pending.envelope,), pending.since, effects)
                if id not in self._pending:
                    self._held.release(id, effects)

    def unfinished(self) -> Sequence[Envelope]:
        return self._own.unfinished()

    def waiting(self) -> Sequence[Waiting]:
        return [
            Waiting(id, self._lacking(pending.envelope.stamp), pending.since)
            for id, pending in self._pending.items()
        ]

    def _lacking(self, barrier: Barrier) -> tuple[MessageId, ...]:
        return tuple(
            id_in(stream, number) for stream, number in barrier if self._delivered.get(stream, 0) < number
        )

    def sizes(self) -> Mapping[str, int]:
        return self.counted_sizes().mapping()

    def counted_sizes(self) -> Sizes:
        return self._sizes.set(len(self._barrier), len(self._delivered), len(self._pending))


ENTRY: Final = Entry(
    name="causal_barrier",
    title="causal order from immediate predecessors, without a known group",
    paper="Guidec, Launay, Mahéo: Causal and Δ-causal broadcast in opportunistic networks (2021), section IV",
    order="causal",
    worlds=("contacts", "point_to_point", "flood"),
    options=CausalBarrierOptions,
    ordering=CausalBarrier,
)
