"""The Noise protocol framework, revision 34, for one suite: 25519, ChaChaPoly, BLAKE2s.

A `Handshake` runs one handshake pattern and ends in two ciphers, one for each direction. Precede uses the
pattern `KKpsk0` (both sides know each other's static key; a pre-shared key is mixed in first); patterns are
data, so that the published test vectors of all patterns check the same code. Sections in the docstrings are
those of the Noise specification.
"""

import hashlib
import hmac
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

KEY_BYTES: Final = 32
TAG_BYTES: Final = 16
MOST_FRAMES: Final = (1 << 64) - 1
_SUITE: Final = "25519_ChaChaPoly_BLAKE2s"


class NoiseError(Exception):
    """A message of a handshake does not fit its pattern or was not made with the expected keys."""


class Pattern(NamedTuple):
    """A handshake pattern: the static keys known beforehand, and the tokens of each message (section 7).

    The initiator writes the first message, then the two sides take turns. A token is `e`, `s`, `ee`, `es`,
    `se`, `ss` or `psk`.
    """

    name: str
    initiator_known: bool
    responder_known: bool
    messages: tuple[tuple[str, ...], ...]


KKPSK0: Final = Pattern("KKpsk0", True, True, (("psk", "e", "es", "ss"), ("e", "ee", "se")))


class Cipher:
    """One direction of a session: a key and a counter for nonces (CipherState, section 5.1)."""

    __slots__ = ("_aead", "counter")

    def __init__(self, key: bytes | None) -> None:
        self._aead = None if key is None else ChaCha20Poly1305(key)
        self.counter = 0

    def encrypt(self, data: bytes, header: bytes = b"") -> bytes:
        """Encrypt `data`, authenticate `header` with it, advance the counter. Without a key, return `data`."""
        if self._aead is None:
            return data
        if self.counter >= MOST_FRAMES:
            raise NoiseError("the counter of this key is used up")
        sealed = self._aead.encrypt(_nonce(self.counter), data, header)
        self.counter += 1
        return sealed

    def decrypt(self, sealed: bytes, header: bytes = b"") -> bytes:
        """Open the next message in order. Raise NoiseError, and keep the counter, if it is not authentic."""
        if self._aead is None:
            return sealed
        data = self.decrypt_at(self.counter, sealed, header)
        if data is None:
            raise NoiseError("a message was not sealed with the expected key")
        self.counter += 1
        return data

    def decrypt_at(self, counter: int, sealed: bytes, header: bytes = b"") -> bytes | None:
        """Open a message by its counter, for transports that reorder; None if it is not authentic."""
        assert self._aead is not None
        try:
            return self._aead.decrypt(_nonce(counter), sealed, header)
        except InvalidTag:
            return None


class Handshake:
    """One side of a handshake (HandshakeState and SymmetricState, sections 5.2 and 5.3).

    `write` and `read` alternate by the pattern; when `finished` is true, `split` returns the ciphers. A failed
    `read` leaves the state unchanged, so that a forged message cannot spoil a handshake under way.
    """

    def __init__(
        self,
        pattern: Pattern,
        initiator: bool,
        prologue: bytes,
        *,
        static: X25519PrivateKey | None = None,
        remote_static: bytes | None = None,
        psk: bytes | None = None,
        ephemeral: X25519PrivateKey | None = None,
    ) -> None:
        self._pattern = pattern
        self._initiator = initiator
        self._static = static
        self._ephemeral = ephemeral
        self._remote_static = remote_static
        self._remote_ephemeral: bytes | None = None
        self._psk = psk
        self._place = 0
        name = f"Noise_{pattern.name}_{_SUITE}".encode()
        self._hash = name.ljust(KEY_BYTES, b"\0") if len(name) <= KEY_BYTES else _digest(name)
        self._chaining_key = self._hash
        self._cipher = Cipher(None)
        self._mix_hash(prologue)
        own = None if static is None else public_bytes(static)
        first, second = (own, remote_static) if initiator else (remote_static, own)
        for known, key in ((pattern.initiator_known, first), (pattern.responder_known, second)):
            if known:
                assert key is not None, f"{pattern.name} needs both static keys that are known beforehand"
                self._mix_hash(key)

    @property
    def finished(self) -> bool:
        return self._place == len(self._pattern.messages)

    @property
    def my_turn(self) -> bool:
        return not self.finished and (self._place % 2 == 0) == self._initiator

    @property
    def hash(self) -> bytes:
        """The handshake hash: both sides hold the same one if they saw the same handshake (section 11.2)."""
        return self._hash

    @property
    def remote_static(self) -> bytes | None:
        """The other side's static key, as known beforehand or as received."""
        return self._remote_static

    def write(self, payload: bytes = b"") -> bytes:
        """Return the next message. Its payload is encrypted as far as the pattern allows at this step."""
        assert self.my_turn, "the other side writes the next message"
        message = b""
        for token in self._pattern.messages[self._place]:
            if token == "e":
                if self._ephemeral is None:
                    self._ephemeral = X25519PrivateKey.generate()
                public = public_bytes(self._ephemeral)
                message += public
                self._mix_ephemeral(public)
            elif token == "s":
                assert self._static is not None
                message += self._encrypt_and_hash(public_bytes(self._static))
            else:
                self._mix_token(token)
        self._place += 1
        return message + self._encrypt_and_hash(payload)

    def read(self, message: bytes) -> bytes:
        """Return the payload of the next message. Raise NoiseError, and change nothing, if it is forged."""
        assert not self.finished
        assert not self.my_turn, "this side writes the next message"
        saved = (self._hash, self._chaining_key, self._cipher, self._remote_ephemeral, self._remote_static)
        counter = self._cipher.counter
        try:
            return self._read(message)
        except (NoiseError, ValueError) as error:  # ValueError: a public key of low order
            self._hash, self._chaining_key, self._cipher, self._remote_ephemeral, self._remote_static = saved
            self._cipher.counter = counter
            raise NoiseError(str(error)) from error

    def _read(self, message: bytes) -> bytes:
        for token in self._pattern.messages[self._place]:
            if token == "e":
                public, message = _cut(message, KEY_BYTES)
                self._remote_ephemeral = public
                self._mix_ephemeral(public)
            elif token == "s":
                length = KEY_BYTES + (TAG_BYTES if self._has_key() else 0)
                sealed, message = _cut(message, length)
                self._remote_static = self._decrypt_and_hash(sealed)
            else:
                self._mix_token(token)
        payload = self._decrypt_and_hash(message)
        self._place += 1
        return payload

    def split(self) -> tuple[Cipher, Cipher]:
        """Return the ciphers for sending and receiving, once the handshake is finished (Split, section 5.2)."""
        assert self.finished
        first, second = (Cipher(key) for key in _hkdf(self._chaining_key, b"", 2))
        return (first, second) if self._initiator else (second, first)

    def _mix_token(self, token: str) -> None:
        if token == "psk":
            assert self._psk is not None
            self._chaining_key, mixed, key = _hkdf(self._chaining_key, self._psk, 3)
            self._mix_hash(mixed)
            self._cipher = Cipher(key)
            return
        mine, theirs = (token[0], token[1]) if self._initiator else (token[1], token[0])
        private = self._ephemeral if mine == "e" else self._static
        public = self._remote_ephemeral if theirs == "e" else self._remote_static
        assert private is not None
        assert public is not None
        self._mix_key(private.exchange(X25519PublicKey.from_public_bytes(public)))

    def _mix_ephemeral(self, public: bytes) -> None:
        self._mix_hash(public)
        if any("psk" in tokens for tokens in self._pattern.messages):
            self._mix_key(public)  # section 9.2: with a pre-shared key, `e` also enters the key

    def _mix_key(self, material: bytes) -> None:
        self._chaining_key, key = _hkdf(self._chaining_key, material, 2)
        self._cipher = Cipher(key)

    def _mix_hash(self, data: bytes) -> None:
        self._hash = _digest(self._hash + data)

    def _has_key(self) -> bool:
        return self._cipher._aead is not None

    def _encrypt_and_hash(self, data: bytes) -> bytes:
        sealed = self._cipher.encrypt(data, self._hash)
        self._mix_hash(sealed)
        return sealed

    def _decrypt_and_hash(self, sealed: bytes) -> bytes:
        data = self._cipher.decrypt(sealed, self._hash)
        self._mix_hash(sealed)
        return data


def public_bytes(private: X25519PrivateKey) -> bytes:
    return private.public_key().public_bytes_raw()


def _nonce(counter: int) -> bytes:
    return b"\0\0\0\0" + counter.to_bytes(8, "little")


def _digest(data: bytes) -> bytes:
    return hashlib.blake2s(data).digest()


def _hkdf(chaining_key: bytes, material: bytes, outputs: int) -> list[bytes]:
    """Derive `outputs` keys with HKDF, a key derivation whose salt is the chaining key (section 4.3)."""
    temporary = hmac.digest(chaining_key, material, "blake2s")
    keys: list[bytes] = []
    previous = b""
    for number in range(1, outputs + 1):
        previous = hmac.digest(temporary, previous + bytes((number,)), "blake2s")
        keys.append(previous)
    return keys


def _cut(message: bytes, length: int) -> tuple[bytes, bytes]:
    if len(message) < length:
        raise NoiseError(f"a message has {len(message)} bytes where at least {length} are needed")
    return message[:length], message[length:]
