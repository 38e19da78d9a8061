"""Counts frames and packets: one count and one sum of bytes for each direction and kind."""

from collections import Counter
from typing import Final

from precede.runtime.transports.transport import Transport, Where

_TO_ALL_AT: Final = 17
"""Where an unencrypted frame says whether it is for everybody."""
_SEALED: Final = {1: "handshake", 2: "handshake", 3: "to_one", 4: "handshake", 5: "to_all", 6: "handshake"}


class Traffic:
    """How many frames or packets went which way, by (direction, kind), and how many bytes they had."""

    __slots__ = ("bytes", "count")

    def __init__(self) -> None:
        self.count: Counter[tuple[str, str]] = Counter()
        self.bytes: Counter[tuple[str, str]] = Counter()

    def add(self, direction: str, kind: str, size: int) -> None:
        key = (direction, kind)
        self.count[key] += 1
        self.bytes[key] += size


class Tap:
    """Sends frames through a transport and counts them. A frame for everybody counts once."""

    def __init__(self, transport: Transport) -> None:
        self.frames = Traffic()
        self._transport = transport

    def send(self, frame: bytes, where: Where) -> None:
        self.frames.add("out", kind_of(frame), len(frame))
        self._transport.send(frame, where)

    def broadcast(self, frame: bytes) -> None:
        self.frames.add("out", kind_of(frame), len(frame))
        self._transport.broadcast(frame)

    def heard(self, frame: bytes) -> None:
        self.frames.add("in", kind_of(frame), len(frame))


def kind_of(frame: bytes) -> str:
    """Return the kind of a frame: `handshake`, `to_one` (a session), `to_all` (with beacons), or `unknown`.

    >>> kind_of(bytes([5, 1, 2])), kind_of(b""), kind_of(bytes([77]))
    ('to_all', 'unknown', 'unknown')
    """
    if not frame:
        return "unknown"
    if frame[0] == 0 and len(frame) > _TO_ALL_AT:
        return "to_all" if frame[_TO_ALL_AT] else "to_one"
    return _SEALED.get(frame[0], "unknown")
