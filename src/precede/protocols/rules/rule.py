"""`Rule`: an ordering that shows each message in a list, sorted by a number that the message carries.

The list can be shown before everything that belongs into it has come. A message that comes later and sorts
earlier is then inserted above others that the user has seen: a revision (docs/concepts/display.md).
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final

from precede.core.effects import Deliver, Effect, Effects, Key, Observe, Persist, SetTimer
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message
from precede.core.node import Context, Saved, Waiting
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.held_messages import HeldMessages
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.own_messages import OwnMessages, deadline_after, refuse_destinations
from precede.protocols.layered.saved_state import saved_under
from precede.protocols.options import Durable, duration
from precede.protocols.rules.screen import Screen

ABOVE: Final = "above"
"""The name of the observation that the next message is shown directly above the observed one."""
NUMBER_BYTES: Final = 8


class RuleOptions(Durable, frozen=True, kw_only=True):
    """The options of every rule that sorts."""

    lifetime: Annotated[Duration | None, duration("lifetime of a message that names none; none: for ever")] = (
        None
    )


class WaitingOptions(RuleOptions, frozen=True, kw_only=True):
    """The option of a rule that can wait for messages which belong above a received one."""

    wait: Annotated[
        Duration, duration("hold a received message so long, so that messages which belong above it come first")
    ] = 0


class Rule(Ordering):
    """Shows a message when it comes or, with the option `wait`, that much later, above what sorts later."""

    name: ClassVar[str]
    draining: ClassVar[tuple[str, ...]] = ("pending",)

    def __init__(self, context: Context[RuleOptions]) -> None:
        self._own = OwnMessages(context)
        self._durable: bool = context.options.durable
        self._lifetime: Duration | None = context.options.lifetime
        self._wait: Duration | None = getattr(context.options, "wait", None)
        self._held = HeldMessages(self._durable)
        self._screen = Screen()
        self._pending: dict[MessageId, tuple[Envelope, int, Instant]] = {}

    @abstractmethod
    def stamp_now(self, now: Instant) -> tuple[Any, int, int]:
        """Return the stamp of a new own message, its size in bytes and its number of entries."""

    @abstractmethod
    def number_of(self, envelope: Envelope, now: Instant) -> int:
        """Return the number by which this node sorts a message that it has now."""

    def start(self, now: Instant, saved: Saved) -> Effects:
        for key, number in saved_under(saved, "shown"):
            self._screen.insert(int(number), MessageId(int(key[1]), int(key[2]), int(key[3])))
        effects = self._own.start(saved, self.stamp_type)
        for envelope in self._own.kept:
            self._place_own(envelope, now, effects)
        for envelope in self._held.resume(saved, self.stamp_type, self.knows, effects):
            self.arrive((envelope,), now, effects)
        return effects

    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        refuse_destinations(to, self.name)
        deadline = deadline_after(self._lifetime if lifetime is None else lifetime, now)
        stamp, size, entries = self.stamp_now(now)
        message = Message(self._own.next_id(), payload)
        envelope = Envelope(message, stamp, deadline, None, size, entries, now)
        effects = self._own.accept(envelope)
        self._place_own(envelope, now, effects)
        return envelope, effects

    def _place_own(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        """Put an own message into the list. Its place is recorded before the step that delivers it."""
        number = self.number_of(envelope, now)
        for at, effect in enumerate(effects):
            if type(effect) is Deliver and effect.message.id == envelope.message.id:
                begin = at - 1 if type(effects[at - 1]) is Persist else at
                effects[begin:begin] = self._placed(envelope.message.id, number)
                return
        self._screen.insert(number, envelope.message.id)  # delivered before a restart

    def _placed(self, id: MessageId, number: int) -> list[Effect]:
        """Put a message into the list. Return the effects that record and persist its place."""
        below = self._screen.insert(number, id)
        effects: list[Effect] = [] if below is None else [Observe(ABOVE, Message(below, b""))]
        if self._durable:
            effects.append(Persist(("shown", id.source, id.incarnation, id.number), number))
        return effects

    def show(self, envelope: Envelope, number: int, effects: list[Effect]) -> None:
        """Show a received message."""
        effects += self._placed(envelope.message.id, number)
        effects.append(Deliver(envelope.message, envelope))

    def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
        for envelope in envelopes:
            number = self.number_of(envelope, now)
            if not self._wait:
                self.show(envelope, number, effects)
            else:
                self.hold(envelope, number, now, effects)

    def hold(self, envelope: Envelope, number: int, now: Instant, effects: list[Effect]) -> None:
        """Hold a received message back; with the option `wait` at most so long."""
        id = envelope.message.id
        self._pending[id] = (envelope, number, now)
        self._held.hold(envelope, effects)
        if self._wait is not None:
            effects.append(SetTimer(("show", id.source, id.incarnation, id.number), now + self._wait))

    def timer(self, key: Key, now: Instant, effects: list[Effect]) -> None:
        assert isinstance(key, tuple)
        id = MessageId(int(key[1]), int(key[2]), int(key[3]))
        if id in self._pending:
            self.expire(id, now, effects)

    def expire(self, id: MessageId, now: Instant, effects: list[Effect]) -> None:
        """Show a message that has waited long enough, after all waiting messages that sort before it."""
        last = (self._pending[id][1], id)
        for number, other in sorted((number, other) for other, (_, number, _) in self._pending.items()):
            if (number, other) <= last:
                envelope, _, _ = self._pending.pop(other)
                self.show(envelope, number, effects)
                self._held.release(other, effects)

    def knows(self, id: MessageId) -> bool:
        return id in self._screen or id in self._pending

    def unfinished(self) -> Sequence[Envelope]:
        return self._own.unfinished()

    def waits_for(self, envelope: Envelope) -> tuple[MessageId, ...]:
        """Return the messages that a held message waits for, if it names any."""
        return ()

    def waiting(self) -> Sequence[Waiting]:
        return [
            Waiting(id, self.waits_for(envelope), since, None if self._wait is None else since + self._wait)
            for id, (envelope, _, since) in self._pending.items()
        ]

    def sizes(self) -> Mapping[str, int]:
        return {"shown": len(self._screen), "pending": len(self._pending)}
