"""A Parquet file of the event log or of its gauges: row groups of one page per column, compressed with zstd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

import pyarrow as pa

from precede.eventlog.parquet.columns import Column, Encoded, Integers, Lists, Names, Presence
from precede.eventlog.parquet.pages import DICTIONARY, PLAIN, RLE, Differences
from precede.eventlog.parquet.thrift import Value, binary, boolean, i16, i32, i64, list_of, struct

GROUP_ROWS: Final = 1 << 18
_MAGIC: Final = b"PAR1"
_VERSION: Final = 2
_INT32, _INT64, _BYTE_ARRAY = 1, 2, 6
_REQUIRED, _OPTIONAL, _REPEATED = 0, 1, 2
_UTF8, _LIST = 0, 3
_OF_STRING, _OF_LIST = 1, 3
_ZSTD: Final = 6
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_EMPTY: Final = struct({})


class _Chunk(NamedTuple):
    """A column of a row group in the file: its metadata, and its bytes before and after compression."""

    described: Value
    uncompressed: int
    compressed: int


class ParquetFile:
    """Writes blocks of rows with one schema: names, integers and lists of names."""

    def __init__(self, path: Path, schema: pa.Schema, rising: Sequence[str], measured: Sequence[str]) -> None:
        """`rising` columns are encoded by differences; the row groups have the bounds of `measured` ones."""
        self._schema = schema
        differences = Differences()
        self._columns = [
            _column(field, differences if field.name in rising else None, field.name in measured)
            for field in schema
        ]
        self._sorted_by = schema.get_field_index("at_us")
        self._codec = pa.Codec("zstd", compression_level=1)
        self._held = self._rows = 0
        self._groups: list[Value] = []
        self._file = path.open("wb")
        self._file.write(_MAGIC)

    def write(self, block: pa.RecordBatch) -> None:
        """Take a block. All row groups but the last have as many rows, so blocks of any size make one file."""
        while block.num_rows:
            part = block.slice(0, GROUP_ROWS - self._held)
            presence = Presence()
            for column, array in zip(self._columns, part.columns, strict=True):
                column.add(array, presence)
            self._held += part.num_rows
            block = block.slice(part.num_rows)
            if self._held == GROUP_ROWS:
                self._write_group()

    def close(self, metadata: Mapping[bytes, bytes]) -> None:
        """Complete the file."""
        if self._held:
            self._write_group()
        described = struct(
            {
                1: i32(_VERSION),
                2: list_of(_schema_elements(self._schema)),
                3: i64(self._rows),
                4: list_of(self._groups) if self._groups else _NO_GROUPS,
                5: list_of([struct({1: binary(key), 2: binary(value)}) for key, value in metadata.items()]),
                6: binary(b"precede"),
                7: list_of([struct({1: _EMPTY}) for _ in self._columns]),  # bounds are ordered as the type says
            }
        ).encoded
        self._file.write(described + len(described).to_bytes(4, "little") + _MAGIC)
        self._file.close()

    def abandon(self) -> None:
        self._file.close()

    def _write_group(self) -> None:
        begin = self._file.tell()
        chunks, before = [], (b"", b"")
        for field, column in zip(self._schema, self._columns, strict=True):
            encoded = column.encoded()
            page = before[1] if encoded.body == before[0] else self._codec.compress(encoded.body, asbytes=True)
            before = encoded.body, page
            chunks.append(self._write_chunk(field, encoded, page))
        self._groups.append(
            struct(
                {
                    1: list_of([chunk.described for chunk in chunks]),
                    2: i64(sum(chunk.uncompressed for chunk in chunks)),
                    3: i64(self._held),
                    4: list_of([struct({1: i32(self._sorted_by), 2: boolean(False), 3: boolean(False)})]),
                    5: i64(begin),
                    6: i64(sum(chunk.compressed for chunk in chunks)),
                    7: i16(len(self._groups)),
                }
            )
        )
        self._rows += self._held
        self._held = 0

    def _write_chunk(self, field: pa.Field, encoded: Encoded, page: bytes) -> _Chunk:
        begin, head_bytes, dictionary = self._file.tell(), 0, b""
        has_dictionary = encoded.encoding == DICTIONARY
        if has_dictionary:
            dictionary = self._codec.compress(encoded.dictionary, asbytes=True)
            of_names = struct({1: i32(encoded.names), 2: i32(PLAIN)})
            head_bytes += self._write_page(_DICTIONARY_PAGE, encoded.dictionary, dictionary, {7: of_names})
        data_page = self._file.tell()
        of_rows = struct({1: i32(encoded.rows), 2: i32(encoded.encoding), 3: i32(RLE), 4: i32(RLE)})
        head_bytes += self._write_page(_DATA_PAGE, encoded.body, page, {5: of_rows})
        uncompressed = head_bytes + len(encoded.dictionary) + len(encoded.body)
        compressed = head_bytes + len(dictionary) + len(page)
        encodings = [PLAIN, RLE, DICTIONARY] if has_dictionary else sorted({RLE, encoded.encoding})
        statistics = None
        if encoded.least is not None and encoded.most is not None:
            bounds = {5: binary(encoded.most), 6: binary(encoded.least), 7: boolean(True), 8: boolean(True)}
            statistics = struct({3: i64(0), **bounds})
        metadata = struct(
            {
                1: i32(_physical(field.type)),
                2: list_of([i32(encoding) for encoding in encodings]),
                3: list_of([binary(part.encode()) for part in _path(field)]),
                4: i32(_ZSTD),
                5: i64(encoded.rows),
                6: i64(uncompressed),
                7: i64(compressed),
                9: i64(data_page),
                11: i64(begin) if has_dictionary else None,
                12: statistics,
            }
        )
        return _Chunk(struct({2: i64(begin), 3: metadata}), uncompressed, compressed)

    def _write_page(self, kind: int, body: bytes, page: bytes, more: Mapping[int, Value]) -> int:
        """Write a page; return the size of its header."""
        crc = crc32(page)
        signed = crc - (1 << 32) if crc >> 31 else crc
        head = struct({1: i32(kind), 2: i32(len(body)), 3: i32(len(page)), 4: i32(signed), **more}).encoded
        self._file.write(head)
        self._file.write(page)
        return len(head)


def _column(field: pa.Field, differences: Differences | None, measured: bool) -> Column:
    if pa.types.is_dictionary(field.type):
        return Names(field.nullable, measured)
    if pa.types.is_integer(field.type):
        return Integers(field.nullable, differences, measured)
    return Lists()


def _physical(kind: pa.DataType) -> int:
    return _INT32 if pa.types.is_int32(kind) else _INT64 if pa.types.is_integer(kind) else _BYTE_ARRAY


def _path(field: pa.Field) -> Sequence[str]:
    return [field.name, "list", "element"] if pa.types.is_list(field.type) else [field.name]


def _schema_elements(schema: pa.Schema) -> list[Value]:
    elements = [struct({4: binary(b"schema"), 5: i32(len(schema))})]
    for field in schema:
        if pa.types.is_list(field.type):
            of_list = {5: i32(1), 6: i32(_LIST), 10: struct({_OF_LIST: _EMPTY})}
            elements.append(struct({3: i32(_OPTIONAL), 4: binary(field.name.encode()), **of_list}))
            elements.append(struct({3: i32(_REPEATED), 4: binary(b"list"), 5: i32(1)}))
            elements.append(_element("element", True, _BYTE_ARRAY))
        else:
            elements.append(_element(field.name, field.nullable, _physical(field.type)))
    return elements


def _element(name: str, nullable: bool, physical: int) -> Value:
    is_text = physical == _BYTE_ARRAY
    return struct(
        {
            1: i32(physical),
            3: i32(_OPTIONAL if nullable else _REQUIRED),
            4: binary(name.encode()),
            6: i32(_UTF8) if is_text else None,
            10: struct({_OF_STRING: _EMPTY}) if is_text else None,
        }
    )


_NO_GROUPS: Final = Value(9, b"\x0c")
"""An empty list of structs."""
