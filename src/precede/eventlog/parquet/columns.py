"""The columns of a row group while it grows, and their encoding when it is complete."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from precede.eventlog.parquet import pages
from precede.eventlog.parquet.pages import DELTA, DICTIONARY, PLAIN, Differences, Numbers

_MOST_DIFFERENT: Final = 1 << 16
"""A dictionary of integers has at most so many."""
_NO_LIST, _EMPTY_LIST, _IN_LIST = 0, 1, 3
"""The levels of a row without a list, of one with an empty list, and of a name in a list."""


class Encoded(NamedTuple):
    """A column of a row group: its only page, and the one with its dictionary before it, not compressed."""

    rows: int
    encoding: int
    body: bytes
    names: int = 0
    dictionary: bytes = b""
    least: bytes | None = None
    most: bytes | None = None


class Presence:
    """Which rows of one block have a value; columns that share a bitmap share the answer."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Numbers, Numbers]] = {}

    def of(self, array: pa.Array) -> tuple[Numbers, Numbers]:
        """Return a truth value for each row, and the rows with a value, of an array with some nulls."""
        bitmap = array.buffers()[0]
        if bitmap.address not in self._known:
            bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
            present = bits[array.offset : array.offset + len(array)].view(np.bool_)
            self._known[bitmap.address] = present, np.flatnonzero(present)
        return self._known[bitmap.address]


class _Column:
    """The rows of a column in the row group that grows: those with a value in `_parts`."""

    def __init__(self, nullable: bool) -> None:
        self._nullable = nullable
        self._present: list[Numbers] = []
        self._parts: list[Numbers] = []

    def _known(self, array: pa.Array, numbers: pa.Array, presence: Presence) -> Numbers:
        """Return the numbers of the rows of `array` that have a value, and keep which these are."""
        rows = slice(numbers.offset, numbers.offset + len(numbers))
        data = numbers.buffers()[1]
        kind = np.int32 if pa.types.is_int32(numbers.type) else np.int64
        values: Numbers = np.frombuffer(data, kind)[rows] if len(numbers) else np.empty(0, kind)
        nulls = array.null_count
        if not nulls or nulls == len(array):
            self._present.append(np.full(len(array), not nulls))
            return values if not nulls else values[:0]
        present, places = presence.of(array)
        self._present.append(present)
        return values.take(places)

    def _take(self) -> tuple[int, bytes, Numbers]:
        """Return the number of rows, the encoded levels and the values; the column is empty then."""
        present, values = np.concatenate(self._present), np.concatenate(self._parts)
        self._present, self._parts = [], []
        return present.size, pages.levels(present, 1) if self._nullable else b"", values


class Integers(_Column):
    """A column of integers, encoded by `differences` if that is given; else by a dictionary if it is small."""

    def __init__(self, nullable: bool, differences: Differences | None, measured: bool) -> None:
        super().__init__(nullable)
        self._differences, self._measured = differences, measured

    def add(self, array: pa.Array, presence: Presence) -> None:
        self._parts.append(self._known(array, array, presence))

    def encoded(self) -> Encoded:
        rows, levels, values = self._take()
        least, most = (
            (values.min().tobytes(), values.max().tobytes()) if self._measured and values.size else (None, None)
        )
        if self._differences is not None:
            return Encoded(rows, DELTA, levels + self._differences.encoded(values), least=least, most=most)
        if values.size:
            kept, places = pages.different(values)
            if kept.size <= _MOST_DIFFERENT:
                body = levels + pages.codes(places, kept.size)
                dictionary = kept.astype(values.dtype).tobytes()
                return Encoded(rows, DICTIONARY, body, kept.size, dictionary, least, most)
        return Encoded(rows, PLAIN, levels + values.tobytes(), least=least, most=most)


class _Texts:
    """The names in one column of a file, in the order of their codes."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self._encoded: list[bytes] = []

    def codes_of(self, names: Sequence[str]) -> Numbers:
        """Return the code of each name. New names get the next codes."""
        codes = [self.codes.setdefault(name, len(self.codes)) for name in names]
        for name in islice(self.codes, len(self._encoded), None):
            text = name.encode()
            self._encoded.append(len(text).to_bytes(4, "little") + text)
        return np.array(codes, np.uint16 if len(self.codes) <= 1 << 16 else np.int32)

    def encoded(self, rows: int, levels: bytes, codes: Numbers, measured: bool = False) -> Encoded:
        least = most = None
        if measured and codes.size:
            names = list(self.codes)
            used = sorted(names[code].encode() for code in pages.different(codes)[0])
            least, most = used[0], used[-1]
        body = levels + pages.codes(codes, len(self._encoded))
        return Encoded(rows, DICTIONARY, body, len(self._encoded), b"".join(self._encoded), least, most)


class Names(_Column):
    """A column of names. Its codes are those of the blocks where all blocks have the same names.

    Names of a dictionary are taken up to the last one that a row has. Then a row group has the same bytes
    wherever blocks end, because recorders give new names the next codes.
    """

    def __init__(self, nullable: bool, measured: bool) -> None:
        super().__init__(nullable)
        self._measured = measured
        self._texts = _Texts()
        self._dictionary: pa.Array | None = None
        self._table: Numbers = np.empty(0, np.uint16)
        self._in_order = True  # is the code of each name its place in the dictionary?

    def add(self, array: pa.Array, presence: Presence) -> None:
        places = self._known(array, array.indices, presence)
        if self._dictionary is None or not self._dictionary.equals(array.dictionary):
            self._dictionary = array.dictionary
            self._table = np.empty(0, np.uint16)
        used = int(places.max(initial=-1)) + 1
        if used > self._table.size:
            self._table = self._texts.codes_of(self._dictionary.slice(0, used).to_pylist())
            self._in_order = bool((self._table == np.arange(self._table.size)).all())
        self._parts.append(places.astype(self._table.dtype) if self._in_order else self._table.take(places))

    def encoded(self) -> Encoded:
        return self._texts.encoded(*self._take(), self._measured)


class Lists:
    """A column of lists of names: none in most rows."""

    def __init__(self) -> None:
        self._texts = _Texts()
        self._levels: list[Numbers] = []
        self._begins: list[Numbers] = []
        self._codes: list[Numbers] = [np.empty(0, np.uint16)]

    def add(self, array: pa.Array, presence: Presence) -> None:
        if array.null_count == len(array):
            self._levels.append(np.zeros(len(array), np.uint8))
            self._begins.append(np.ones(len(array), np.bool_))
            return
        lists: list[list[str] | None] = array.to_pylist()
        levels = [_NO_LIST if names is None else _IN_LIST if names else _EMPTY_LIST for names in lists]
        entries = np.array([max(1, len(names or ())) for names in lists])
        self._levels.append(np.repeat(np.array(levels, np.uint8), entries))
        begins = np.zeros(int(entries.sum()), np.bool_)
        begins[np.cumsum(entries) - entries] = True
        self._begins.append(begins)
        self._codes.append(self._texts.codes_of([name for names in lists for name in names or ()]))

    def encoded(self) -> Encoded:
        levels, begins, codes = map(np.concatenate, (self._levels, self._begins, self._codes))
        self._levels, self._begins, self._codes = [], [], [np.empty(0, np.uint16)]
        before = pages.levels(~begins, 1) + pages.levels(levels, _IN_LIST)
        return self._texts.encoded(levels.size, before, codes)


Column: TypeAlias = Integers | Names | Lists
