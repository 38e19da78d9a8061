"""The independent witness: exact verdicts from rows alone, explained.

May import: core, eventlog

`precede.verify(log)` is the function of `witness.py`: the package itself can be called, because a function and
a room of one name would otherwise hide each other, depending on which was imported first.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from precede.verify.verdict import Verdict


class _CallableRoom(ModuleType):
    def __call__(self, source: Any, order: str | None = None, **options: Any) -> Verdict:
        from precede.verify.witness import verify

        return verify(source, order, **options)


sys.modules[__name__].__class__ = _CallableRoom
