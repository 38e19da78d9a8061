"""Codes 1 to 13 of guidec2021 as printed, errors included: the tests compare our protocols with them.

Maps are keyed by the host alone, `put` overwrites, and every delivery scans all pending messages. Only what
keeps message ids unique is persisted, so a restarted host begins with empty registries. The errors that follow
are E1 to E11 in papers/guidec2021/reading.md. Two corrections can be switched on alone: `prune=true` (E11) and
`lazy_expiry=false` (E1). With `prune=false, lazy_expiry=true` this is the paper, line by line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, TypeAlias

from msgspec.structs import replace

from precede.core.effects import Deliver, Discard, Effect, Effects, Key, SetTimer
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message
from precede.core.node import Context, Saved, Waiting
from precede.protocols.guidec2021 import causal_barrier, delta_causal
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.own_messages import OwnMessages, refuse_destinations

Tags: TypeAlias = dict[NodeId, int]

_ENTRY_BYTES: Final = 16
_DUE: Final = "due"


class LiteralCausal(Ordering):
    """Section IV: `st`, `c_barrier`, `co_delivered`, `pending` (code 1)."""

    draining: ClassVar[tuple[str, ...]] = ("pending",)
    stamp_type = tuple[int, dict[int, int]]
    knows_for_ever: ClassVar[bool] = False

    def __init__(self, context: Context) -> None:
        self._own = OwnMessages(context)
        self._prune: bool = context.options.prune
        self._c_barrier: Tags = {}
        self._co_delivered: Tags = {}
        self._pending: dict[MessageId, tuple[Envelope, Tags, Instant]] = {}

    def start(self, now: Instant, saved: Saved) -> Effects:
        return self._own.start(saved, self.stamp_type, now)

    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        """co_broadcast (codes 2 and 9)."""
        refuse_destinations(to, "the printed algorithm")
        id = self._own.next_id()
        tag, deadline = self._tag(id.number, now, lifetime)
        self._expunge_expired_predecessors(self._c_barrier, now)
        entries = len(self._c_barrier)
        envelope = Envelope(
            Message(id, payload),
            (tag, dict(self._c_barrier)),
            deadline,
            None,
            _ENTRY_BYTES * (1 + entries),
            entries,
            now,
        )
        effects = self._own.accept(envelope)
        own_delivery = effects.pop()
        self._c_barrier = {}
        self._perform_delivery(envelope, effects)
        assert effects[-1] == own_delivery
        return envelope, effects

    def _tag(self, number: int, now: Instant, lifetime: Duration | None) -> tuple[int, Instant | None]:
        return number, None

    def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
        """oppnet_receive (codes 5 and 11), once per message."""
        for envelope in envelopes:
            barrier = dict(envelope.stamp[1])
            self._expunge_expired_predecessors(barrier, now)
            self._expunge_delivered_predecessors(barrier)
            if barrier:
                self._pending[envelope.message.id] = (envelope, barrier, now)
            else:
                self._perform_delivery(envelope, effects)
                self._check_pending_messages(now, effects)
        self._watch(effects)

    def _perform_delivery(self, envelope: Envelope, effects: list[Effect]) -> None:
        """Code 3."""
        source, tag = envelope.message.id.source, envelope.stamp[0]
        self._co_delivered[source] = tag
        if self._prune:
            for host, covered in envelope.stamp[1].items():
                if self._c_barrier.get(host, covered + 1) <= covered:
                    del self._c_barrier[host]
        self._c_barrier[source] = tag
        effects.append(Deliver(envelope.message))
        self._forget_dependency(source, tag)

    def _forget_dependency(self, source: NodeId, tag: int) -> None:
        """Code 4."""
        for _, barrier, _ in self._pending.values():
            if source in barrier and barrier[source] <= tag:
                del barrier[source]

    def _expunge_delivered_predecessors(self, barrier: Tags) -> None:
        """Code 6."""
        for host, tag in list(barrier.items()):
            if host in self._co_delivered and self._co_delivered[host] >= tag:
                del barrier[host]

    def _check_pending_messages(self, now: Instant, effects: list[Effect]) -> None:
        """Codes 7 and 13."""
        self._forget_expired_messages(now)
        delivered = True
        while delivered:
            delivered = False
            for id, (envelope, barrier, _) in list(self._pending.items()):
                if not barrier:
                    del self._pending[id]
                    self._perform_delivery(envelope, effects)
                    delivered = True

    def _expunge_expired_predecessors(self, barrier: Tags, now: Instant) -> None:
        """Code 10: nothing expires in section IV."""

    def _forget_expired_messages(self, now: Instant) -> None:
        """Code 12."""

    def _watch(self, effects: list[Effect]) -> None:
        """Without lazy expiry: be woken when an unmet predecessor expires."""

    def knows(self, id: MessageId) -> bool:
        """The printed algorithm relies on the layer below for this, and on nothing else (E8)."""
        own = id.source == self._own.node and id.incarnation == self._own.incarnation
        return own or id in self._pending

    def waiting(self) -> Sequence[Waiting]:
        """Names no predecessors: a tag does not tell the number of its message."""
        return [Waiting(id, (), since) for id, (_, _, since) in self._pending.items()]

    def sizes(self) -> Mapping[str, int]:
        return {
            "causal_barrier": len(self._c_barrier),
            "co_delivered": len(self._co_delivered),
            "pending": len(self._pending),
        }


class LiteralDelta(LiteralCausal):
    """Section V: the tag is the deadline."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._lifetime: Duration = context.options.lifetime
        self._lazy: bool = context.options.lazy_expiry

    def _tag(self, number: int, now: Instant, lifetime: Duration | None) -> tuple[int, Instant | None]:
        deadline = now + (self._lifetime if lifetime is None else lifetime)
        return deadline, deadline

    def _expunge_expired_predecessors(self, barrier: Tags, now: Instant) -> None:
        for host, deadline in list(barrier.items()):
            if deadline < now:
                del barrier[host]

    def _forget_expired_messages(self, now: Instant) -> None:
        for _, barrier, _ in self._pending.values():
            self._expunge_expired_predecessors(barrier, now)
        self._expunge_expired_predecessors(self._co_delivered, now)

    def dropped(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        """oppnet_discard (section V-C, in prose)."""
        if self._pending.pop(envelope.message.id, None) is None:
            return
        effects.append(Discard(envelope.message, "expired_pending"))
        self._forget_dependency(envelope.message.id.source, envelope.stamp[0])
        self._check_pending_messages(now, effects)

    def _watch(self, effects: list[Effect]) -> None:
        tags = [tag for _, barrier, _ in self._pending.values() for tag in barrier.values()]
        if tags and not self._lazy:
            effects.append(SetTimer(_DUE, min(tags) + 1))

    def timer(self, key: Key, now: Instant, effects: list[Effect]) -> None:
        self._check_pending_messages(now, effects)
        self._watch(effects)


PRINTED_CAUSAL: Final = replace(
    causal_barrier.ENTRY, name="causal_barrier_printed", title="codes 1 to 7", ordering=LiteralCausal
)
PRINTED_DELTA: Final = replace(
    delta_causal.ENTRY, name="delta_causal_printed", title="codes 8 to 13", ordering=LiteralDelta
)
