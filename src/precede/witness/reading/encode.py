"""Arrow columns as numpy arrays: names as codes (small integers), numbers as 64-bit integers, all checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from precede.core.errors import BadInput
from precede.eventlog.python_values import null_mask, without_nulls
from precede.witness.reading import kernels
from precede.witness.reading.column_names import WHOLE_NUMBERS
from precede.witness.reading.values import Place, destinations, text, whole

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

NO_NAME: Final = -1
"""The code of a null or an empty name."""


class Names:
    """Codes for names, in the order of appearance; the codes hold for all batches of a log."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._codes: dict[str, int] = {}
        self._last: dict[str, tuple[Any, Array]] = {}

    def code(self, name: str) -> int:
        """Return the code of a name; a new name gets the next one."""
        code = self._codes.get(name)
        if code is None:
            code = self._codes[name] = len(self.names)
            self.names.append(name)
        return code

    def column(self, column: Any, first_row: int, title: str, place: Place) -> Array:
        """Return the codes of a column; `title` names the column in an error message."""
        encoded = dictionary_of(column)
        codes = self._translate(encoded.dictionary, first_row, title, place)
        return codes.take(without_nulls(encoded.indices, len(codes) - 1))

    def _translate(self, dictionary: Any, first_row: int, title: str, place: Place) -> Array:
        """Return the code of each entry of a batch's dictionary, and NO_NAME at the end; cached."""
        last = self._last.get(title)
        if last is not None and last[0].equals(dictionary):
            return last[1]
        values = dictionary.to_pylist()
        codes = np.full(len(values) + 1, NO_NAME, np.int32)
        for at, value in enumerate(values):
            if value is not None and value != "":
                codes[at] = self.code(text(value, first_row, title, place))
        self._last[title] = (dictionary, codes)
        return codes


class Pairs:
    """Codes for pairs of small integers, in the order of appearance, with a hash table in numba."""

    def __init__(self) -> None:
        self.count = 0
        self._keys = np.empty(1 << 9, np.int64)
        self._table = np.full(1 << 11, -1, np.int32)

    def column(self, a: Array, b: Array) -> Array:
        """Return the codes of the pairs (a, b); a new pair gets the next code."""
        out = np.empty(len(a), np.int32)
        done = 0
        while True:
            done, self.count = kernels.pair_codes(a, b, done, self._table, self._keys, self.count, out)
            if done == len(a):
                return out
            self._keys = np.concatenate((self._keys, np.empty(len(self._keys), np.int64)))
            self._table = np.full(2 * len(self._table), -1, np.int32)
            kernels.rehash(self._table, self._keys, self.count)

    def first(self) -> Array:
        return (self._keys[: self.count] >> 32).astype(np.int32)

    def second(self) -> Array:
        return (self._keys[: self.count] & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def dictionary_of(column: Any) -> Any:
    """Return an Arrow column as a dictionary array."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not isinstance(column, pa.DictionaryArray):
        if pa.types.is_null(column.type):
            column = column.cast(pa.string())
        column = column.dictionary_encode()
    return column


def integers(column: Any, first_row: int, title: str, place: Place) -> tuple[Array, Array | None]:
    """Return a column as 64-bit integers (nulls become 0), and a mask of its nulls or None."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if column.type != pa.int64():
        column = _cast(column, first_row, title, place)
    return without_nulls(column, 0), null_mask(column)


def take(column: Any, places: Array) -> Any:
    """Return the values of an Arrow column at some places, without importing pandas."""
    return column.take(pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)]))


def _cast(column: Any, first_row: int, title: str, place: Place) -> Any:
    if not pa.types.is_boolean(column.type):
        try:
            return column.cast(pa.int64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    values = column.to_pylist()
    checked = [
        None if value is None or value == "" else whole(value, first_row + at, title, place)
        for at, value in enumerate(values)
    ]
    return pa.array(checked, pa.int64())


def arrow_column(values: Sequence[Any], role: str, first_row: int, place: Place) -> Any:
    """Return Python values as an Arrow array; mixed types become the type that the column's role needs."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        read: Callable[..., Any] = whole if role in WHOLE_NUMBERS else text
        if role == "destinations":
            return pa.array([_listed(value, first_row + at, place) for at, value in enumerate(values)])
        return pa.array(
            [
                None if value is None else read(value, first_row + at, role, place)
                for at, value in enumerate(values)
            ]
        )


def _listed(value: Any, row: int, place: Place) -> list[str] | None:
    names = destinations(value, row, place)
    return None if names is None else sorted(names)


def first_missing(missing: Array | None, needed: Array) -> int:
    """Return the first index where a needed value is missing, or -1."""
    if missing is None:
        return -1
    places = np.flatnonzero(missing & needed)
    return int(places[0]) if len(places) else -1


def require(missing: int, first_row: int, title: str, place: Place) -> None:
    """Raise BadInput if a needed value is missing: `missing` is its index in the batch, or -1."""
    if missing >= 0:
        raise BadInput(f"{place(first_row + missing)}: {title} is missing")
