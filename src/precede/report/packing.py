"""Columns of numbers as text that a page can carry: byte planes, gzip, base64.

Differences of sorted times are small, so the upper planes are nearly all zeros and cost nearly nothing.
"""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]


def planes(values: Ints, width: int) -> bytes:
    """The lowest byte of every value, then the next, `width` of them.

    >>> planes(np.array([1, 258]), 2)
    b'\\x01\\x02\\x00\\x01'
    """
    if values.size and (int(values.min()) < 0 or int(values.max()) >= 1 << (8 * width)):
        raise ValueError(f"{width} bytes do not hold {int(values.min())} to {int(values.max())}")
    wide = np.ascontiguousarray(values, dtype="<u8").view(np.uint8).reshape(-1, 8)
    return bytes(wide[:, :width].T.tobytes())


def zigzag(values: Ints) -> Ints:
    """Signed to unsigned, small stays small.

    >>> zigzag(np.array([0, -1, 1, -2])).tolist()
    [0, 1, 2, 3]
    """
    folded: Ints = np.where(values >= 0, 2 * values, -2 * values - 1)
    return folded


def pack(parts: Sequence[bytes]) -> str:
    """Packed, the same for the same bytes on every day."""
    return b64encode(gzip.compress(b"".join(parts), 9, mtime=0)).decode()


def places(column: Any, names: Sequence[str]) -> Ints:
    """A column of names as places in a list; -1 is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.index_in(column.cast(pa.string()), value_set=pa.array(names, pa.string()))
    numbers: Ints = found.fill_null(-1).to_numpy().astype(np.int64)
    return numbers
