"""numba kernels that are cached on disk and load quickly from there. Needs numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

F = TypeVar("F", bound=Callable[..., Any])


def cached_kernel(function: F, **options: Any) -> F:
    """Compile a function with numba at its first call, and cache the machine code for later processes."""
    kernel = njit(**options)(function)
    if hasattr(kernel, "py_func"):  # else NUMBA_DISABLE_JIT is set
        kernel._cache = _KernelCache(kernel.py_func)
    return cast(F, kernel)


class _KernelCache(FunctionCache):  # type: ignore[misc, unused-ignore]
    """numba's cache, but a hit does not load everything that a compilation needs.

    numba registers its whole library of typed functions, imports scipy for it, and only then looks into the
    cache: 0.3 s of CPU. Machine code from the cache needs numba's runtime alone. After a miss the compiler
    registers the library itself.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)
