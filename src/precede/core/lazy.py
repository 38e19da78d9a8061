"""A property that is computed when it is first read.

It is the cached property of functools without its lock, which Python 3.11 takes at each computation: a packet
of the runtime paid a microsecond for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 - a decorator
    """Computes a value at its first use and keeps it in the object's `__dict__`, where later reads find it."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, owner: Any, kind: Any = None) -> T:
        value = owner.__dict__[self._compute.__name__] = self._compute(owner)
        return value
