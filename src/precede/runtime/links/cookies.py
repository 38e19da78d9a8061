"""Cookies: under load, a handshake is answered only if its address has shown that it receives frames.

A cookie is a keyed hash of the address and the time; nothing is stored for it. So handshakes cost an attacker
with invented addresses more than they cost us.
"""

import hmac
import os
from hashlib import blake2b
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from precede.runtime.links.group_seal import GroupKeys
from precede.runtime.transports.transport import Where

COOKIE_BYTES: Final = 16
MOST_FAILURES_PER_S: Final = 20
VALID_S: Final = 120


class Cookies:
    """Decides when cookies are demanded, makes them and checks them."""

    def __init__(self) -> None:
        self._secret = os.urandom(32)
        self._second = 0
        self._failures = 0

    def count_failure(self, now: float) -> None:
        """Count a failed handshake: above a rate, the next ones need a cookie."""
        if self._second != int(now):
            self._second, self._failures = int(now), 0
        self._failures += 1

    def needed(self, now: float) -> bool:
        """Return whether a handshake needs a cookie now: too many have failed in this second."""
        return self._second == int(now) and self._failures >= MOST_FAILURES_PER_S

    def accepts(self, cookie: bytes, where: Where, now: float) -> bool:
        """Return whether a cookie was made for this address in this period of two minutes or the one before."""
        return any(hmac.compare_digest(cookie, self._make(where, at)) for at in (now, now - VALID_S))

    def seal(self, keys: GroupKeys, where: Where, bound_to: bytes, now: float) -> bytes:
        """Make a cookie for an address: a nonce, and the cookie sealed for members. `bound_to`: a handshake."""
        nonce = os.urandom(16)
        return nonce + _box(keys, nonce).encrypt(bytes(12), self._make(where, now), bound_to)

    def _make(self, where: Where, now: float) -> bytes:
        text = repr((where, int(now) // VALID_S)).encode()
        return blake2b(text, key=self._secret, digest_size=COOKIE_BYTES).digest()


def open_cookie(keys: GroupKeys, sealed: bytes, bound_to: bytes) -> bytes | None:
    """Open the cookie in an answer that demands one; None if it is not authentic."""
    try:
        return _box(keys, sealed[:16]).decrypt(bytes(12), sealed[16:], bound_to)
    except InvalidTag:
        return None


def _box(keys: GroupKeys, nonce: bytes) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(blake2b(nonce, key=keys.cookie, digest_size=32).digest())
