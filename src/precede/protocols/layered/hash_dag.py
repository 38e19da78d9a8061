"""`hash_dag`: causal order as Git, Matrix and Merkle-CRDTs keep it.

A message names the hashes of its sender's heads, the delivered messages that no delivered message names. It is
delivered after all these parents. It needs no clock, no group and no numbers, and nobody can forge a link. It
never gives up: a message that depends on a lost one waits for ever, and so does everything that depends on it.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Annotated, ClassVar, Final, TypeAlias

import msgspec

from precede.core.effects import Discard, Effect, Effects, Persist
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message
from precede.core.node import Context, Saved, Waiting
from precede.core.peaks import Sizes
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.held_messages import HeldMessages
from precede.protocols.layered.ordering import BatchOrdering
from precede.protocols.layered.own_messages import OwnMessages, deadline_after, refuse_destinations
from precede.protocols.layered.parsed_envelopes import ParsedEnvelope
from precede.protocols.layered.saved_state import saved_under
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


class HashDag(BatchOrdering):
    """Keeps the graph of delivered messages, which grows for ever, and its heads.

    `_waiting_for` is an index of the waiting messages by one parent that each of them lacks.
    """

    draining: ClassVar[tuple[str, ...]] = ("pending",)
    stamp_type = Parents

    def __init__(self, context: Context[HashDagOptions]) -> None:
        self._own = OwnMessages(context)
        self._durable: bool = context.options.durable
        self._lifetime: Duration | None = context.options.lifetime
        self._held = HeldMessages(self._durable)
        self._heads: dict[Digest, None] = {}
        self._delivered: dict[Digest, MessageId] = {}
        self._ids: dict[MessageId, None] = {}
        self._pending: dict[MessageId, tuple[ParsedEnvelope, Instant]] = {}
        self._waiting_for: dict[Digest, list[MessageId]] = {}
        self._sizes = Sizes("heads", "graph", "pending")

    def start(self, now: Instant, saved: Saved) -> Effects:
        self._restore_graph(saved)
        effects = self._own.start(saved, Parents)
        for envelope in self._own.kept:
            if envelope.message.id not in self._ids:
                id, parents, digest = envelope.message.id, envelope.stamp, digest_of(envelope)
                self._enter(id, parents, digest)
                effects.append(_done(id, parents, digest))
        for envelope in self._held.resume(saved, Parents, self.knows, effects):
            self.arrive((envelope,), now, effects)
        return effects

    def _restore_graph(self, saved: Saved) -> None:
        """Rebuild the graph from its persisted messages: the heads are those that are no parent."""
        deliveries = [
            msgspec.convert(value, tuple[MessageId, Digest, Parents]) for _, value in saved_under(saved, "done")
        ]
        parents_of_others = {parent: None for _, _, parents in deliveries for parent in parents}
        for id, digest, _ in sorted(deliveries):
            self._delivered[digest] = id
            self._ids[id] = None
            if digest not in parents_of_others:
                self._heads[digest] = None

    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        refuse_destinations(to, "hash_dag")
        deadline = deadline_after(self._lifetime if lifetime is None else lifetime, now)
        parents: Parents = tuple(self._heads)
        message = Message(self._own.next_id(), payload)
        size = DIGEST_BYTES * len(parents)
        envelope = Envelope(message, parents, deadline, None, size, len(parents), now)
        effects = self._own.accept(envelope)
        digest = digest_of(envelope)
        self._enter(message.id, parents, digest)
        if self._durable:
            effects.insert(1, _done(message.id, parents, digest))
        self._wake(digest, effects)  # only a liar's message waits for one that did not exist
        return envelope, effects

    def take_parsed(self, contents: list[ParsedEnvelope], now: Instant, effects: list[Effect]) -> None:
        for parsed in contents:
            if parsed.id in self._ids:
                effects.append(Discard(parsed.message, "duplicate"))
                continue
            if parsed.digest is None:
                parsed.digest = digest_of(parsed.envelope)
            lacked = self._lacked(parsed)
            if lacked is None:
                self._deliver(parsed, effects)
                self._wake(parsed.digest, effects)
                continue
            self._pending[parsed.id] = (parsed, now)
            self._waiting_for.setdefault(lacked, []).append(parsed.id)
            self._held.hold(parsed.envelope, effects)

    def _lacked(self, parsed: ParsedEnvelope) -> Digest | None:
        """Return one parent of a message that is not delivered yet, or None if there is none."""
        parents: Parents = parsed.stamp
        for parent in parents:
            if parent not in self._delivered:
                return parent
        return None

    def _deliver(self, parsed: ParsedEnvelope, effects: list[Effect]) -> None:
        self._enter(parsed.id, parsed.stamp, parsed.digest)
        if self._durable:
            effects.append(_done(parsed.id, parsed.stamp, parsed.digest))
        effects.append(parsed.deliver)
        self._held.release(parsed.id, effects)

    def _wake(self, digest: Digest, effects: list[Effect]) -> None:
        """Deliver the messages that waited for this one, then those that waited for these."""
        delivered = [digest]
        for parent in delivered:
            for id in self._waiting_for.pop(parent, ()):
                parsed, _ = self._pending[id]
                lacked = self._lacked(parsed)
                if lacked is not None:
                    self._waiting_for.setdefault(lacked, []).append(id)
                    continue
                del self._pending[id]
                self._deliver(parsed, effects)
                delivered.append(parsed.digest)

    def _enter(self, id: MessageId, parents: Parents, digest: Digest) -> None:
        """Add a message to the graph."""
        for parent in parents:
            self._heads.pop(parent, None)
        self._heads[digest] = None
        self._delivered[digest] = id
        self._ids[id] = None

    def knows(self, id: MessageId) -> bool:
        return id in self._ids or id in self._pending

    def unfinished(self) -> Sequence[Envelope]:
        return self._own.unfinished()

    def waiting(self) -> Sequence[Waiting]:
        """List the waiting messages. A missing parent is named only if it waits too: its hash hides its id."""
        pending_ids = {parsed.digest: id for id, (parsed, _) in self._pending.items()}
        return [
            Waiting(id, tuple(pending_ids[parent] for parent in parsed.stamp if parent in pending_ids), since)
            for id, (parsed, since) in self._pending.items()
        ]

    def sizes(self) -> Mapping[str, int]:
        return self.counted_sizes().mapping()

    def counted_sizes(self) -> Sizes:
        return self._sizes.set(len(self._heads), len(self._delivered), len(self._pending))


def _done(id: MessageId, parents: Parents, digest: Digest) -> Persist:
    """The effect that persists a message of the graph."""
    return Persist(("done", id.source, id.incarnation, id.number), (id, digest, parents))


def digest_of(envelope: Envelope) -> Digest:
    """Return the hash of a message, over its id, its payload and its parents."""
    id = envelope.message.id
    head = repr((id.source, id.incarnation, id.number, len(envelope.stamp))).encode()
    state = blake2b(head, digest_size=DIGEST_BYTES)
    for parent in envelope.stamp:
        state.update(parent)
    state.update(envelope.message.payload)
    return state.digest()


ENTRY: Final = Entry(
    name="hash_dag",
    title="causal order from hashes of the sender's heads: waits for ever for a lost message",
    paper="(practice today: Git, Matrix, Merkle-CRDTs; a rival of guidec2021)",
    order="causal",
    worlds=("contacts", "point_to_point", "flood"),
    options=HashDagOptions,
    ordering=HashDag,
)
