"""The states of the WAS exploration: bounds, states of the world, and a canonical form of nodes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from types import BuiltinMethodType, FunctionType
from typing import Any

from msgspec import Struct, structs

PLAIN = frozenset((int, str, bytes, bool, float, type(None), FunctionType, BuiltinMethodType))
SKIPPED = ("random", "options", "durable", "draining", "without")


class Still(Random):
    """A generator without jitter and without state."""

    def random(self) -> float:
        return 0.5

    def __reduce__(self) -> Any:
        return (Still, ())


class Bounds(Struct, frozen=True):
    """How many events of each kind may still happen."""

    sessions: int
    messages: int = 0
    crashes: int = 0
    downs: int = 0
    """Down decisions against a host that is in the cell, or whose record the station owns."""
    acks: int = 0
    """1: a connected host may acknowledge at any moment."""


class State(Struct, frozen=True, order=False):
    """A state of the world; nodes and packets are stored once and referred to by number.

    `air` has (sender, receiver, packet) of each radio frame ever sent; `disk` is what the host persisted.
    """

    nodes: tuple[int, ...]
    cell: int
    links: tuple[tuple[int, ...], ...]
    air: frozenset[tuple[int, int, int]]
    delivered: tuple[int, ...]
    bounds: Bounds
    disk: tuple[tuple[Any, Any], ...]


@dataclass
class Report:
    """The result of an exploration: `stuck` states cannot reach a good one any more."""

    states: int = 0
    transitions: int = 0
    broken: list[str] = field(default_factory=list)
    stuck: int = 0
    seconds: float = 0.0

    def line(self) -> str:
        return (
            f"states={self.states} transitions={self.transitions} broken={len(self.broken)} stuck={self.stuck}"
            f" seconds={self.seconds:.1f}"
        )


COMPILED_WORDS = "vec[i64]"
"""The type of machine words in a compiled class, such as a table of clocks."""


@lru_cache(None)
def attributes(kind: type) -> tuple[str, ...]:
    """The attributes of a class's objects that are in no dictionary: of slots, or of a compiled class."""
    kinds = map(vars, kind.__mro__)
    return tuple(n for k in kinds for n in (*k.get("__slots__", ()), *k.get("__mypyc_attrs__", ())))


def canonical(value: Any, visited: dict[int, None] | None = None) -> Any:
    """A value that is equal for equal states, whatever the order of insertion.

    A node's parts share objects, so each object is followed once.
    """
    if type(value) in PLAIN:
        return value
    visited = {} if visited is None else visited
    if isinstance(value, (set, frozenset)):
        return tuple(sorted(map(repr, value)))
    if isinstance(value, Struct) and value.__struct_config__.frozen:
        return repr(value)
    if isinstance(value, (list, tuple, deque)) or type(value).__name__ == COMPILED_WORDS:
        return tuple(canonical(item, visited) for item in value)
    slots = attributes(type(value))
    if not isinstance(value, dict | Struct) and not hasattr(value, "__dict__") and not slots:
        return repr(value) if isinstance(value, slice | bytearray) else value
    if id(value) in visited:
        return "visited"
    visited[id(value)] = None
    if isinstance(value, dict):
        items = value
    elif isinstance(value, Struct):
        items = structs.asdict(value)
    else:
        items = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        items |= getattr(value, "__dict__", {})
    pairs = ((repr(key), item) for key, item in items.items() if key not in SKIPPED)
    return tuple((key, canonical(item, visited)) for key, item in sorted(pairs, key=lambda pair: pair[0]))
