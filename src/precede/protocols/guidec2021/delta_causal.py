"""`delta_causal`: causal broadcast of messages that live for a while (guidec2021, section V, codes 8 to 13).

A message waits for each immediate predecessor until it is delivered, or until its deadline has passed here:
then it will never be delivered here, and nothing waits for it any more. So a wait is bounded by a lifetime,
and so are the registries.

The form built here is *multi* (delta_barrier.py): a sequence number apart from the deadline, and barrier
entries kept while they outlive what covers them. Lifetimes may differ per message, and clocks by up to `skew`.
The paper tags a message with its deadline alone and notices expiry when something else happens; what goes wrong
then, with schedules, is in papers/guidec2021/reading.md (E1 to E11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, ClassVar, Final, final

from mypy_extensions import mypyc_attr

from precede.core.effects import Discard, Effect, Effects, Key, Persist, SetTimer
from precede.core.errors import Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import MINUTE, Duration, Instant
from precede.core.messages import Message
from precede.core.node import Context, Saved, Waiting, restore
from precede.protocols.guidec2021.options import DeltaCausalOptions
from precede.protocols.guidec2021.past import Barrier, Past, Top, barrier_of
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.own_messages import OwnMessages, held_key, no_destinations, restored_held
from precede.protocols.layered.parsed_envelopes import NEVER, Batch, Named, Opened, batch_of
from precede.protocols.layered.streams import Stream, id_in, stream_in, stream_of, top_key
from precede.protocols.registry import Entry

HEADER_BYTES: Final = 24
"""host id, number and deadline, eight bytes each; the paper has no byte model."""
ENTRY_BYTES: Final = 24

_SWEEP_EVERY: Final[Duration] = MINUTE
_DUE: Final = "due"


@final
class Pending:
    """A message in hand: since when, and the place in its barrier of the predecessor it is filed under.

    Those that are filed under one predecessor are a chain: the first knows the last, each the `following`.
    """

    __slots__ = ("barrier", "done", "following", "last", "noted", "opened", "place", "since")

    def __init__(self, opened: Opened, barrier: list[Named], place: int, since: Instant) -> None:
        self.opened = opened
        self.barrier = barrier
        self.place = place
        self.since = since
        self.noted = False
        self.done = False
        self.following: Pending | None = None
        self.last: Pending | None = None


@mypyc_attr(allow_interpreted_subclasses=True)
class DeltaCausal(Ordering):
    """`_past` is the paper's `c_barrier` and `co_delivered`; beside it `pending` and two heaps of instants."""

    draining: ClassVar[tuple[str, ...]] = ("pending",)
    stamp_type = Barrier

    def __init__(self, context: Context[DeltaCausalOptions]) -> None:
        options = context.options
        self._own = OwnMessages(context)
        self._durable: bool = options.durable
        self._lifetime: Duration | None = options.lifetime
        self._monotone: bool = options.monotone
        self._lazy: bool = options.lazy_expiry
        self._skew: Duration = options.skew
        self._past = Past(options.prune)
        self._pending: dict[MessageId, Pending] = {}
        self._filed: dict[Any, Pending] = {}  # by the key of a predecessor's name
        self._unmet_ends: list[tuple[Instant, int, Named]] = []
        self._own_ends: list[tuple[Instant, int, Pending]] = []
        self._refiled: list[Pending] = []
        self._serial = 0
        self._timer_at: Instant = NEVER
        self._sweep_at: Instant = 0

    # -- inputs ------------------------------------------------------------------------------------------

    def start(self, now: Instant, saved: Saved) -> Effects:
        self._restore_registries(saved)
        effects = self._own.start(saved, Barrier, now)
        for envelope in self._own.kept:
            self._finish(envelope, effects)
        for envelope in restored_held(saved, Barrier):
            id = envelope.message.id
            if self._passed(id):
                effects.append(Persist(held_key(id), None))
            else:
                self._arrive([Opened(envelope)], now, effects)
        self._settle(now, effects)
        return effects

    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        no_destinations(to, "delta_causal")
        lives = self._lifetime if lifetime is None else lifetime
        if lives is not None and lives <= 0:
            raise Refused(f"a message must live for a while, not {lives} microseconds")
        before: list[Effect] = []
        self._expire(now, before)
        barrier = self._past.barrier(now - self._skew)
        deadline = NEVER if lives is None else now + lives
        if self._monotone:
            deadline = min(max([deadline, *(entry[2] + 1 for entry in barrier)]), NEVER)
        envelope = self._enveloped(payload, barrier, deadline, now)
        id = envelope.message.id
        stream = stream_of(id)
        effects = self._own.accept(envelope)
        name = Named(envelope.name)
        self._past.broadcast(name)
        if self._durable:
            effects.insert(1, self._saved_top(stream, barrier))
        self._wake(name.key, now, effects)
        self._settle(now, effects)
        return envelope, before + effects

    def _enveloped(self, payload: bytes, barrier: Barrier, deadline: Instant, now: Instant) -> Envelope:
        message = Message(self._own.next_id(), payload)
        entries = len(barrier)
        size = HEADER_BYTES + ENTRY_BYTES * entries
        public = None if deadline == NEVER else deadline
        return Envelope(message, barrier, public, None, size, entries, now)

    def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
        self.arrive_batch(batch_of(envelopes), now, effects)

    def arrive_batch(self, batch: Batch, now: Instant, effects: list[Effect]) -> None:
        self._arrive(batch.contents, now, effects)
        if self._refiled:
            self._settle(now, effects)
        if now >= self._sweep_at:
            self._forget(now, effects)

    def timer(self, key: Key, now: Instant, effects: list[Effect]) -> None:
        self._timer_at = NEVER
        self._expire(now, effects)
        self._settle(now, effects)

    # -- arrival and delivery ------------------------------------------------------------------------------

    def _arrive(self, contents: list[Opened], now: Instant, effects: list[Effect]) -> None:
        past, filed = self._past, self._filed
        tops = past.tops
        for opened in contents:
            number, deadline = opened.number, opened.deadline
            last = tops.get(opened.stream)
            if last is not None and number <= last.number:
                effects.append(Discard(opened.message, "duplicate"))
                continue
            if deadline <= now:
                self._discard(opened, "late", effects)
                continue
            covered: Top | None = None
            barrier = barrier_of(opened)
            usual = len(barrier) <= 1 and past.prune and not past.outliving
            for place, entry in enumerate(barrier):
                top = tops.get(entry.stream)
                if (top is None or top.number < entry.number) and entry.deadline > now:
                    self._wait(Pending(opened, barrier, place, now), effects)
                    break
                if entry.deadline > deadline:
                    usual = False
                elif top is not None and top.number <= entry.number and top.deadline <= deadline:
                    covered = top
            else:
                if usual and last is not None and last.deadline <= deadline:
                    if covered is not None:
                        covered.named = False
                    last.rise(opened.name)
                else:
                    past.deliver(opened.name, barrier)
                if self._durable:
                    effects.append(self._saved_top(opened.stream, opened.stamp))
                effects.append(opened.deliver)
                if filed:
                    if opened.name.key in filed:
                        self._wake(opened.name.key, now, effects)
                    if self._lazy:
                        self._expire_unmet(now, effects)

    def _wait(self, pending: Pending, effects: list[Effect]) -> None:
        self._file(pending)
        if self._durable:
            effects.append(Persist(held_key(pending.opened.id), pending.opened.envelope))

    def _file(self, pending: Pending) -> None:
        """Under the predecessor it lacks; what else is to be noted of it when the input has run its course."""
        first = self._filed.setdefault(pending.barrier[pending.place].key, pending)
        if first is not pending:
            before = first if first.last is None else first.last
            before.following = first.last = pending
        self._refiled.append(pending)

    def _wake(self, settled: Any, now: Instant, effects: list[Effect]) -> None:
        """Whoever was filed under this key (delivered or expired) goes now, or is filed under the next."""
        filed = self._filed
        woken: list[Any] = [settled]
        for key in woken:
            pending = filed.get(key)
            if pending is not None:
                del filed[key]
            while pending is not None:
                following = pending.following
                pending.following = pending.last = None
                if not pending.done:
                    if self._lacks(pending, now):
                        self._file(pending)
                    elif self._release(pending, now, effects):
                        woken.append(pending.opened.name.key)
                pending = following

    def _release(self, pending: Pending, now: Instant, effects: list[Effect]) -> bool:
        """Out of `pending`: delivered (code 3), unless its own deadline has passed (E9)."""
        opened = pending.opened
        pending.done = True
        if pending.noted:
            del self._pending[opened.id]
        if opened.deadline <= now:
            self._discard(opened, "expired_pending", effects)
            return False
        self._past.deliver(opened.name, pending.barrier)
        if self._durable:
            effects.append(self._saved_top(opened.stream, opened.stamp))
        effects.append(opened.deliver)
        if self._durable:
            effects.append(Persist(held_key(opened.id), None))
        return True

    def _lacks(self, pending: Pending, now: Instant) -> bool:
        """Move the pointer to the next predecessor that is neither delivered nor expired here."""
        tops, barrier = self._past.tops, pending.barrier
        for place in range(pending.place, len(barrier)):
            entry = barrier[place]
            top = tops.get(entry.stream)
            if (top is None or top.number < entry.number) and entry.deadline > now:
                pending.place = place
                return True
        return False

    def _discard(self, opened: Opened, reason: str, effects: list[Effect]) -> None:
        effects.append(Discard(opened.message, reason))
        if self._durable:
            effects.append(Persist(held_key(opened.id), None))

    # -- time ------------------------------------------------------------------------------------------------

    def _expire(self, now: Instant, effects: list[Effect]) -> None:
        """Deliver what waited for something that has expired; give up what has itself expired."""
        ended = False
        while self._own_ends and self._own_ends[0][0] <= now:
            pending = heappop(self._own_ends)[2]
            if not pending.done:
                ended = pending.done = True
                del self._pending[pending.opened.id]
                self._discard(pending.opened, "expired_pending", effects)
        if ended or not self._lazy:
            self._expire_unmet(now, effects)

    def _expire_unmet(self, now: Instant, effects: list[Effect]) -> None:
        """forgetExpiredMessages (code 12), for whoever waits for something that has expired."""
        ends = self._unmet_ends
        while ends and ends[0][0] <= now:
            lacked = heappop(ends)[2]
            if lacked.key in self._filed:
                self._wake(lacked.key, now, effects)
                self._note()

    def _settle(self, now: Instant, effects: list[Effect]) -> None:
        """At the end of an input: remember the instants of what still waits, and be woken at the first."""
        self._note()
        if not self._pending:
            self._own_ends.clear()
            self._unmet_ends.clear()
            self._filed.clear()
            return
        ends = self._own_ends[0][0]
        if not self._lazy and self._unmet_ends:
            ends = min(ends, self._unmet_ends[0][0])
        if ends < self._timer_at:
            self._timer_at = ends
            effects.append(SetTimer(_DUE, ends))

    def _note(self) -> None:
        """What still waits, and its instants. Nearly all that is filed is delivered within the same input."""
        for pending in self._refiled:
            if not pending.done:
                self._serial += 1
                opened = pending.opened
                lacked = pending.barrier[pending.place]
                heappush(self._unmet_ends, (lacked.deadline, self._serial, lacked))
                if not pending.noted:
                    pending.noted = True
                    self._pending[opened.id] = pending
                    heappush(self._own_ends, (opened.deadline, self._serial, pending))
        self._refiled.clear()

    def _forget(self, now: Instant, effects: list[Effect]) -> None:
        """What has expired by every clock is no longer a predecessor of anything that can be delivered."""
        self._sweep_at = now + _SWEEP_EVERY
        for stream in self._past.forget(now - self._skew):
            if self._durable:
                effects.append(Persist(top_key(stream), None))

    # -- a restart ---------------------------------------------------------------------------------------------

    def _saved_top(self, stream: Stream, barrier: Barrier) -> Persist:
        """One value per stream, from which both registries can be rebuilt."""
        top = self._past.tops[stream]
        return Persist(top_key(stream), (top.number, top.deadline, top.until, barrier))

    def _restore_registries(self, saved: Saved) -> None:
        """The last delivered message of each stream covers whatever else was delivered of it (reading.md)."""
        found: list[tuple[Named, Barrier]] = []
        for key, value in saved.items():
            if type(key) is tuple and key[0] == "top":
                number, deadline, until, barrier = restore(
                    {key: value}, key, tuple[int, int, int, Barrier], (0, 0, 0, ())
                )
                stream = stream_in(key)
                name = Named((stream, number, deadline))
                self._past.tops[stream] = Top(name, until)
                found.append((name, barrier))
        for name, barrier in found:
            self._past.deliver(name, [Named(entry) for entry in barrier])

    def _finish(self, envelope: Envelope, effects: list[Effect]) -> None:
        """An own message that was numbered when the node went down, before its registries were saved."""
        id = envelope.message.id
        if self._passed(id):
            return
        self._past.broadcast(Named(envelope.name))
        effects.append(self._saved_top(stream_of(id), envelope.stamp))

    # -- what others may ask ---------------------------------------------------------------------------

    def _passed(self, id: MessageId) -> bool:
        top = self._past.tops.get(stream_of(id))
        return top is not None and id.number <= top.number

    def knows(self, id: MessageId) -> bool:
        if id.source == self._own.node and id.incarnation == self._own.incarnation:
            return id.number <= self._own.number
        return self._passed(id) or id in self._pending

    def unfinished(self) -> Sequence[Envelope]:
        return self._own.unfinished()

    def waiting(self) -> Sequence[Waiting]:
        return [self._waiting(id, pending) for id, pending in self._pending.items()]

    def _waiting(self, id: MessageId, pending: Pending) -> Waiting:
        lacked = [
            entry
            for entry in pending.opened.stamp[pending.place :]
            if (top := self._past.tops.get(entry[0])) is None or top.number < entry[1]
        ]
        until = min(pending.opened.deadline, max(entry[2] for entry in lacked))
        waits_for = tuple(id_in(stream, number) for stream, number, _ in lacked)
        return Waiting(id, waits_for, pending.since, None if until == NEVER else until)

    def sizes(self) -> Mapping[str, int]:
        return {
            "causal_barrier": self._past.named(),
            "co_delivered": len(self._past.tops),
            "pending": len(self._pending),
        }


ENTRY: Final = Entry(
    name="delta_causal",
    title="causal order for messages with a lifetime: a bounded wait for what was lost",
    paper="Guidec, Launay, Mahéo: Causal and Δ-causal broadcast in opportunistic networks (2021), section V",
    order="delta",
    worlds=("contacts", "point_to_point", "flood"),
    options=DeltaCausalOptions,
    ordering=DeltaCausal,
)
