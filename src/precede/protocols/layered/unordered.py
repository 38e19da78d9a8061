"""`unordered`: delivery on arrival, each message once. What most meshes do today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from precede.core.effects import Deliver, Effect, Effects, Persist
from precede.core.errors import Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message
from precede.core.node import Context, Saved
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.own_messages import OwnMessages
from precede.protocols.options import Durable, duration
from precede.protocols.registry import Entry


class UnorderedOptions(Durable, frozen=True, kw_only=True):
    """The options of `unordered`."""

    lifetime: Annotated[Duration | None, duration("lifetime of a message that names none; none: for ever")] = (
        None
    )


class Unordered(Ordering):
    """Remembers what it delivered as a contiguous prefix per life of a source, and the exceptions."""

    def __init__(self, context: Context[UnorderedOptions]) -> None:
        self._own = OwnMessages(context)
        self._durable: bool = context.options.durable
        self._lifetime: Duration | None = context.options.lifetime
        self._prefix: dict[tuple[NodeId, int], int] = {}
        self._beyond: dict[tuple[NodeId, int], dict[int, None]] = {}

    def start(self, now: Instant, saved: Saved) -> Effects:
        for key, value in saved.items():
            if type(key) is tuple and key[0] == "done":
                life = (int(key[1]), int(key[2]))
                self._prefix[life] = value[0]
                self._beyond[life] = dict.fromkeys(value[1:])
        return self._own.start(saved, None)

    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        if to is not None and not to:
            raise Refused("an empty destination set: nobody would receive this")
        message = Message(self._own.next_id(), payload)
        lives = lifetime if lifetime is not None else self._lifetime
        deadline = None if lives is None else now + lives
        envelope = Envelope(message, None, deadline, None if to is None else tuple(to), 0, 0, now)
        return envelope, self._own.accept(envelope)

    def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
        for envelope in envelopes:
            id = envelope.message.id
            self._remember(id)
            if self._durable:
                life = (id.source, id.incarnation)
                effects.append(Persist(("done", *life), [self._prefix[life], *self._beyond[life]]))
            effects.append(Deliver(envelope.message))

    def _remember(self, id: MessageId) -> None:
        life = (id.source, id.incarnation)
        prefix = self._prefix.setdefault(life, 0)
        beyond = self._beyond.setdefault(life, {})
        if id.number != prefix + 1:
            beyond[id.number] = None
            return
        prefix += 1
        while prefix + 1 in beyond:
            prefix += 1
            del beyond[prefix]
        self._prefix[life] = prefix

    def knows(self, id: MessageId) -> bool:
        life = (id.source, id.incarnation)
        if life == (self._own.node, self._own.incarnation):
            return id.number <= self._own.number
        return id.number <= self._prefix.get(life, 0) or id.number in self._beyond.get(life, {})

    def unfinished(self) -> Sequence[Envelope]:
        return self._own.unfinished()

    def sizes(self) -> Mapping[str, int]:
        return {"delivered_entries": len(self._prefix) + sum(map(len, self._beyond.values()))}


ENTRY: Final = Entry(
    name="unordered",
    title="no order: delivery on arrival",
    paper="(what most meshes do today)",
    order="none",
    worlds=("point_to_point", "contacts", "flood"),
    options=UnorderedOptions,
    ordering=Unordered,
)
