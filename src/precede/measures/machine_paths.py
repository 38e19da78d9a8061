"""The lengths of paths, counted row by row in machine words; used only where the package is compiled."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_le, write_i32_le
from librt.vecs import vec
from mypy_extensions import i32, i64

_AT_SOURCE: Final = -2


def lengths_of(parents: bytes) -> bytes | None:
    """Return the length of the path from each row to a row at the source, as 32-bit words; 0 if there is none.

    A word of `parents` is the row that a row follows from, -2 if it follows from the source, and -1 if that is
    not known. Return None if a row follows from a later one.
    """
    rows: i64 = len(parents) >> 2
    lengths = vec[i32]([0] * rows)
    written = BytesWriter()
    row: i64 = 0
    while row < rows:
        parent = i64(read_i32_le(parents, row << 2))
        length: i32 = 0
        if parent == _AT_SOURCE:
            length = 1
        elif parent >= row:
            return None
        elif parent >= 0 and lengths[parent] != 0:
            length = lengths[parent] + 1
        lengths[row] = length
        write_i32_le(written, length)
        row += 1
    return written.getvalue()
