"""Signatures: each source signs its messages, and every member checks them, through any number of relays.

An Ed25519 signature covers a header (`runtime/evidence/headers.py`): the group, the message's id, the author's
previous message, and hashes of payload, destinations, deadline and order data (a barrier, a vector):
`Packet.written` lists these for each kind of packet. Data that relays add (DRIFT's entries, a station's
numbers, summaries) is not signed; every holder of the group key is trusted with it. Each member has a roster
with the public key of each name. There is no trust on first use.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from precede.core.effects import Accept, Effects
from precede.core.errors import BadInput
from precede.core.identity import MessageId, NodeId
from precede.core.messages import Packet, Written
from precede.runtime.evidence.chain import ChainStore, OwnChain
from precede.runtime.evidence.headers import NONCE_BYTES, Header, header_of, split
from precede.runtime.evidence.history import Contradiction, History
from precede.runtime.evidence.proofs import SignedHeader
from precede.runtime.evidence.signatures import PUBLIC_BYTES, SEED_BYTES, SigningKey, is_signed
from precede.runtime.no_store import NoStore

_MOST_REMEMBERED: Final = 1024

OnContradiction: TypeAlias = Callable[[bytes, Contradiction], None]
"""A function that is called with an author's public key and two of its headers that contradict each other."""


class Retired(NamedTuple):
    """A key that signs no more: its messages in one incarnation of a node count up to a number."""

    node: NodeId
    public: bytes
    incarnation: int
    last_number: int


class Authors:
    """Signs this member's messages and checks the signatures of others.

    `identity` is this member's secret seed, `roster` the public key of each node. The latest signatures are
    cached by header, so a message is signed once and checked once however often it is relayed.
    """

    def __init__(self, group: str, me: NodeId, identity: bytes, roster: Mapping[NodeId, bytes]) -> None:
        if len(identity) != SEED_BYTES or any(len(public) != PUBLIC_BYTES for public in roster.values()):
            raise BadInput(f"identity, roster: each key has {SEED_BYTES} bytes")
        self._group = group
        self._me = me
        self._key = SigningKey(identity)
        self._signed: OrderedDict[bytes, bytes] = OrderedDict()
        self._checked: OrderedDict[bytes, bytes] = OrderedDict()
        self._chain = OwnChain(NoStore())
        self._history = History()
        self.on_contradiction: OnContradiction = lambda public, contradiction: None
        self.replace(roster)

    def continue_chain(self, store: ChainStore) -> None:
        """Continue the chain of hashes over own messages from the last one that the store knows."""
        self._chain = OwnChain(store)

    def replace(self, roster: Mapping[NodeId, bytes], retired: Sequence[Retired] = ()) -> None:
        """Accept the signatures of these keys only, and of retired keys for what they signed before.

        Raise BadInput if the roster has not this member's own key.
        """
        if roster.get(self._me) != self._key.public:
            has = "another key" if self._me in roster else "no key"
            raise BadInput(f"roster: has {has} for this member")
        self._public_keys = dict(roster)
        self._retired = tuple(retired)
        self._checked.clear()

    def accept(self, effects: Effects) -> None:
        """Add the hash of the previous message to each own message that these effects accept."""
        for effect in effects:
            if type(effect) is Accept and effect.message.id.source == self._me:
                content = effect.content
                self._chain.add(
                    effect.message, Written(effect.message) if content is None else content.written()
                )

    def sign(self, packet: Packet) -> None:
        """Put this member's signature into those messages of a packet that are its own."""
        for item in packet.written():
            if item.message.id.source == self._me:
                holder = item.message if item.holder is None else item.holder
                signature = self._signature(item)
                if holder.signature != signature:
                    # Signing is deterministic, and no other node has seen the message yet.
                    msgspec.structs.force_setattr(holder, "signature", signature)

    def sign_bytes(self, content: bytes) -> bytes:
        """Return this member's signature over content that is no message."""
        return self._key.sign(content)

    def is_signed_by(self, node: NodeId, signature: bytes, content: bytes) -> bool:
        """Has the member that the roster names for a node signed content that is no message?"""
        public = self._public_keys.get(node)
        return public is not None and is_signed(public, signature, content)

    def check(self, items: list[Written]) -> str | None:
        """Return why a message is not accepted (`unsigned`, `unknown_author`, `forged`), or None if all are."""
        for item in items:
            carried = (item.message if item.holder is None else item.holder).signature
            if not carried:
                return "unsigned"
            keys = self._keys_for(item.message.id)
            if not keys:
                return "unknown_author"
            parts = (carried, b"", b"") if item.holder is not None else split(carried)
            if parts is None:
                return "forged"
            signature, nonce, previous = parts
            header = header_of(item, nonce, previous)
            content = header.signed_bytes(self._group)
            if self._checked.get(content) == signature:
                continue
            public = next((key for key in keys if is_signed(key, signature, content)), None)
            if public is None:
                return "forged"
            _remember(self._checked, content, signature)
            if item.holder is None:
                self._note(public, header, signature)
        return None

    def _note(self, public: bytes, header: Header, signature: bytes) -> None:
        contradiction = self._history.note(public, SignedHeader(header, signature))
        if contradiction is not None:
            self.on_contradiction(public, contradiction)

    def _keys_for(self, id: MessageId) -> list[bytes]:
        """Return the keys that may have signed a message with this id."""
        current = self._public_keys.get(id.source)
        keys = [] if current is None else [current]
        return keys + [
            each.public
            for each in self._retired
            if each.node == id.source and each.incarnation == id.incarnation and id.number <= each.last_number
        ]

    def _signature(self, item: Written) -> bytes:
        """Return what travels with an own message: its signature, its nonce and its link."""
        trailer = b"" if item.holder is not None else self._chain.trailer_of(item.message)
        header = header_of(item, trailer[:NONCE_BYTES], trailer[NONCE_BYTES:])
        content = header.signed_bytes(self._group)
        signature = self._signed.get(content)
        if signature is None:
            signature = self._key.sign(content)
            _remember(self._signed, content, signature)
            if item.holder is None:
                self._note(self._key.public, header, signature)
        return signature + trailer


def public_of(identity: bytes) -> bytes:
    """Return the public key of a secret seed. Raise BadInput if the seed has another length."""
    if len(identity) != SEED_BYTES:
        raise BadInput(f"identity: expected {SEED_BYTES} secret bytes, got {len(identity)}")
    return SigningKey(identity).public


def _remember(cache: OrderedDict[bytes, bytes], content: bytes, signature: bytes) -> None:
    cache[content] = signature
    if len(cache) > _MOST_REMEMBERED:
        cache.popitem(last=False)
