"""How the values and levels of a page are encoded (Parquet's `Encodings.md`).

Codes and differences have whole bytes where Parquet would also allow single bits: numpy writes them at once,
and zstd makes them smaller than packed bits.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from precede.eventlog.parquet.thrift import varint, zigzag

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

PLAIN: Final = 0
RLE: Final = 3
DELTA: Final = 5
DICTIONARY: Final = 8
"""The numbers of the encodings."""

_DELTA_BLOCK: Final = 4096
"""So many differences share a width, which is that of the largest."""
_WIDTHS: Final = tuple((1 << 8 * size, f"<u{size}", size) for size in (1, 2, 4, 8))
_SPARSE: Final = 8
"""Values are counted in a table of at most so many places for each, else sorted."""


def levels(values: Numbers, most: int) -> bytes:
    """Encode the levels of a page, from 0 to `most`, behind their length."""
    width = most.bit_length()
    if values.size and (values == values[0]).all():
        encoded = _repeated(int(values[0]), values.size, 1)
    else:
        bits = values.astype(np.uint8)[:, None] >> np.arange(width, dtype=np.uint8) & 1 if width > 1 else values
        packed = np.packbits(bits.ravel(), bitorder="little").tobytes()
        groups = -(-values.size // 8)
        encoded = varint(groups << 1 | 1) + packed.ljust(groups * width, b"\0")
    return len(encoded).to_bytes(4, "little") + encoded


def codes(values: Numbers, names: int) -> bytes:
    """Encode places in a dictionary of so many names."""
    if not values.size:
        return b"\0"
    width = 1 if names <= 1 << 8 else 2 if names <= 1 << 16 else 4
    head = bytes([8 * width])
    if (values == values[0]).all():
        return head + _repeated(int(values[0]), values.size, width)
    groups = -(-values.size // 8)
    return (
        head + varint(groups << 1 | 1) + values.astype(f"<u{width}").tobytes().ljust(8 * groups * width, b"\0")
    )


def _repeated(value: int, count: int, width: int) -> bytes:
    return varint(count << 1) + value.to_bytes(width, "little")


def differences(values: Numbers) -> bytes:
    """Encode integers by the first and the differences (DELTA_BINARY_PACKED)."""
    first = int(values[0]) if values.size else 0
    encoded = [varint(_DELTA_BLOCK), varint(1), varint(values.size), zigzag(first)]
    deltas = np.diff(values.astype(np.int64, copy=False))
    if deltas.size:
        begins = np.arange(0, deltas.size, _DELTA_BLOCK)
        leasts = np.minimum.reduceat(deltas, begins).tolist()
        mosts = np.maximum.reduceat(deltas, begins).tolist()
        for begin, least, most in zip(begins.tolist(), leasts, mosts, strict=True):
            encoded.append(zigzag(least))
            if most == least:
                encoded.append(b"\0")
                continue
            kind, size = next((kind, size) for limit, kind, size in _WIDTHS if most - least < limit)
            part = deltas[begin : begin + _DELTA_BLOCK].view(np.uint64) - np.uint64(least & (1 << 64) - 1)
            encoded.append(bytes([8 * size]))
            encoded.append(part.astype(kind).tobytes().ljust(_DELTA_BLOCK * size, b"\0"))
    return b"".join(encoded)


class Differences:
    """Encodes columns by differences. Equal columns, one after the other, are encoded once."""

    def __init__(self) -> None:
        self._values: Numbers | None = None
        self._encoded = b""

    def encoded(self, values: Numbers) -> bytes:
        # the clock of a simulated node mostly shows the time of the world
        if self._values is None or not np.array_equal(values, self._values):
            self._values, self._encoded = values, differences(values)
        return self._encoded


def different(values: Numbers) -> tuple[Numbers, Numbers]:
    """Return the different values in ascending order, and the place of each value among them."""
    least, most = int(values.min()), int(values.max())
    if most == least:
        return values[:1], np.zeros(values.size, np.uint8)
    if 0 <= least < 1 << 12:
        least = 0  # the values are places in the table
    if most - least > _SPARSE * values.size + (1 << 12):
        ordered = np.sort(values)
        kept = ordered[np.append(True, ordered[1:] != ordered[:-1])]
        return kept, np.searchsorted(kept, values)
    places = values - least if least else values
    is_used = np.zeros(most - least + 1, np.bool_)
    is_used[places] = True
    kept = np.flatnonzero(is_used)
    kind = np.uint8 if kept.size <= 1 << 8 else np.uint16 if kept.size <= 1 << 16 else np.int64
    table = np.empty(is_used.size, kind)
    table[kept] = np.arange(kept.size)
    return kept + least, table.take(places)
