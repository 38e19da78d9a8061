"""Vectors with one number per process, stored without zeros, and the paper's two operations on them.

The papers send and store whole vectors. We leave zeros out in memory, because processes come and go and most
pairs never exchange a message; sizes count them where the paper does.
"""

from typing import Final, TypeAlias

from precede.core.identity import Count
from precede.protocols.multicast.process import Process

SparseVector: TypeAlias = dict[Process, Count]
"""A number for each process; a missing one is 0. Vectors are shared, so they are replaced, never changed."""

EMPTY: Final[SparseVector] = {}


def union_max(a: SparseVector, b: SparseVector) -> SparseVector:
    """Return the element-wise maximum: prs1997's ∪max. This may be `a` or `b` itself."""
    if not a or a is b:
        return b
    larger = {process: number for process, number in b.items() if a.get(process, 0) < number}
    return {**a, **larger} if larger else a


def minus_max(a: SparseVector, b: SparseVector) -> SparseVector:
    """Return the elements of `a` that are larger than in `b`: prs1997's -max. This may be `a` itself."""
    if not a or not b:
        return a
    return {process: number for process, number in a.items() if b.get(process, 0) < number}
