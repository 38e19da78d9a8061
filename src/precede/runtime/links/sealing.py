"""Admission: encrypts frames with the group key and accepts only frames that open with it.

A frame has version, sender, boot and counter in the clear; the rest is sealed with ChaCha20-Poly1305. The key
is derived from the group key, the sender and its boot number; the nonce is the counter. A boot number is the
time of the start in milliseconds (44 bits) and 20 random bits. So no nonce is used twice under one key, even if
a node loses its state, and a later start has a larger boot number. For the latest boot of each sender a
receiver keeps a window of counters and drops replays. While a group changes keys several keys are valid: the
first seals, all open.
"""

from __future__ import annotations

import os
import secrets
import struct
import time
from collections import Counter, OrderedDict
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from precede.core.identity import NodeId

KEY_BYTES: Final = 32
_HEADER: Final = struct.Struct(">BqQQ")
_OPEN: Final = struct.Struct(">BqQ")
_VERSION: Final = 1
_WINDOW: Final = 1024
_MOST_PEERS: Final = 4096
OVERHEAD: Final = _HEADER.size + 16


class Sealer:
    """Seals this node's frames and opens those of others. `dropped` counts by reason.

    Boot numbers of one sender ascend: frames of an earlier boot than the latest are replays. If there are too
    many senders, the one first heard longest ago is forgotten. Only the first frame of a boot needs a key
    derivation.
    """

    def __init__(self, node: NodeId, keys: tuple[bytes, ...], after: int = 0) -> None:
        self.dropped: Counter[str] = Counter()
        self.boot = max(new_boot(), after + 1)
        self._node = node
        self._counter = 0
        self._peers: OrderedDict[NodeId, _Peer] = OrderedDict()
        self.rekey(keys)

    def rekey(self, keys: tuple[bytes, ...]) -> None:
        """Use other keys from now on, newest first; links stay up."""
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise ValueError(f"a group key has {KEY_BYTES} bytes")
        self._keys = keys
        self._own = _cipher(keys[0], self._node, self.boot)
        for sender, peer in self._peers.items():
            peer.ciphers = [_cipher(key, sender, peer.boot) for key in keys]

    def seal(self, data: bytes) -> bytes:
        """Data as a sealed frame."""
        self._counter += 1
        header = _HEADER.pack(_VERSION, self._node, self.boot, self._counter)
        return header + self._own.encrypt(_nonce(self._counter), data, header)

    def open(self, frame: bytes) -> tuple[NodeId, int, bytes] | None:
        """The sender, its boot and the data of a frame; None if it is dropped."""
        if len(frame) < OVERHEAD:
            return self._drop("truncated")
        version, sender, boot, counter = _HEADER.unpack_from(frame)
        if version != _VERSION:
            return self._drop("version")
        if sender == self._node:
            return self._drop("own")
        if sender < 0:
            return self._drop("absurd")
        latest = self._peers.get(sender)
        if latest is not None and (boot < latest.boot or (boot == latest.boot and latest.seen(counter))):
            return self._drop("replayed")
        if latest is not None and boot == latest.boot:
            peer = latest
        else:
            peer = _Peer(boot, [_cipher(key, sender, boot) for key in self._keys])
        data = peer.opened(frame, counter)
        if data is None:
            return self._drop("tampered" if peer is latest else "stranger")
        if peer is not latest:
            self._peers[sender] = peer
            self._peers.move_to_end(sender)
            if len(self._peers) > _MOST_PEERS:
                self._peers.popitem(last=False)
        return sender, boot, data

    def _drop(self, reason: str) -> tuple[NodeId, int, bytes] | None:
        self.dropped[reason] += 1
        return None


class _Peer:
    """The latest boot of a sender: a cipher for each valid key, and which counters have been seen."""

    __slots__ = ("_bits", "_highest", "boot", "ciphers")

    def __init__(self, boot: int, ciphers: list[ChaCha20Poly1305]) -> None:
        self.boot = boot
        self.ciphers = ciphers
        self._highest = 0
        self._bits = 0

    def opened(self, frame: bytes, counter: int) -> bytes | None:
        """The data of a sealed frame, or None. The key that opened it is tried first the next time."""
        header, sealed, nonce = frame[: _HEADER.size], frame[_HEADER.size :], _nonce(counter)
        for place, cipher in enumerate(self.ciphers):
            try:
                data = cipher.decrypt(nonce, sealed, header)
            except InvalidTag:
                continue
            if place:
                self.ciphers.insert(0, self.ciphers.pop(place))
            self._mark(counter)
            return data
        return None

    def seen(self, counter: int) -> bool:
        """Whether a counter was used before, or is too old to tell."""
        behind = self._highest - counter
        return behind >= 0 and (behind >= _WINDOW or bool(self._bits >> behind & 1))

    def _mark(self, counter: int) -> None:
        ahead = counter - self._highest
        if ahead > 0:
            self._bits = (self._bits << ahead | 1) & ((1 << _WINDOW) - 1) if ahead < _WINDOW else 1
            self._highest = counter
        else:
            self._bits |= 1 << -ahead


class OpenDoor:
    """Admission without a key, for links with their own encryption. The sender in a frame is believed."""

    def __init__(self, node: NodeId) -> None:
        self.dropped: Counter[str] = Counter()
        self._node = node
        self.boot = new_boot()

    def seal(self, data: bytes) -> bytes:
        """Data as an open frame."""
        return _OPEN.pack(0, self._node, self.boot) + data

    def open(self, frame: bytes) -> tuple[NodeId, int, bytes] | None:
        """The sender, its boot and the data of a frame; None if it is dropped."""
        if len(frame) < _OPEN.size or frame[0] != 0:
            self.dropped["truncated" if len(frame) < _OPEN.size else "version"] += 1
            return None
        _, sender, boot = _OPEN.unpack_from(frame)
        if sender == self._node or sender < 0:
            self.dropped["own" if sender == self._node else "absurd"] += 1
            return None
        return sender, boot, frame[_OPEN.size :]


def new_key() -> bytes:
    """A new random group key."""
    return os.urandom(KEY_BYTES)


def new_boot() -> int:
    """A boot number: larger than those of earlier starts, by the machine's clock."""
    return (time.time_ns() // 1_000_000 & (1 << 44) - 1) << 20 | secrets.randbits(20)


def _cipher(key: bytes, sender: NodeId, boot: int) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(_derive(key, sender, boot))


def _derive(key: bytes, sender: NodeId, boot: int) -> bytes:
    info = b"precede frame" + struct.pack(">qQ", sender, boot)
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=info).derive(key)


def _nonce(counter: int) -> bytes:
    return counter.to_bytes(12, "big")
