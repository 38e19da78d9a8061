"""Memory: keep what was freed for the next allocation, and look for garbage when there is some.

A block of rows is a dozen of arrays, which are made and freed for every block. glibc gives freed memory of this
size back to the kernel and gets it again page by page, each with a fault: a third of the CPU time of
`benchmarks.engine`.
"""

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

_MOST_KEPT: Final = 32 << 20
"""Free memory at the end of the heap beyond this goes back to the kernel, and so do larger single arrays."""
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""Parameters of `mallopt`, from glibc's malloc.h."""


@cache
def keep_freed_memory() -> bool:
    """Let this process keep freed memory of up to 32 MiB. Returns whether it does: not without glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    return all(mallopt(name, _MOST_KEPT) == 1 for name in (_TRIM_THRESHOLD, _MMAP_THRESHOLD))


@contextmanager
def without_collections() -> Iterator[None]:
    """Collect no garbage in a block that builds and uses a world; the next collection frees the world whole.

    A collection would walk all objects of the world and find nothing: that took up to a fifth of the time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
