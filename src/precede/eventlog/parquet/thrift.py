"""Thrift's compact protocol, in which Parquet writes its metadata: as much of it as a file needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

_TRUE: Final = 1
_FALSE: Final = 2
_I16: Final = 4
_I32: Final = 5
_I64: Final = 6
_BINARY: Final = 8
_LIST: Final = 9
_STRUCT: Final = 12
_LONG_LIST: Final = 15


class Value(NamedTuple):
    """A value with its type, as bytes."""

    kind: int
    encoded: bytes


def varint(value: int) -> bytes:
    """Encode a non-negative integer, seven bits to a byte, the lowest first.

    >>> varint(300).hex()
    'ac02'
    """
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def zigzag(value: int) -> bytes:
    """Encode an integer of 64 bits; small negative ones are short too."""
    return varint((value << 1) ^ (value >> 63))


def i16(value: int) -> Value:
    return Value(_I16, zigzag(value))


def i32(value: int) -> Value:
    return Value(_I32, zigzag(value))


def i64(value: int) -> Value:
    return Value(_I64, zigzag(value))


def boolean(value: bool) -> Value:
    return Value(_TRUE if value else _FALSE, b"")


def binary(value: bytes) -> Value:
    return Value(_BINARY, varint(len(value)) + value)


def struct(fields: Mapping[int, Value | None]) -> Value:
    """Encode a struct from its fields by ascending number; None leaves a field out."""
    encoded, last = bytearray(), 0
    for number, value in fields.items():
        if value is not None:
            encoded.append((number - last) << 4 | value.kind)
            encoded += value.encoded
            last = number
    return Value(_STRUCT, bytes(encoded) + b"\0")


def list_of(values: Sequence[Value]) -> Value:
    """Encode a list of values of one type, which must not be booleans; it has at least one."""
    kind, count = values[0].kind, len(values)
    head = bytes([count << 4 | kind]) if count < _LONG_LIST else bytes([_LONG_LIST << 4 | kind]) + varint(count)
    return Value(_LIST, head + b"".join(value.encoded for value in values))
