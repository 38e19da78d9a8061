"""Packets to bytes and back: versioned, compact, strict (docs/reference/wire.md).

A packet is one byte of version, one byte that numbers its kind within the protocol, and its fields one after
the other in MessagePack. What cannot be decoded into exactly the declared types is a `Garbled`, with a reason
that is counted; nothing else is ever raised, whatever the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, get_args

import msgspec

from precede.core.messages import Packet

VERSION: Final = 1
LARGEST: Final = 1 << 20


class Garbled(Exception):
    """Bytes that are no packet of this protocol; `reason` is one of a few words that can be counted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Codec:
    """The wire form of one protocol's packets. `stamp_type` is what an ordering's stamps are, if it has one."""

    def __init__(self, packets: Sequence[type[Packet]], stamp_type: Any = Any) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._kinds = {packet: number for number, packet in enumerate(packets)}
        self._heads = [_head(packet) for packet in packets]
        self._decoders = [msgspec.msgpack.Decoder(packet, strict=True) for packet in packets]
        self._stamp_type = stamp_type

    def encode(self, packet: Packet) -> bytes:
        """A packet of ours as bytes."""
        kind = self._kinds[type(packet)]
        return bytes((VERSION, kind)) + self._encoder.encode(packet)[len(self._heads[kind]) :]

    def decode(self, data: bytes) -> Packet:
        """Bytes of anybody's as a packet of ours, or `Garbled`."""
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
        except msgspec.ValidationError:
            raise Garbled("types") from None
        except (msgspec.DecodeError, RecursionError, OverflowError, ValueError):
            raise Garbled("encoding") from None

    def _with_stamps(self, packet: Packet) -> Packet:
        """Stamps travel as plain data; each becomes what its ordering declares, or the packet is garbled."""
        if self._stamp_type is Any:
            return packet
        revived: Packet = _revive(packet, self._stamp_type)
        return revived


def _head(packet: type[Packet]) -> bytes:
    """How every packet of a kind begins in MessagePack: that it is an array, its length, its name.

    The kind says all that, so it does not travel.
    """
    fields = len(packet.__struct_fields__)
    if fields > 14:
        raise ValueError(f"{packet.__name__}: more than 14 fields")
    tag = packet.__struct_config__.tag
    return bytes((0x91 + fields,)) + msgspec.msgpack.encode(tag)


def _revive(value: Any, stamp_type: Any) -> Any:
    """The same value with its stamps converted; only fields that lead to one are looked at."""
    if isinstance(value, tuple):
        return tuple([_revive(item, stamp_type) for item in value])
    kind: Any = type(value)
    changed = {}
    for field in _leading(kind):
        held = getattr(value, field)
        changed[field] = msgspec.convert(held, stamp_type) if field == "stamp" else _revive(held, stamp_type)
    return msgspec.structs.replace(value, **changed) if changed else value


@cache
def _leading(kind: Any) -> tuple[str, ...]:
    """The fields of a structure that are a stamp or hold one, however deep."""
    if not issubclass(kind, msgspec.Struct):
        return ()
    return tuple(
        field.name
        for field in msgspec.structs.fields(kind)
        if field.name == "stamp" or any(_leading(inner) for inner in _structures_in(field.type))
    )


def _structures_in(declared: Any) -> list[Any]:
    """The structures that a declared type mentions: itself, in a tuple, in a union."""
    if isinstance(declared, type) and issubclass(declared, msgspec.Struct):
        return [declared]
    return [found for part in get_args(declared) for found in _structures_in(part)]
