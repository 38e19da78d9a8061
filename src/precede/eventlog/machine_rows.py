"""The same bytes as `rows`, written as machine words; of use only when it is compiled."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i64_le
from mypy_extensions import i64

from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.eventlog.rows import Rows
from precede.eventlog.schema import DELIVERED, RECEIVED

_LOW: Final = 0xFFFFFFFF
_MARK: Final = 0xFF_0000_0000_0000
"""CONTINUED in its place."""


class MachineRows(Rows):
    """Units of four words, least byte first."""

    def __init__(self) -> None:
        super().__init__()
        self._words = BytesWriter()

    def message(self, kind: int, small: int, process: int, at: Instant, clock: Instant, id: MessageId) -> None:
        write_words(
            self._words,
            at,
            process,
            id.source,
            id.number,
            id.incarnation,
            i64(kind) << 16 | i64(small) << 24,
            clock,
        )

    def life(self, kind: int, process: int, at: Instant, clock: Instant) -> None:
        write_words(self._words, at, process, -1, 0, 0, i64(kind) << 16, clock)

    def received_and_delivered(self, process: int, now: Instant, id: MessageId) -> None:
        source: i64 = id.source
        number: i64 = id.number
        life: i64 = id.incarnation
        write_words(self._words, now, process, source, number, life, i64(RECEIVED) << 16, now)
        write_words(self._words, now, process, source, number, life, i64(DELIVERED) << 16, now)

    def packet(
        self,
        kind: int,
        code: int,
        process: int,
        at: Instant,
        clock: Instant,
        packet: Packet,
        peer: NodeId,
        over: int,
        wire_bytes: int = -1,
    ) -> None:
        words = self._words
        write_words(words, at, process, peer, packet.size_bytes, code, i64(kind) << 16 | i64(over) << 24, clock)
        messages: i64 = packet.messages
        entries: i64 = packet.control_entries
        check(messages, entries)
        write_i64_le(words, packet.control_bytes)
        write_i64_le(words, messages & _LOW | i64(wire_bytes) << 32)
        write_i64_le(words, entries & _LOW | _MARK)
        write_i64_le(words, 0)

    def size(self) -> int:
        return len(self._words)

    def take(self) -> bytes:
        taken = self._words.getvalue()
        self._words.truncate(0)
        return taken


def write_words(
    words: BytesWriter, at: i64, process: i64, source: i64, number: i64, life: i64, kinds: i64, clock: i64
) -> None:
    """One unit; `kinds` holds the kind and the small number in bytes 2 and 3."""
    check(number, life << 16)
    write_i64_le(words, at)
    write_i64_le(words, process & _LOW | source << 32)
    write_i64_le(words, number | (life | kinds) << 32)
    write_i64_le(words, clock)


def check(first: i64, second: i64) -> None:
    """Both fit their places."""
    if (first | second) >> 32 != 0:
        raise OverflowError("a number of a row is negative or too large for its place")
