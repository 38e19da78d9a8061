"""Frames that every member may read: sealed with a key of the group, so any member could have made them.

A frame is `5, salt 8, counter 4, sealed data, tag 16`. The salt is drawn at each start and enters the key, so
no nonce is used twice under one key, whatever a restart forgets. A receiver remembers the counters of a salt.
"""

import os
from collections import OrderedDict
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from precede.runtime.links.replay_window import ReplayWindow

BROADCAST: Final = 5
OVERHEAD: Final = 1 + 8 + 4 + 16
MOST_SALTS: Final = 4096

_Stream: TypeAlias = tuple[ChaCha20Poly1305, ReplayWindow]


class GroupKeys(NamedTuple):
    """The keys that are derived from one group key."""

    psk: bytes
    mac: bytes
    broadcast: bytes
    hint: bytes
    cookie: bytes


def derive_keys(group_key: bytes) -> GroupKeys:
    """Derive five independent keys from a group key."""
    names = GroupKeys._fields
    return GroupKeys(*(blake2b(name.encode(), key=group_key, digest_size=32).digest() for name in names))


class GroupSeal:
    """Seals frames for the whole group and opens those of others. Frames are sealed with the first key."""

    def __init__(self, keys: list[GroupKeys]) -> None:
        self._salt = os.urandom(8)
        self._counter = 0
        self._known: OrderedDict[bytes, _Stream] = OrderedDict()
        self.rekey(keys)

    def rekey(self, keys: list[GroupKeys]) -> None:
        self._keys = keys
        self._cipher = ChaCha20Poly1305(_key_of(keys[0], self._salt))
        self._known.clear()

    def seal(self, data: bytes) -> bytes:
        """Encrypt data into a frame that every member can open."""
        self._counter += 1
        if self._counter >= 1 << 32:
            self._salt, self._counter = os.urandom(8), 1
            self._cipher = ChaCha20Poly1305(_key_of(self._keys[0], self._salt))
        header = bytes((BROADCAST,)) + self._salt + self._counter.to_bytes(4, "big")
        return header + self._cipher.encrypt(_nonce(self._counter), data, header)

    def open(self, frame: bytes) -> bytes | str:
        """Open a frame and return its data. If the frame must be dropped, return the reason, a text."""
        if len(frame) < OVERHEAD:
            return "truncated"
        salt, counter = frame[1:9], int.from_bytes(frame[9:13], "big")
        if salt == self._salt:
            return "own"
        known = self._known.get(salt)
        if known is not None and known[1].seen(counter):
            return "replayed"
        for cipher, window in self._candidates(salt, known):
            try:
                data = cipher.decrypt(_nonce(counter), frame[13:], frame[:13])
            except InvalidTag:
                continue
            window.mark(counter)
            self._known[salt] = (cipher, window)
            self._known.move_to_end(salt)
            if len(self._known) > MOST_SALTS:
                self._known.popitem(last=False)
            return data
        return "stranger" if known is None else "tampered"

    def _candidates(self, salt: bytes, known: _Stream | None) -> Iterator[_Stream]:
        """Yield the ciphers that may open a frame: first the one that opened the last frame with this salt.

        Its sender may have changed to another of the group's keys since; its counters go on.
        """
        if known is not None:
            yield known
        if known is None or len(self._keys) > 1:
            window = ReplayWindow() if known is None else known[1]
            for keys in self._keys:
                yield ChaCha20Poly1305(_key_of(keys, salt)), window


def _key_of(keys: GroupKeys, salt: bytes) -> bytes:
    return blake2b(salt, key=keys.broadcast, digest_size=32).digest()


def _nonce(counter: int) -> bytes:
    return counter.to_bytes(12, "big")
