"""Authorship: what a source wrote is signed by it and checked by everybody, through any number of relays.

A signature (Ed25519) covers the group, the message's id and payload, its destinations, its deadline and its
order data (a barrier, a vector): `Packet.written` says what that is for each kind of packet. What hops write
(DRIFT's entries, a station's numbers, summaries) is not covered: it is believed from whoever holds the group
key. Who may sign for a name stands in a roster that each member is given; nobody is believed at first sight.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.messages import Packet, Written

SEED_BYTES: Final = 32
PUBLIC_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
_PURPOSE: Final = b"precede message 1"
_MOST_REMEMBERED: Final = 1024


class Authors:
    """Signs what this member writes and checks what others wrote.

    `identity` is this member's secret seed, `roster` everybody's public key by node. Signatures made and
    checked lately are remembered by digest: a message costs one of each however often it is passed on.
    """

    def __init__(self, group: str, me: NodeId, identity: bytes, roster: Mapping[NodeId, bytes]) -> None:
        if len(identity) != SEED_BYTES or any(len(public) != PUBLIC_BYTES for public in roster.values()):
            raise BadInput(f"an identity and each key of a roster has {SEED_BYTES} bytes")
        self._group = group
        self._me = me
        self._encode = msgspec.msgpack.Encoder().encode
        self._secret = Ed25519PrivateKey.from_private_bytes(identity)
        self._known = {node: Ed25519PublicKey.from_public_bytes(public) for node, public in roster.items()}
        self._signed: OrderedDict[bytes, bytes] = OrderedDict()
        self._checked: OrderedDict[bytes, bytes] = OrderedDict()
        if roster.get(me) != public_of(identity):
            raise BadInput("the roster has another key for this member than its identity")

    def sign(self, packet: Packet) -> None:
        """Put this member's signature into its own messages; others' keep theirs."""
        for item in packet.written():
            if item.message.id.source == self._me:
                signature = self._signature(item)
                if item.message.signature != signature:
                    # The same bytes every time, and set before anybody sees the message outside this node.
                    msgspec.structs.force_setattr(item.message, "signature", signature)

    def check(self, items: list[Written]) -> str | None:
        """Why this cannot be believed (`unsigned`, `unknown_author`, `forged`), or None."""
        for item in items:
            signature = item.message.signature
            if not signature:
                return "unsigned"
            public = self._known.get(item.message.id.source)
            if public is None:
                return "unknown_author"
            content = self._content(item)
            digest = blake2b(content, digest_size=16).digest()
            if self._checked.get(digest) == signature:
                continue
            try:
                public.verify(signature, content)
            except InvalidSignature:
                return "forged"
            _remember(self._checked, digest, signature)
        return None

    def _signature(self, item: Written) -> bytes:
        content = self._content(item)
        digest = blake2b(content, digest_size=16).digest()
        known = self._signed.get(digest)
        if known is None:
            known = self._secret.sign(content)
            _remember(self._signed, digest, known)
        return known

    def _content(self, item: Written) -> bytes:
        """The bytes that are signed. Maps are written in their source's order, which every relay keeps."""
        message = item.message
        return self._encode(
            (_PURPOSE, self._group, message.id, message.payload, item.destinations, item.deadline, item.order)
        )


def public_of(identity: bytes) -> bytes:
    """The public key of a secret seed."""
    if len(identity) != SEED_BYTES:
        raise BadInput(f"an identity has {SEED_BYTES} secret bytes, not {len(identity)}")
    return Ed25519PrivateKey.from_private_bytes(identity).public_key().public_bytes_raw()


def _remember(kept: OrderedDict[bytes, bytes], digest: bytes, signature: bytes) -> None:
    kept[digest] = signature
    if len(kept) > _MOST_REMEMBERED:
        kept.popitem(last=False)
