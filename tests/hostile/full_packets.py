"""Packets in which one list, at any depth, has as many entries as the largest packet has room for."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
from msgspec import inspect

from precede.core.identity import MessageId
from precede.core.messages import Packet
from precede.runtime.codec import Codec
from tests.hostile.members import MAL
from tests.hostile.packets import any_value

Path = tuple[str | int, ...]
_DEEPEST = 6


def lists_in(declared: Any, path: Path = ()) -> Iterator[Path]:
    """The paths to all lists, sets and maps of a declared type."""
    if len(path) > _DEEPEST:
        return
    match declared:
        case inspect.Metadata(type=inner):
            yield from lists_in(inner, path)
        case inspect.StructType(fields=fields):
            for field in fields:
                yield from lists_in(field.type, (*path, field.name))
        case inspect.VarTupleType(item_type=item) | inspect.FrozenSetType(item_type=item):
            yield path
            yield from lists_in(item, (*path, "item"))
        case inspect.DictType(value_type=item):
            yield path
            yield from lists_in(item, (*path, "item"))
        case inspect.TupleType(item_types=items):
            for place, item in enumerate(items):
                yield from lists_in(item, (*path, place))
        case inspect.UnionType(types=types):
            for item in types:
                yield from lists_in(item, path)


def filled(codec: Codec, declared: Any, path: Path, largest: int) -> Packet | None:
    """A packet with as many entries at a path as make it `largest` bytes long; None if it has no such list."""
    few, more = (_with_entries(declared, path, Random(1), count) for count in (50, 250))
    if few is None or more is None:
        return None
    size = len(codec.encode(few))
    count = int(0.7 * (largest - size) / max((len(codec.encode(more)) - size) / 200, 1))
    packet: Packet = _with_entries(declared, path, Random(1), count)
    return packet if len(codec.encode(packet)) <= largest else None


def _with_entries(declared: Any, path: Path, random: Random, count: int) -> Any:
    """A value of a type with so many entries at a path."""
    match declared:
        case inspect.Metadata(type=inner):
            return _with_entries(inner, path, random, count)
        case inspect.UnionType(types=types):
            chosen = [each for each in types if path in lists_in(each)]
            return _with_entries(chosen[0], path, random, count) if chosen else None
        case inspect.StructType(cls=cls, fields=fields):
            values = {field.name: any_value(field.type, random) for field in fields}
            (inner,) = (field.type for field in fields if field.name == path[0])
            return cls(**{**values, str(path[0]): _with_entries(inner, path[1:], random, count)})
        case inspect.TupleType(item_types=items):
            values_of = [any_value(item, random) for item in items]
            place = int(path[0])
            values_of[place] = _with_entries(items[place], path[1:], random, count)
            return tuple(values_of)
        case inspect.DictType(key_type=key, value_type=value) if path:
            return {any_value(key, random): _with_entries(value, path[1:], random, count)}
        case inspect.DictType(key_type=key, value_type=value):
            return {any_value(key, random): any_value(value, random) for _ in range(count)}
    items = [_with_entries(declared.item_type, path[1:], random, count)] if path else _numbered(declared, count)
    return frozenset(items) if isinstance(declared, inspect.FrozenSetType) else tuple(items)


def _numbered(declared: Any, count: int) -> list[Any]:
    """So many different items of a list; messages in them are mal's, one after the other."""
    random = Random(2)
    return [_of_mal(any_value(declared.item_type, random), number + 1) for number in range(count)]


def _of_mal(value: Any, number: int) -> Any:
    if isinstance(value, MessageId):
        return MessageId(MAL, 0, number)
    if isinstance(value, msgspec.Struct):
        fields = {name: _of_mal(getattr(value, name), number) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    return value
