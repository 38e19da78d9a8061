"""Repeatable randomness for the links, and real ciphers whose keys can be compared.

Each member draws from a sequence of its own: the n-th draw of a member in a boot is always the same. So equal
histories of a member give equal keys, indices and frames, and a name never means two things.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from precede.runtime.links import cookies, group_seal, noise, paths, session_table


class Box:
    """ChaCha20Poly1305 that shows its key. A copy of it is itself."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self._real = ChaCha20Poly1305(key)
        self.encrypt = self._real.encrypt
        self.decrypt = self._real.decrypt

    def __deepcopy__(self, memo: Any) -> Box:
        return self


class Secret:
    """An X25519 key made from a known seed. A copy of it is itself."""

    def __init__(self, seed: bytes) -> None:
        self.seed = seed

    def public_key(self) -> X25519PublicKey:
        return _private(self.seed).public_key()

    def exchange(self, public: X25519PublicKey) -> bytes:
        return _exchanged(self.seed, public.public_bytes_raw())

    def __deepcopy__(self, memo: Any) -> Secret:
        return self


class Mask:
    """A link key of an impostor: it shows the public key of its victim and has a secret of its own."""

    def __init__(self, victim: X25519PublicKey, secret: X25519PrivateKey) -> None:
        self._victim = victim
        self.exchange = secret.exchange

    def public_key(self) -> X25519PublicKey:
        return self._victim


@lru_cache(None)
def _private(seed: bytes) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(seed)


@lru_cache(None)
def _exchanged(seed: bytes, public: bytes) -> bytes:
    return _private(seed).exchange(X25519PublicKey.from_public_bytes(public))


class Draws:
    """The draws of one member in one boot; `count` have been made."""

    def __init__(self, member: int, boot: int) -> None:
        self._name = f"{member} {boot}"
        self.count = 0

    def draw(self, size: int) -> bytes:
        self.count += 1
        return blake2b(f"{self._name} {self.count}".encode(), digest_size=size).digest()


class Randomness:
    """The source of all draws; `current` is whose turn it is."""

    def __init__(self) -> None:
        self.current = Draws(-1, 0)

    def urandom(self, size: int) -> bytes:
        return self.current.draw(size)

    def generate(self) -> Secret:
        return Secret(self.current.draw(32))

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Let the links draw from here."""
        with ExitStack() as stack:
            for module in (session_table, paths, cookies, group_seal):
                stack.enter_context(patch.object(module, "os", SimpleNamespace(urandom=self.urandom)))
            stack.enter_context(patch.object(noise, "ChaCha20Poly1305", Box))
            stack.enter_context(
                patch.object(noise, "X25519PrivateKey", SimpleNamespace(generate=self.generate))
            )
            yield
