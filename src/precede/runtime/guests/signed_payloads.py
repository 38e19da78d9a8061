"""Payloads that carry their author's signature, so that a relay of another protocol cannot forge an author."""

import time
from collections.abc import Mapping
from typing import Final

import msgspec

from precede.core.errors import BadInput, Refused
from precede.runtime.evidence.signatures import SigningKey, is_signed

_PURPOSE: Final = b"precede guest 1"
_LARGEST_NUMBER: Final = 1 << 53
MOST_SIGNED_BYTES: Final = 900_000
"""The most bytes of a signed payload. A gateway wraps it once more, and that must fit into a packet too."""


class _Signed(msgspec.Struct, array_like=True, frozen=True):
    author: str
    number: int
    content: bytes
    signature: bytes


_decoder: Final = msgspec.msgpack.Decoder(_Signed)


class SignedPayloads:
    """Signs contents as one member, and opens those of everybody in the roster, each once.

    Use one for everything that is broadcast in a group with guests. `number` in a payload is the author's clock
    in microseconds and grows with every payload; a payload with a number that is not larger than the author's
    last one is a repetition. Feed `open` with the group's history after a restart, so that it knows these.

    >>> import precede
    >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    >>> public = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key().public_bytes_raw()
    >>> ana = precede.SignedPayloads("picnic", "ana", bytes(32), {"ana": public})
    >>> payload = ana.sign(b"who brings bread?")
    >>> print(ana.open(payload), ana.open(payload), ana.open(b"forged"))
    ('ana', b'who brings bread?') None None
    """

    def __init__(self, group: str, name: str, identity: bytes, roster: Mapping[str, bytes]) -> None:
        self._group = group
        self._name = name
        self._key = SigningKey(identity)
        self._roster = dict(roster)
        if self._roster.get(name) != self._key.public:
            raise BadInput(f"roster: has not the key of {name}'s identity")
        self._last: dict[str, int] = {}
        self._written = 0

    def sign(self, content: bytes) -> bytes:
        """Return the payload to broadcast for some content. Raise Refused if it would be too large."""
        self._written = max(self._written + 1, self._last.get(self._name, 0) + 1, time.time_ns() // 1000)
        signature = self._key.sign(self._signed_bytes(self._name, self._written, content))
        payload = _PURPOSE + msgspec.msgpack.encode(_Signed(self._name, self._written, content, signature))
        if len(payload) > MOST_SIGNED_BYTES:
            size, most = len(payload), MOST_SIGNED_BYTES
            raise Refused(f"a signed payload of {size:,} bytes is too large for guests (at most {most:,})")
        return payload

    def open(self, payload: bytes) -> tuple[str, bytes] | None:
        """Return author and content of a payload; None if no member signed it, or if it is a repetition."""
        signed = self._read(payload)
        if signed is None or signed.number <= self._last.get(signed.author, 0):
            return None
        self._last[signed.author] = signed.number
        return signed.author, signed.content

    def read(self, payload: bytes) -> tuple[str, bytes] | None:
        """Return author and content of a payload, also of a repetition; None if no member signed it."""
        signed = self._read(payload)
        return None if signed is None else (signed.author, signed.content)

    def _read(self, payload: bytes) -> _Signed | None:
        if len(payload) > MOST_SIGNED_BYTES or not payload.startswith(_PURPOSE):
            return None
        try:
            signed = _decoder.decode(payload[len(_PURPOSE) :])
        except (msgspec.DecodeError, RecursionError):
            return None
        key = self._roster.get(signed.author)
        if key is None or not 0 < signed.number < _LARGEST_NUMBER:
            return None
        content = self._signed_bytes(signed.author, signed.number, signed.content)
        return signed if is_signed(key, signed.signature, content) else None

    def _signed_bytes(self, author: str, number: int, content: bytes) -> bytes:
        return msgspec.msgpack.encode((_PURPOSE, self._group, author, number, content))
