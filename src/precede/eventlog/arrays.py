"""Arrow arrays made from their buffers.

`pa.array` loads pandas if it is installed, to recognise its objects: a quarter of a second of every command.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


def integer_array(values: Numbers, present: pa.Buffer | None = None) -> pa.Array:
    """Return integers as an Arrow array; `present` is the bitmap of the rows that have a value."""
    buffers = [present, pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(_TYPES[values.dtype.str], len(values), buffers)


def text_array(texts: Sequence[str]) -> pa.Array:
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return pa.Array.from_buffers(
        pa.string(), len(encoded), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    )


def named_array(codes: Numbers, names: pa.Array, present: pa.Buffer | None = None) -> pa.Array:
    """Return a dictionary array: the codes (int32) of names."""
    return pa.DictionaryArray.from_arrays(integer_array(codes, present), names, safe=False)


_TYPES = {"<i4": pa.int32(), "<i8": pa.int64()}
