"""Protocols that are wrong on purpose: the swarm must catch every one of them.

Each is a correct protocol with one part made wrong, so a finding shows that the swarm tests that part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from precede.core.effects import Deliver, Effect, Effects, Persist, Send
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.node import Context, Node, Saved
from precede.protocols.layered import fifo, vector_clock
from precede.protocols.layered.direct import Direct
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.fifo import Fifo
from precede.protocols.layered.node import LayeredNode
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.vector_clock import VectorClock
from precede.protocols.registry import Entry, read_options
from tests.entries import flat_options


class Eager(VectorClock):
    """Delivers every message on arrival."""

    def _lack(self, envelope: Envelope) -> tuple[NodeId, int] | None:
        return None


class ForgetsTransitive(VectorClock):
    """Names only the last message it delivered, not the predecessors of that one."""

    last: tuple[NodeId, int] | None = None

    def stamp(self, *given: Any) -> tuple[Envelope, list[Effect]]:
        envelope, _ = super().stamp(*given)
        id = envelope.message.id
        direct = {id.source: id.number}
        if self.last is not None:
            direct[self.last[0]] = self.last[1]
        short = Envelope(envelope.message, direct, None, None, 8, 2)
        return short, self._own.accept(short)

    def _deliver(self, deliver: Deliver, effects: list[Effect]) -> None:
        super()._deliver(deliver, effects)
        self.last = (deliver.message.id.source, deliver.message.id.number)


class OffByOne(VectorClock):
    """Requires one message less than each vector entry says."""

    def _lack(self, envelope: Envelope) -> tuple[NodeId, int] | None:
        for member, number in envelope.stamp.items():
            if self._delivered.get(member, 0) < number - 1:
                return member, number - 1
        return None


class WakesOne(VectorClock):
    """Wakes only the first of the messages that wait for a message."""

    def _wake(self, id: MessageId, effects: list[Effect]) -> None:
        key = (id.source, id.number)
        self._waiting_for[key] = self._waiting_for.get(key, [])[:1]
        super()._wake(id, effects)


class LosesWhatWaited(VectorClock):
    """Restarts without the messages that waited, which it has acknowledged."""

    def start(self, now: Instant, saved: Saved) -> Effects:
        return super().start(now, {key: value for key, value in saved.items() if "held" not in _words(key)})


class ForgetsDelivered(VectorClock):
    """Restarts without the record of its deliveries."""

    def start(self, now: Instant, saved: Saved) -> Effects:
        return super().start(now, {key: value for key, value in saved.items() if "done" not in _words(key)})


class ForgetsUnsent(VectorClock):
    """Restarts and does not send the messages whose sending the crash interrupted."""

    def unfinished(self) -> Sequence[Envelope]:
        return ()


class NumbersAnew(VectorClock):
    """Restarts and numbers its messages from 1 again."""

    def start(self, now: Instant, saved: Saved) -> Effects:
        effects = super().start(now, saved)
        self._own.number = 0
        return effects


class AcknowledgesUnsafe(VectorClock):
    """Acknowledges a message that waits without persisting it."""

    def take(self, envelope: Envelope, deliver: Deliver, now: Instant, effects: list[Effect]) -> None:
        found: list[Effect] = []
        super().take(envelope, deliver, now, found)
        effects += [
            effect for effect in found if not (type(effect) is Persist and "held" in _words(effect.key))
        ]


class PersistsLate(VectorClock):
    """Delivers a message before it persists the delivery."""

    def _deliver(self, deliver: Deliver, effects: list[Effect]) -> None:
        found: list[Effect] = []
        super()._deliver(deliver, found)
        effects += reversed(found)


class NeverDeduplicates(VectorClock):
    """Treats every copy of a message as the first."""

    def knows(self, id: MessageId) -> bool:
        return id.source == self._own.node


class OnlyFifo(Fifo):
    """Keeps FIFO order and claims causal order."""


class SkipsGaps(Fifo):
    """Skips a missing message once two later ones have arrived."""

    def take(self, envelope: Envelope, deliver: Deliver, now: Instant, effects: list[Effect]) -> None:
        id = envelope.message.id
        behind = id.number - self._delivered.get((id.source, id.incarnation), 0)
        if 1 < behind <= 3:
            self._deliver(deliver, effects)
        else:
            super().take(envelope, deliver, now, effects)


class SendsBeforePersist(Direct):
    """Sends a new message before it is persisted and accepted."""

    def spread(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        sends: list[Effect] = []
        super().spread(envelope, now, sends)
        effects[:0] = sends


class NeverRetransmits(Direct):
    """Never retransmits."""

    def timer(self, key: Any, now: Instant) -> Effects:
        return ()


class NeverForgets(Direct):
    """Ignores acknowledgements and retransmits for ever."""

    def _receive_ack(self, ids: Sequence[MessageId], sender: NodeId) -> Effects:
        return ()


class AcknowledgesFirst(Direct):
    """Acknowledges a message before it persists or delivers it."""

    def _receive_message(self, envelope: Envelope, sender: NodeId, now: Instant) -> Effects:
        effects = super()._receive_message(envelope, sender, now)
        first = [effect for effect in effects if type(effect) is Send]
        return [*first, *[effect for effect in effects if type(effect) is not Send]]


def _words(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def entry_of(
    base: Entry, ordering: type[Ordering] | None = None, dissemination: type[Direct] = Direct, order: str = ""
) -> Entry:
    make = ordering or base.ordering
    assert make is not None
    construct: Callable[[Context], Ordering] = make

    def build(role: str, context: Context) -> Node:
        options = read_options(base, context.options)
        made = construct(replace(context, options=options.ordering))
        return LayeredNode(made, dissemination(replace(context, options=options.dissemination), made))

    options = flat_options(base)
    name = (ordering or dissemination).__name__
    return Entry(name, name, "wrong on purpose", order or base.order, base.worlds, options, build=build)  # type: ignore[arg-type]


SABOTEURS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        *(
            entry_of(vector_clock.ENTRY, ordering)
            for ordering in (
                Eager,
                ForgetsTransitive,
                OffByOne,
                WakesOne,
                LosesWhatWaited,
                ForgetsDelivered,
                ForgetsUnsent,
                NumbersAnew,
                AcknowledgesUnsafe,
                PersistsLate,
                NeverDeduplicates,
            )
        ),
        entry_of(fifo.ENTRY, OnlyFifo, order="causal"),
        entry_of(fifo.ENTRY, SkipsGaps),
        *(
            entry_of(vector_clock.ENTRY, None, dissemination)
            for dissemination in (SendsBeforePersist, NeverRetransmits, NeverForgets, AcknowledgesFirst)
        ),
    )
}
