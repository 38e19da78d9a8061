"""Signatures: each source signs its messages, and every member checks them, through any number of relays.

An Ed25519 signature covers the group, the message's id and payload, its destinations, its deadline and its
order data (a barrier, a vector): `Packet.written` lists these for each kind of packet. Data that relays add
(DRIFT's entries, a station's numbers, summaries) is not signed; every holder of the group key is trusted with
it. Each member has a roster with the public key of each name. There is no trust on first use.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from precede.core.errors import BadInput
from precede.core.identity import MessageId, NodeId
from precede.core.messages import Packet, Written

SEED_BYTES: Final = 32
PUBLIC_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
_PURPOSE: Final = b"precede message 1"
_MOST_REMEMBERED: Final = 1024


class Retired(NamedTuple):
    """A key that signs no more: its messages in one incarnation of a node count up to a number."""

    node: NodeId
    public: bytes
    incarnation: int
    last_number: int


class Authors:
    """Signs this member's messages and checks the signatures of others.

    `identity` is this member's secret seed, `roster` the public key of each node. The latest signatures are
    cached by digest, so a message is signed once and checked once however often it is relayed.
    """

    def __init__(self, group: str, me: NodeId, identity: bytes, roster: Mapping[NodeId, bytes]) -> None:
        if len(identity) != SEED_BYTES or any(len(public) != PUBLIC_BYTES for public in roster.values()):
            raise BadInput(f"identity, roster: each key has {SEED_BYTES} bytes")
        self._group = group
        self._me = me
        self._encode = msgspec.msgpack.Encoder().encode
        self._secret = Ed25519PrivateKey.from_private_bytes(identity)
        self._signed: OrderedDict[bytes, bytes] = OrderedDict()
        self._checked: OrderedDict[bytes, bytes] = OrderedDict()
        self._public = public_of(identity)
        self.replace(roster)

    def replace(self, roster: Mapping[NodeId, bytes], retired: Sequence[Retired] = ()) -> None:
        """Accept the signatures of these keys only, and of retired keys for what they signed before.

        Raise BadInput if the roster has not this member's own key.
        """
        if roster.get(self._me) != self._public:
            has = "another key" if self._me in roster else "no key"
            raise BadInput(f"roster: has {has} for this member")
        self._public_keys = {
            node: Ed25519PublicKey.from_public_bytes(public) for node, public in roster.items()
        }
        self._retired = [(each, Ed25519PublicKey.from_public_bytes(each.public)) for each in retired]
        self._checked.clear()

    def sign(self, packet: Packet) -> None:
        """Put this member's signature into those messages of a packet that are its own."""
        for item in packet.written():
            if item.message.id.source == self._me:
                holder = item.message if item.holder is None else item.holder
                signature = self._signature(item)
                if holder.signature != signature:
                    # Signing is deterministic, and no other node has seen the message yet.
                    msgspec.structs.force_setattr(holder, "signature", signature)

    def check(self, items: list[Written]) -> str | None:
        """Check the signatures of messages.

        Return why one is not accepted (`unsigned`, `unknown_author`, `forged`), or None if all are.
        """
        for item in items:
            signature = (item.message if item.holder is None else item.holder).signature
            if not signature:
                return "unsigned"
            keys = self._keys_for(item.message.id)
            if not keys:
                return "unknown_author"
            content = self._content(item)
            digest = blake2b(content, digest_size=16).digest()
            if self._checked.get(digest) == signature:
                continue
            if not any(_is_signed(key, signature, content) for key in keys):
                return "forged"
            _remember(self._checked, digest, signature)
        return None

    def _keys_for(self, id: MessageId) -> list[Ed25519PublicKey]:
        """Return the keys that may have signed a message with this id."""
        current = self._public_keys.get(id.source)
        keys = [] if current is None else [current]
        return keys + [
            key
            for each, key in self._retired
            if each.node == id.source and each.incarnation == id.incarnation and id.number <= each.last_number
        ]

    def _signature(self, item: Written) -> bytes:
        content = self._content(item)
        digest = blake2b(content, digest_size=16).digest()
        signature = self._signed.get(digest)
        if signature is None:
            signature = self._secret.sign(content)
            _remember(self._signed, digest, signature)
        return signature

    def _content(self, item: Written) -> bytes:
        """Return the bytes that are signed. Maps keep the order in which the source wrote them."""
        message = item.message
        return self._encode(
            (_PURPOSE, self._group, message.id, message.payload, item.destinations, item.deadline, item.order)
        )


def _is_signed(key: Ed25519PublicKey, signature: bytes, content: bytes) -> bool:
    try:
        key.verify(signature, content)
    except InvalidSignature:
        return False
    return True


def public_of(identity: bytes) -> bytes:
    """Return the public key of a secret seed. Raise BadInput if the seed has another length."""
    if len(identity) != SEED_BYTES:
        raise BadInput(f"identity: expected {SEED_BYTES} secret bytes, got {len(identity)}")
    return Ed25519PrivateKey.from_private_bytes(identity).public_key().public_bytes_raw()


def _remember(cache: OrderedDict[bytes, bytes], digest: bytes, signature: bytes) -> None:
    """Add a signature to a cache, which drops its oldest entry when it is full."""
    cache[digest] = signature
    if len(cache) > _MOST_REMEMBERED:
        cache.popitem(last=False)
