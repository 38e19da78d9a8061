"""Modules that may be compiled with mypyc (`make compile`), and what they need when they are not."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def mypyc_attr(*_: str, **__: object) -> Callable[[T], T]:
    """Says the compiler that others may subclass; the base install has no `mypy_extensions`, and needs none."""
    return lambda kind: kind


def read_i64_le(data: bytes, place: int) -> int:
    """The whole number that stands there in eight bytes; compiled code has an instruction for it."""
    return int.from_bytes(data[place : place + 8], "little", signed=True)


def is_compiled(module: ModuleType) -> bool:
    """Is it machine code?"""
    return not str(module.__file__).endswith(".py")
