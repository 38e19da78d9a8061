"""Modules that may be compiled with mypyc (`make compile`), and what they need when they are not."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def mypyc_attr(*_: str, **__: object) -> Callable[[T], T]:
    """Says the compiler that others may subclass; the base install has no `mypy_extensions`, and needs none."""
    return lambda kind: kind


def is_compiled(module: ModuleType) -> bool:
    """Is it machine code?"""
    return not str(module.__file__).endswith(".py")
