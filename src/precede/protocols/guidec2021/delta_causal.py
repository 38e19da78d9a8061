"""`delta_causal`: causal broadcast of messages with lifetimes (guidec2021, section V, codes 8 to 13).

A message waits for each immediate predecessor until that is delivered, or until its deadline has passed here:
then it will never be delivered here, and nothing waits for it. So a lifetime bounds waits and registries.

The paper tags a message with its deadline alone, and notices expiry only when something else happens. We give a
message a number and a deadline, keep barrier entries that outlive what covers them, and set timers, because the
printed form misorders messages (papers/guidec2021/reading.md has the schedules, E1 to E11). Lifetimes may
differ per message, and clocks by up to `skew`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from mypy_extensions import i64, mypyc_attr

from precede.core.effects import Discard, Effect, Effects, Key, Persist, SetTimer
from precede.core.identity import MessageId, NodeId
from precede.core.instants import MINUTE, Duration, Instant
from precede.core.messages import Message
from precede.core.node import Context, Saved, Waiting
from precede.core.peaks import Sizes
from precede.protocols.guidec2021.options import DeltaCausalOptions
from precede.protocols.guidec2021.past import NO_TOP, Barrier, Past, Top, barrier_of
from precede.protocols.guidec2021.waiting import Pending, WaitingMessages
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.held_messages import HeldMessages
from precede.protocols.layered.ordering import BatchOrdering
from precede.protocols.layered.own_messages import OwnMessages, deadline_after, refuse_destinations
from precede.protocols.layered.parsed_envelopes import NEVER, MessageName, ParsedEnvelope
from precede.protocols.layered.streams import id_in, stream_of, top_key
from precede.protocols.registry import Entry

HEADER_BYTES: Final = 24
"""The size of a host id, a number and a deadline, eight bytes each. This is our model: the paper has none."""
ENTRY_BYTES: Final = 24

_SWEEP_EVERY: Final[Duration] = MINUTE
_DUE: Final = "due"


@mypyc_attr(allow_interpreted_subclasses=True)
class DeltaCausal(BatchOrdering):
    """Δ-causal order: `_past` is the paper's `c_barrier` and `co_delivered`, `_waiting` its `pending`."""

    draining: ClassVar[tuple[str, ...]] = ("pending",)
    stamp_type = Barrier
    renewable = True

    def __init__(self, context: Context[DeltaCausalOptions]) -> None:
        options = context.options
        self._own = OwnMessages(context)
        self._durable: bool = options.durable
        self._lifetime: Duration | None = options.lifetime
        self._monotone: bool = options.monotone
        self._lazy: bool = options.lazy_expiry
        self._skew: Duration = options.skew
        self._past = Past(options.prune)
        self._held = HeldMessages(self._durable)
        self._waiting = WaitingMessages()
        self._timer_at: Instant = NEVER
        self._sweep_at: Instant = 0
        self._sizes = Sizes("causal_barrier", "co_delivered", "pending")

    # -- inputs ------------------------------------------------------------------------------------------

    def start(self, now: Instant, saved: Saved) -> Effects:
        self._past.restore(saved)
        effects = self._own.start(saved, Barrier, now)
        for envelope in self._own.kept:
            self._finish_own(envelope, effects)
        for envelope in self._held.resume(saved, Barrier, self._passed, effects):
            self._arrive([ParsedEnvelope(envelope)], now, effects)
        self._schedule(effects)
        return effects

    def _finish_own(self, envelope: Envelope, effects: list[Effect]) -> None:
        """Finish an own broadcast that a crash cut off between numbering and saving the registries."""
        id = envelope.message.id
        if not self._passed(id):
            self._past.broadcast(MessageName(envelope.name))
            effects.append(self._past.saved_top(stream_of(id), envelope.stamp))

    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        refuse_destinations(to, "delta_causal")
        deadline = deadline_after(self._lifetime if lifetime is None else lifetime, now)
        before: list[Effect] = []
        self._expire(now, before)
        barrier = self._past.barrier(now - self._skew)
        if self._monotone and deadline is not None and barrier:
            latest = max([entry[2] for entry in barrier])
            deadline = None if latest == NEVER else max(deadline, latest + 1)
        message = Message(self._own.next_id(), payload)
        size = HEADER_BYTES + ENTRY_BYTES * len(barrier)
        envelope = Envelope(message, barrier, deadline, None, size, len(barrier), now)
        name = MessageName(envelope.name)
        effects = self._own.accept(envelope)
        self._past.broadcast(name)
        if self._durable:
            effects.insert(1, self._past.saved_top(name.stream, barrier))
        self._wake_for(name, name.number - 1, now, effects)
        self._schedule(effects)
        return envelope, before + effects

    def take_parsed(self, contents: list[ParsedEnvelope], now: Instant, effects: list[Effect]) -> None:
        self._arrive(contents, now, effects)
        if self._waiting.unregistered:
            self._schedule(effects)
        if now >= self._sweep_at:
            self._forget(now, effects)

    def timer(self, key: Key, now: Instant, effects: list[Effect]) -> None:
        self._timer_at = NEVER
        self._expire(now, effects)
        self._schedule(effects)

    # -- arrival and delivery ----------------------------------------------------------------------------

    def _arrive(self, contents: list[ParsedEnvelope], now: Instant, effects: list[Effect]) -> None:
        """Deliver each message, or let it wait, or discard it."""
        past, waiting = self._past, self._waiting
        at: i64 = now
        for parsed in contents:
            last = past.top_of(parsed.name)
            if parsed.number <= last.number:
                effects.append(Discard(parsed.message, "duplicate"))
                continue
            if parsed.deadline <= at:
                self._discard(parsed, "late", effects)
                continue
            barrier = barrier_of(parsed)
            lacked = past.first_lacked(barrier, 0, now)
            if lacked >= 0:
                waiting.file(Pending(parsed, barrier, lacked, now))
                self._held.hold(parsed.envelope, effects)
                continue
            before: i64 = 0 if last is NO_TOP else last.number
            self._deliver(parsed, barrier, last, effects)
            if waiting.chains:
                self._wake_for(parsed.name, before, now, effects)
                if self._lazy:
                    self._expire_predecessors(now, effects)

    def _deliver(
        self, parsed: ParsedEnvelope, barrier: list[MessageName], last: Top, effects: list[Effect]
    ) -> None:
        """Deliver a message after `last`, the top of its stream (code 3)."""
        if self._past.prune or parsed.outlived:
            self._past.deliver(parsed.name, barrier, last)
        else:
            self._past.follow(last, parsed.name)
        if self._durable:
            effects.append(self._past.saved_top(parsed.stream, parsed.stamp))
        effects.append(parsed.deliver)

    def _wake_for(self, name: MessageName, before: i64, now: Instant, effects: list[Effect]) -> None:
        """Deliver the messages that waited for a message, or file them under the next predecessor they lack.

        Also those that waited for messages of its stream after number `before`: the delivery has skipped these,
        because they have expired, or because the source lies.
        """
        waiting = self._waiting
        settled: list[Pending] = []
        waiting.take(name, before, settled)
        for first in settled:
            pending: Pending | None = first
            while pending is not None:
                following = pending.following
                pending.following = pending.last = None
                if not pending.done:
                    lacked = self._past.first_lacked(pending.barrier, pending.position, now)
                    if lacked >= 0:
                        pending.position = lacked
                        waiting.file(pending)
                    else:
                        self._release(pending, now, settled, effects)
                pending = following

    def _release(self, pending: Pending, now: Instant, settled: list[Pending], effects: list[Effect]) -> None:
        """Deliver a message that waited, or discard it if it has expired (E9).

        The messages that waited for it are appended to `settled`. A later message of a liar may pass one that
        waits.
        """
        parsed = pending.parsed
        self._waiting.finish(pending)
        last = self._past.top_of(parsed.name)
        passed = parsed.number <= last.number
        if passed or parsed.deadline <= now:
            self._discard(parsed, "duplicate" if passed else "expired_pending", effects)
            return
        if self._waiting.chains:
            self._waiting.take(parsed.name, 0 if last is NO_TOP else last.number, settled)
        self._deliver(parsed, pending.barrier, last, effects)
        self._held.release(parsed.id, effects)

    def _discard(self, parsed: ParsedEnvelope, reason: str, effects: list[Effect]) -> None:
        effects.append(Discard(parsed.message, reason))
        self._held.release(parsed.id, effects)

    # -- time --------------------------------------------------------------------------------------------

    def _expire(self, now: Instant, effects: list[Effect]) -> None:
        """Discard waiting messages that have expired; deliver those that waited for an expired predecessor.

        With the option `lazy_expiry` the latter happens only if a message was discarded.
        """
        discarded = False
        pending = self._waiting.take_expired(now)
        while pending is not None:
            discarded = True
            self._discard(pending.parsed, "expired_pending", effects)
            pending = self._waiting.take_expired(now)
        if discarded or not self._lazy:
            self._expire_predecessors(now, effects)

    def _expire_predecessors(self, now: Instant, effects: list[Effect]) -> None:
        """Wake the messages that wait for an expired predecessor (forgetExpiredMessages, code 12)."""
        lacked = self._waiting.expired_predecessor(now)
        while lacked is not None:
            self._wake_for(lacked, lacked.number - 1, now, effects)
            self._waiting.register()
            lacked = self._waiting.expired_predecessor(now)

    def _schedule(self, effects: list[Effect]) -> None:
        """End an input: register the messages that still wait, and set the timer of the next expiry."""
        self._waiting.register()
        first = self._waiting.first_deadline(with_predecessors=not self._lazy)
        if first < self._timer_at:
            self._timer_at = first
            effects.append(SetTimer(_DUE, first))

    def _forget(self, now: Instant, effects: list[Effect]) -> None:
        """Forget streams whose messages have expired even by the slowest clock: nothing waits for them."""
        self._sweep_at = now + _SWEEP_EVERY
        for stream in self._past.forget(now - self._skew):
            if self._durable:
                effects.append(Persist(top_key(stream), None))

    # -- questions ---------------------------------------------------------------------------------------

    def _passed(self, id: MessageId) -> bool:
        """Is the message, or a later one of its stream, delivered? Then another copy is not delivered."""
        top = self._past.tops.get(stream_of(id))
        return top is not None and id.number <= top.number

    def predecessors(self, id: MessageId, stamp: Any) -> tuple[MessageId, ...]:
        return tuple(id_in(stream, number) for stream, number, *_ in stamp)

    def knows(self, id: MessageId) -> bool:
        if self._own.is_own(id):
            return id.number <= self._own.number
        return self._passed(id) or id in self._waiting.by_id

    def unfinished(self) -> Sequence[Envelope]:
        return self._own.unfinished()

    def waiting(self) -> Sequence[Waiting]:
        return [self._waiting_for(id, pending) for id, pending in self._waiting.by_id.items()]

    def _waiting_for(self, id: MessageId, pending: Pending) -> Waiting:
        """Report which predecessors a message waits for, and until when at most."""
        tops = self._past.tops
        lacked = [
            entry
            for entry in pending.parsed.stamp[pending.position :]
            if (top := tops.get(entry[0])) is None or top.number < entry[1]
        ]
        until = min(pending.parsed.deadline, max(entry[2] for entry in lacked))
        predecessors = tuple(id_in(stream, number) for stream, number, _ in lacked)
        return Waiting(id, predecessors, pending.since, None if until == NEVER else until)

    def sizes(self) -> Mapping[str, int]:
        return self.counted_sizes().mapping()

    def counted_sizes(self) -> Sizes:
        past = self._past
        return self._sizes.set(past.barrier_size(), len(past.tops), len(self._waiting.by_id))


ENTRY: Final = Entry(
    name="delta_causal",
    title="causal order for messages with a lifetime: the wait for a lost message is bounded",
    paper="Guidec, Launay, Mahéo: Causal and Δ-causal broadcast in opportunistic networks (2021), section V",
    order="delta",
    worlds=("contacts", "point_to_point", "flood"),
    options=DeltaCausalOptions,
    ordering=DeltaCausal,
)
