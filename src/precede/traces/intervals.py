"""Segments and contacts as columns of numbers, and the merging of contact lists."""

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Ints: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


class Segments(NamedTuple):
    """Straight motions of nodes from (x0, y0) at t0 to (x1, y1) at t1, in metres and whole microseconds."""

    node: Ints
    t0_us: Ints
    x0: Floats
    y0: Floats
    t1_us: Ints
    x1: Floats
    y1: Floats


class Intervals(NamedTuple):
    """Contacts of pairs with `a < b`, sorted by (a, b, start); those of one pair neither overlap nor touch."""

    a: Ints
    b: Ints
    start_us: Ints
    end_us: Ints


def no_contacts() -> Intervals:
    return Intervals(*(np.empty(0, dtype=np.int64) for _ in Intervals._fields))


def merge_contacts(parts: Iterable[Intervals]) -> Intervals:
    """Return one list from several. Contacts of a pair that overlap or touch are joined, empty ones dropped."""
    lists = list(parts)
    if not lists:
        return no_contacts()
    columns = [np.concatenate(column) for column in zip(*lists, strict=True)]
    long = columns[2] < columns[3]
    a, b, start, end = (column[long] for column in columns)
    order = np.lexsort((start, b, a))
    a, b, start, end = (column[order] for column in (a, b, start, end))
    same = (a[1:] == a[:-1]) & (b[1:] == b[:-1])
    if (same & (end[1:] < end[:-1])).any():
        return _joined(a, b, start, end)
    begins = np.ones(len(a), dtype=bool)
    begins[1:] = ~(same & (start[1:] <= end[:-1]))
    ends = np.append(begins[1:], True)[: len(a)]
    return Intervals(a[begins], b[begins], start[begins], end[ends])


def _joined(a: Ints, b: Ints, start: Ints, end: Ints) -> Intervals:
    """Join the contacts of each pair that overlap or touch, or lie in each other; sorted by pair and start."""
    joined: list[list[int]] = []
    for row in zip(a.tolist(), b.tolist(), start.tolist(), end.tolist(), strict=True):
        last = joined[-1] if joined else None
        if last is not None and last[0] == row[0] and last[1] == row[1] and last[3] >= row[2]:
            last[3] = max(last[3], row[3])
        else:
            joined.append(list(row))
    columns = np.array(joined, dtype=np.int64).T
    return Intervals(*(np.ascontiguousarray(column) for column in columns))
