"""Admission: every datagram is from a stranger until the group key says otherwise.

A frame is `version, sender, boot, counter` in the clear and the rest sealed with ChaCha20-Poly1305. The key is
derived from the group key, the sender and its boot number (64 random bits at each start), the nonce is the
counter: so no nonce is used twice under one key, whatever is lost in a restart. A receiver keeps a window of
counters per (sender, boot) and drops what it has seen. Several group keys may be valid at once while a group
changes keys: frames are sealed with the first and opened with any.
"""

from __future__ import annotations

import os
import struct
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
_MOST_BOOTS: Final = 4096
OVERHEAD: Final = _HEADER.size + 16


class Sealer:
    """Seals our frames and opens others'; counts what it drops, by reason."""

    def __init__(self, node: NodeId, keys: tuple[bytes, ...]) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise ValueError(f"a group key has {KEY_BYTES} bytes")
        self.dropped: Counter[str] = Counter()
        self._node = node
        self._keys = keys
        self._boot = int.from_bytes(os.urandom(8), "big")
        self._counter = 0
        self._own = ChaCha20Poly1305(_derive(keys[0], node, self._boot))
        self._peers: OrderedDict[tuple[NodeId, int], _Peer] = OrderedDict()

    def seal(self, data: bytes) -> bytes:
        """One frame for the network."""
        self._counter += 1
        header = _HEADER.pack(_VERSION, self._node, self._boot, self._counter)
        return header + self._own.encrypt(_nonce(self._counter), data, header)

    def open(self, frame: bytes) -> tuple[NodeId, int, bytes] | None:
        """The sender, its boot and what it sealed; None, and a count, for anything else."""
        if len(frame) < OVERHEAD:
            return self._drop("truncated")
        version, sender, boot, counter = _HEADER.unpack_from(frame)
        if version != _VERSION:
            return self._drop("version")
        if sender == self._node:
            return self._drop("own")
        known = self._peers.get((sender, boot))
        if known is not None and known.seen(counter):
            return self._drop("replayed")
        header, sealed, nonce = frame[: _HEADER.size], frame[_HEADER.size :], _nonce(counter)
        for cipher in known.ciphers if known is not None else self._ciphers(sender, boot):
            try:
                data = cipher.decrypt(nonce, sealed, header)
            except InvalidTag:
                continue
            self._admit(sender, boot, counter, cipher)
            return sender, boot, data
        return self._drop("stranger")

    def _ciphers(self, sender: NodeId, boot: int) -> list[ChaCha20Poly1305]:
        return [ChaCha20Poly1305(_derive(key, sender, boot)) for key in self._keys]

    def _admit(self, sender: NodeId, boot: int, counter: int, cipher: ChaCha20Poly1305) -> None:
        peer = self._peers.get((sender, boot))
        if peer is None:
            peer = self._peers[sender, boot] = _Peer([cipher])
            if len(self._peers) > _MOST_BOOTS:
                self._peers.popitem(last=False)
        peer.mark(counter)

    def _drop(self, reason: str) -> tuple[NodeId, int, bytes] | None:
        self.dropped[reason] += 1
        return None


class _Peer:
    """One boot of a sender: its cipher, and which counters have been seen."""

    __slots__ = ("_bits", "_highest", "ciphers")

    def __init__(self, ciphers: list[ChaCha20Poly1305]) -> None:
        self.ciphers = ciphers
        self._highest = 0
        self._bits = 0

    def seen(self, counter: int) -> bool:
        behind = self._highest - counter
        return behind >= 0 and (behind >= _WINDOW or bool(self._bits >> behind & 1))

    def mark(self, counter: int) -> None:
        ahead = counter - self._highest
        if ahead > 0:
            self._bits = (self._bits << ahead | 1) & ((1 << _WINDOW) - 1) if ahead < _WINDOW else 1
            self._highest = counter
        else:
            self._bits |= 1 << -ahead


class OpenDoor:
    """No key: for links that have encryption of their own. The sender is whoever the frame says."""

    def __init__(self, node: NodeId) -> None:
        self.dropped: Counter[str] = Counter()
        self._node = node
        self._boot = int.from_bytes(os.urandom(8), "big")

    def seal(self, data: bytes) -> bytes:
        return _OPEN.pack(0, self._node, self._boot) + data

    def open(self, frame: bytes) -> tuple[NodeId, int, bytes] | None:
        if len(frame) < _OPEN.size or frame[0] != 0:
            self.dropped["truncated" if len(frame) < _OPEN.size else "version"] += 1
            return None
        _, sender, boot = _OPEN.unpack_from(frame)
        if sender == self._node:
            self.dropped["own"] += 1
            return None
        return sender, boot, frame[_OPEN.size :]


def new_key() -> bytes:
    """A fresh group key."""
    return os.urandom(KEY_BYTES)


def _derive(key: bytes, sender: NodeId, boot: int) -> bytes:
    info = b"precede frame" + struct.pack(">qQ", sender, boot)
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=info).derive(key)


def _nonce(counter: int) -> bytes:
    return counter.to_bytes(12, "big")
