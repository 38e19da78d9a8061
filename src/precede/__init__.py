"""Precede: ordered broadcast for networks that move.

`precede.verify(log)` says whether a log keeps its order. What is used is imported when it is first asked for.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

_PUBLIC = ("join", "simulate", "verify")


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'precede' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("precede.api"), name)


def __dir__() -> list[str]:
    return [*globals(), *_PUBLIC]
