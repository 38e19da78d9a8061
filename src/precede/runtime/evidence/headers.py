"""What a signature covers: a header with the message's id and the hashes of the rest.

A header also has a *nonce* and the hash of the author's previous header, its *link*. The nonce is four random
bytes, drawn when a stream begins: an author that lost its store begins a stream with another nonce, even if it
draws an incarnation that it had before. Nonce and link travel behind the signature, so every message can be
checked alone.

The hash `body` covers what is the same in every copy of a message: its payload and, where all destinations get
the same, its deadline and order data. `rest` covers what an honest author may change when it sends the message
again, as DRIFT does with timestamps, or what differs between destinations.
"""

from hashlib import blake2b
from typing import Final

import msgspec

from precede.core.identity import Incarnation, MessageNumber, NodeId
from precede.core.messages import Written
from precede.runtime.evidence.signatures import SIGNATURE_BYTES

NONCE_BYTES: Final = 4
LINK_BYTES: Final = 16
_TRAILER_BYTES: Final = (NONCE_BYTES, NONCE_BYTES + LINK_BYTES)
_PURPOSE: Final = b"precede message 2"
_encode: Final = msgspec.msgpack.Encoder().encode


class Header(msgspec.Struct, frozen=True, gc=False):
    """What an author signs. `previous` is the link of its previous message, empty in the first of a stream."""

    source: NodeId
    incarnation: Incarnation
    number: MessageNumber
    nonce: bytes
    previous: bytes
    body: bytes
    rest: bytes

    def signed_bytes(self, group: str) -> bytes:
        id = (self.source, self.incarnation, self.number)
        return _encode((_PURPOSE, group, id, self.nonce, self.previous, self.body, self.rest))

    def link(self) -> bytes:
        """Return the hash by which the author's next message names this one. It does not cover `rest`."""
        id = (self.source, self.incarnation, self.number)
        content = _encode((id, self.nonce, self.previous, self.body))
        return blake2b(content, digest_size=LINK_BYTES).digest()


def header_of(item: Written, nonce: bytes, previous: bytes) -> Header:
    """Return the header of a message or, with a holder, of something that is signed without one."""
    message = item.message
    order = (item.destinations, item.deadline, item.order)
    if item.same_for_all:
        body, rest = _hash((message.payload, item.deadline, item.order)), b""
    else:
        body, rest = _hash((message.payload, None, None)), _hash(order)
    return Header(message.id.source, message.id.incarnation, message.id.number, nonce, previous, body, rest)


def split(signature: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Split what travels with a message into signature, nonce and link; None if it has another length."""
    if len(signature) - SIGNATURE_BYTES not in _TRAILER_BYTES:
        return None
    at = SIGNATURE_BYTES + NONCE_BYTES
    return signature[:SIGNATURE_BYTES], signature[SIGNATURE_BYTES:at], signature[at:]


def trailer_of(signature: bytes) -> bytes:
    """Return nonce and link of an own message, whether it is signed already or not; empty if it has none."""
    for size in (len(signature), len(signature) - SIGNATURE_BYTES):
        if size in _TRAILER_BYTES:
            return signature[-size:]
    return b""


def _hash(value: object) -> bytes:
    return blake2b(_encode(value), digest_size=32).digest()
