"""`unordered`: an ordering that delivers each message once, on arrival, as most mesh networks do today."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from precede.core.effects import Deliver, Effect, Effects, Persist
from precede.core.errors import Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message
from precede.core.node import Context, Saved
from precede.core.peaks import Sizes
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.ordering import OneByOneOrdering
from precede.protocols.layered.own_messages import OwnMessages, deadline_after
from precede.protocols.layered.saved_state import saved_under
from precede.protocols.options import Durable, duration
from precede.protocols.registry import Entry

MOST_BEYOND: Final = 4_096
"""How many deliveries beyond a gap in the numbers of a stream are remembered one by one.

With more, the lowest gap is closed: what is missing there counts as known and is not delivered any more. Only a
source that lies, or one whose message is lost for good, leaves a gap open for so long.
"""


class UnorderedOptions(Durable, frozen=True, kw_only=True):
    """The options of `unordered`."""

    lifetime: Annotated[Duration | None, duration("lifetime of a message that names none; none: for ever")] = (
        None
    )


class Unordered(OneByOneOrdering):
    """Remembers its deliveries per stream: a contiguous prefix of numbers, and the numbers beyond it."""

    stamp_type = None
    renewable = True

    def __init__(self, context: Context[UnorderedOptions]) -> None:
        self._own = OwnMessages(context)
        self._durable: bool = context.options.durable
        self._lifetime: Duration | None = context.options.lifetime
        self._prefix: dict[tuple[NodeId, int], int] = {}
        self._beyond: dict[tuple[NodeId, int], dict[int, None]] = {}
        self._sizes = Sizes("delivered_entries")

    def start(self, now: Instant, saved: Saved) -> Effects:
        for key, value in saved_under(saved, "done"):
            stream = (int(key[1]), int(key[2]))
            self._prefix[stream] = value[0]
            self._beyond[stream] = dict.fromkeys(value[1:])
        effects = self._own.start(saved, None)
        for stream, number in self._own.earlier.items():
            self._prefix[stream] = max(number, self._prefix.get(stream, 0))
            beyond = self._beyond.get(stream, {})
            self._beyond[stream] = {each: None for each in beyond if each > self._prefix[stream]}
        return effects

    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        if to is not None and not to:
            raise Refused("the destination set is empty: no node would receive the message")
        deadline = deadline_after(self._lifetime if lifetime is None else lifetime, now)
        message = Message(self._own.next_id(), payload)
        envelope = Envelope(message, None, deadline, None if to is None else tuple(to), 0, 0, now)
        return envelope, self._own.accept(envelope)

    def take(self, envelope: Envelope, deliver: Deliver, now: Instant, effects: list[Effect]) -> None:
        id = deliver.message.id
        self._remember(id)
        if self._durable:
            stream = (id.source, id.incarnation)
            effects.append(Persist(("done", *stream), [self._prefix[stream], *self._beyond[stream]]))
        effects.append(deliver)

    def _remember(self, id: MessageId) -> None:
        """Record a delivery: extend the contiguous prefix of its stream, or note the number as beyond it."""
        stream = (id.source, id.incarnation)
        prefix = self._prefix.setdefault(stream, 0)
        beyond = self._beyond.setdefault(stream, {})
        if id.number != prefix + 1:
            beyond[id.number] = None
            if len(beyond) <= MOST_BEYOND:
                return
            prefix = min(beyond)
            del beyond[prefix]
        else:
            prefix += 1
        while prefix + 1 in beyond:
            prefix += 1
            del beyond[prefix]
        self._prefix[stream] = prefix

    def predecessors(self, id: MessageId, stamp: Any) -> tuple[MessageId, ...]:
        return ()

    def knows(self, id: MessageId) -> bool:
        if self._own.is_own(id):
            return id.number <= self._own.number
        stream = (id.source, id.incarnation)
        return id.number <= self._prefix.get(stream, 0) or id.number in self._beyond.get(stream, {})

    def unfinished(self) -> Sequence[Envelope]:
        return self._own.unfinished()

    def sizes(self) -> Mapping[str, int]:
        return self.counted_sizes().mapping()

    def counted_sizes(self) -> Sizes:
        return self._sizes.set(len(self._prefix) + sum(map(len, self._beyond.values())))


ENTRY: Final = Entry(
    name="unordered",
    title="no order: delivery on arrival",
    paper="(what most meshes do today)",
    order="none",
    worlds=("point_to_point", "contacts", "flood"),
    options=UnorderedOptions,
    ordering=Unordered,
)
