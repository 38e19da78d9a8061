"""Encodes packets as bytes and decodes them: versioned, compact, strict (docs/reference/wire.md).

A packet is one byte of version, one byte with the number of its kind within the protocol, and its fields in
MessagePack. Bytes that do not decode into exactly the declared types, with every number in its declared range
(`core.identity`), raise `Garbled` with a reason that can be counted. No bytes raise anything else.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, get_args

import msgspec

from precede.core.messages import Packet

VERSION: Final = 1
LARGEST: Final = 1 << 20
_OUT_OF_RANGE: Final = re.compile(r"`int` [<>]=")


class Garbled(Exception):
    """The bytes are no packet of this protocol; `reason` is one of a few words, for counters."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Codec:
    """Encodes and decodes one protocol's packets. `stamp_type` is the type of the ordering's stamps, if any."""

    def __init__(self, packets: Sequence[type[Packet]], stamp_type: Any = Any) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._kinds = {packet: number for number, packet in enumerate(packets)}
        self._heads = [_head(packet) for packet in packets]
        self._decoders = [msgspec.msgpack.Decoder(packet, strict=True) for packet in packets]
        # A field of a struct, because msgspec keeps what it knows about the type with the struct.
        stamps = [("stamps", tuple[stamp_type, ...])]
        self._stamps = None if stamp_type is Any else msgspec.defstruct("Stamps", stamps, array_like=True)

    def encode(self, packet: Packet) -> bytes:
        kind = self._kinds[type(packet)]
        return bytes((VERSION, kind)) + self._encoder.encode(packet)[len(self._heads[kind]) :]

    def decode(self, data: bytes) -> Packet:
        """Decode bytes from the network as a packet. Raise Garbled if they are none of this protocol."""
        if len(data) > LARGEST:
            raise Garbled("oversize")
        if len(data) < 2:
            raise Garbled("truncated")
        if data[0] != VERSION:
            raise Garbled("version")
        if data[1] >= len(self._decoders):
            raise Garbled("kind")
        try:
            packet: Packet = self._decoders[data[1]].decode(self._heads[data[1]] + data[2:])
            return self._with_stamps(packet)
        except msgspec.ValidationError as error:
            raise Garbled("absurd" if _OUT_OF_RANGE.search(str(error)) else "types") from None
        except (msgspec.DecodeError, RecursionError, OverflowError, ValueError):
            raise Garbled("encoding") from None

    def _with_stamps(self, packet: Packet) -> Packet:
        """Convert the stamps, which travel as plain data, to the type that the ordering declares."""
        if self._stamps is not None:
            holders: list[Any] = []
            _find_stamps(packet, holders)
            if holders:
                plain = tuple([holder.stamp for holder in holders])
                converted = msgspec.convert((plain,), self._stamps).stamps  # type: ignore[attr-defined]
                for holder, stamp in zip(holders, converted, strict=True):
                    # The packet was decoded here, and nobody else has seen it yet.
                    msgspec.structs.force_setattr(holder, "stamp", stamp)
        return packet


def _head(packet: type[Packet]) -> bytes:
    """Return the first bytes of every packet of a kind, array marker, length and name, which are not sent."""
    fields = len(packet.__struct_fields__)
    if fields > 14:
        raise ValueError(f"{packet.__name__}: more than 14 fields")
    tag = packet.__struct_config__.tag
    return bytes((0x91 + fields,)) + msgspec.msgpack.encode(tag)


def _find_stamps(value: Any, holders: list[Any]) -> None:
    """Append every struct in a value that has a stamp. Only fields that can contain a stamp are visited."""
    for item in value if isinstance(value, tuple) else (value,):
        if isinstance(item, tuple):
            _find_stamps(item, holders)
            continue
        kind: Any = type(item)
        for field in _fields_with_stamps(kind):
            if field == "stamp":
                holders.append(item)
            else:
                _find_stamps(getattr(item, field), holders)


@cache
def _fields_with_stamps(kind: Any) -> tuple[str, ...]:
    """Return the fields of a struct that are a stamp or contain one at any depth."""
    if not issubclass(kind, msgspec.Struct):
        return ()
    return tuple(
        field.name
        for field in msgspec.structs.fields(kind)
        if field.name == "stamp" or any(_fields_with_stamps(inner) for inner in _structs_in(field.type))
    )


def _structs_in(declared: Any) -> list[Any]:
    """Return the structs in a declared type: the type itself, or those in a tuple or union."""
    if isinstance(declared, type) and issubclass(declared, msgspec.Struct):
        return [declared]
    return [struct for part in get_args(declared) for struct in _structs_in(part)]
