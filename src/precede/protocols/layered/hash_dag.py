"""`hash_dag`: what practice uses today (Git, Matrix, Merkle-CRDTs): a message names the hashes of its sender's
heads and is delivered when all its parents are.

It needs no clock, no group and no numbers, and its links are unforgeable. It has no notion of giving up: what
depends on a lost message waits for ever, with all that depends on it, and nobody can say how long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Annotated, ClassVar, Final, TypeAlias

from precede.core.effects import Deliver, Discard, Effect, Effects, Persist
from precede.core.errors import Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message
from precede.core.node import Context, Saved, Waiting, restore
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.own_messages import OwnMessages, held_key, no_destinations, restored_held
from precede.protocols.options import Durable, duration
from precede.protocols.registry import Entry

Digest: TypeAlias = bytes
Parents: TypeAlias = tuple[Digest, ...]

DIGEST_BYTES: Final = 20


class HashDagOptions(Durable, frozen=True, kw_only=True):
    """The options of `hash_dag`."""

    lifetime: Annotated[
        Duration | None, duration("lifetime of a message that names none; none: for ever. A wait has no end")
    ] = None


class HashDag(Ordering):
    """`_heads` are the delivered messages nothing delivered points to; `_delivered` grows for ever."""

    draining: ClassVar[tuple[str, ...]] = ("pending",)
    stamp_type = Parents

    def __init__(self, context: Context[HashDagOptions]) -> None:
        self._own = OwnMessages(context)
        self._durable: bool = context.options.durable
        self._lifetime: Duration | None = context.options.lifetime
        self._heads: dict[Digest, None] = {}
        self._delivered: dict[Digest, MessageId] = {}
        self._ids: dict[MessageId, None] = {}
        self._pending: dict[MessageId, tuple[Envelope, Digest, Instant]] = {}
        self._filed: dict[Digest, list[MessageId]] = {}

    def start(self, now: Instant, saved: Saved) -> Effects:
        self._restore_graph(saved)
        effects = self._own.start(saved, Parents)
        for envelope in self._own.kept:
            if envelope.message.id not in self._ids:
                effects.append(self._enter(envelope, digest_of(envelope)))
        for envelope in restored_held(saved, Parents):
            if envelope.message.id in self._ids:
                effects.append(Persist(held_key(envelope.message.id), None))
            else:
                self.arrive((envelope,), now, effects)
        return effects

    def _restore_graph(self, saved: Saved) -> None:
        found = [
            restore({key: value}, key, tuple[MessageId, Digest, Parents], (MessageId(0, 0, 0), b"", ()))
            for key, value in saved.items()
            if type(key) is tuple and key[0] == "done"
        ]
        named = {parent: None for _, _, parents in found for parent in parents}
        for id, digest, _ in sorted(found):
            self._delivered[digest] = id
            self._ids[id] = None
            if digest not in named:
                self._heads[digest] = None

    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        no_destinations(to, "hash_dag")
        lives = self._lifetime if lifetime is None else lifetime
        if lives is not None and lives <= 0:
            raise Refused(f"a message must live for a while, not {lives} microseconds")
        parents: Parents = tuple(self._heads)
        deadline = None if lives is None else now + lives
        message = Message(self._own.next_id(), payload)
        size = DIGEST_BYTES * len(parents)
        envelope = Envelope(message, parents, deadline, None, size, len(parents), now)
        effects = self._own.accept(envelope)
        saved = self._enter(envelope, digest_of(envelope))
        if self._durable:
            effects.insert(1, saved)
        return envelope, effects

    def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
        for envelope in envelopes:
            id = envelope.message.id
            if id in self._ids:
                effects.append(Discard(envelope.message, "duplicate"))
                continue
            digest = digest_of(envelope)
            lacked = self._lacked(envelope)
            if lacked is None:
                self._deliver(envelope, digest, effects)
                continue
            self._pending[id] = (envelope, digest, now)
            self._filed.setdefault(lacked, []).append(id)
            if self._durable:
                effects.append(Persist(held_key(id), envelope))

    def _lacked(self, envelope: Envelope) -> Digest | None:
        """One parent that is not delivered yet, or None."""
        parents: Parents = envelope.stamp
        for parent in parents:
            if parent not in self._delivered:
                return parent
        return None

    def _deliver(self, envelope: Envelope, digest: Digest, effects: list[Effect]) -> None:
        """This message, and whoever waited for it, and so on."""
        ready = [(envelope, digest)]
        for envelope, digest in ready:  # noqa: PLR1704
            saved = self._enter(envelope, digest)
            if self._durable:
                effects.append(saved)
            effects.append(Deliver(envelope.message))
            if self._durable:
                effects.append(Persist(held_key(envelope.message.id), None))
            for id in self._filed.pop(digest, ()):
                waiting = self._pending[id]
                lacked = self._lacked(waiting[0])
                if lacked is None:
                    del self._pending[id]
                    ready.append(waiting[:2])
                else:
                    self._filed.setdefault(lacked, []).append(id)

    def _enter(self, envelope: Envelope, digest: Digest) -> Persist:
        """Into the graph; returns what makes it durable."""
        id = envelope.message.id
        for parent in envelope.stamp:
            self._heads.pop(parent, None)
        self._heads[digest] = None
        self._delivered[digest] = id
        self._ids[id] = None
        return Persist(("done", id.source, id.incarnation, id.number), (id, digest, envelope.stamp))

    def knows(self, id: MessageId) -> bool:
        return id in self._ids or id in self._pending

    def unfinished(self) -> Sequence[Envelope]:
        return self._own.unfinished()

    def waiting(self) -> Sequence[Waiting]:
        """A hash does not say which message it stands for until that message is here."""
        known = {digest: id for id, (_, digest, _) in self._pending.items()}
        return [
            Waiting(id, tuple(known[parent] for parent in envelope.stamp if parent in known), since)
            for id, (envelope, _, since) in self._pending.items()
        ]

    def sizes(self) -> Mapping[str, int]:
        return {"heads": len(self._heads), "graph": len(self._delivered), "pending": len(self._pending)}


def digest_of(envelope: Envelope) -> Digest:
    """Of the id, the content and the parents."""
    id = envelope.message.id
    head = repr((id.source, id.incarnation, id.number, len(envelope.stamp))).encode()
    state = blake2b(head, digest_size=DIGEST_BYTES)
    for parent in envelope.stamp:
        state.update(parent)
    state.update(envelope.message.payload)
    return state.digest()


ENTRY: Final = Entry(
    name="hash_dag",
    title="causal order from hashes of the sender's heads: waits for ever for what was lost",
    paper="(practice today: Git, Matrix, Merkle-CRDTs; a rival of guidec2021)",
    order="causal",
    worlds=("contacts", "point_to_point", "flood"),
    options=HashDagOptions,
    ordering=HashDag,
)
