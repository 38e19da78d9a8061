"""Random packets of any kind, with the declared types and senseless content."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from msgspec import inspect

from precede.core.messages import Packet

_INTEGERS = (0, 1, 2, 3, 5, 9, 64, 1000, -1, 1 << 20, 1 << 31, 1 << 40, (1 << 62) - 1, -(1 << 40))


def any_packet(kind: type[Packet], random: Random) -> Packet:
    """A random packet of a kind."""
    made: Packet = _value(_type_of(kind), random, 0)
    return made


def any_value(declared: Any, random: Random) -> Any:
    """A small random value of a declared type."""
    return _value(declared, random, 3)


@cache
def _type_of(kind: type[Packet]) -> Any:
    return inspect.type_info(kind)


def _value(type_: Any, random: Random, depth: int) -> Any:
    few = random.randrange(4) if depth < 4 else 0
    match type_:
        case inspect.Metadata(type=inner):
            return _value(inner, random, depth)
        case inspect.IntType(ge=low, le=high) if low is not None or high is not None:
            return random.randint(
                low if low is not None else -5, min(high if high is not None else 99, 1 << 40)
            )
        case inspect.IntType():
            return random.choice(_INTEGERS)
        case inspect.BoolType():
            return random.random() < 0.5
        case inspect.NoneType():
            return None
        case inspect.FloatType():
            return random.random()
        case inspect.BytesType():
            return random.randbytes(random.randrange(20))
        case inspect.StrType():
            return random.choice(("", "a", "é"))
        case inspect.LiteralType(values=values):
            return random.choice(values)
        case inspect.UnionType(types=types):
            return _value(random.choice(types), random, depth)
        case inspect.TupleType(item_types=items):
            return tuple(_value(item, random, depth + 1) for item in items)
        case inspect.VarTupleType(item_type=item):
            return tuple(_value(item, random, depth + 1) for _ in range(few))
        case inspect.ListType(item_type=item):
            return [_value(item, random, depth + 1) for _ in range(few)]
        case inspect.FrozenSetType(item_type=item):
            return frozenset(_value(item, random, depth + 1) for _ in range(few))
        case inspect.DictType(key_type=key, value_type=value):
            return {_value(key, random, depth + 1): _value(value, random, depth + 1) for _ in range(few)}
        case inspect.StructType(cls=cls, fields=fields):
            return cls(**{field.name: _value(field.type, random, depth + 1) for field in fields})
        case inspect.AnyType():
            return random.choice((None, 3, (), b"x"))
    raise TypeError(f"no values for {type_}")
