"""Exact contacts of nodes that move in straight segments (the lake's table `segments`).

The distance of two nodes in straight motion is `|p + u t|`; its square is a quadratic in time, and its roots
are the ends of a contact. Nothing is sampled, so no pass is missed, however short. The definition of a contact:

* Two nodes are in range at an instant if both are present and their distance is at most the range. A distance
  of exactly the range is in range.
* A contact is written in whole microseconds: `start_us` is the first and `end_us` the last whole microsecond
  in range. An interval with fewer than two whole microseconds is no contact: a tangential touch, an interval
  that a node cuts by entering or leaving, a pass shorter than a microsecond.
* If the relative position of two nodes changes by less than a nanometre while both segments last, they are at
  rest relative to each other, and in range up to a nanometre beyond the range. So a convoy at exactly the range
  is one contact, although its coordinates were rounded.
* A node is absent between two segments that do not join. If one segment ends at the microsecond at which the
  next begins, the node stays present and a contact continues. Contacts that touch are joined.

The microsecond is decided exactly (`traces.numba_kernel`). An interval depends on the two whole segments only,
never on how time was cut: any number of slices, merged, gives the same contacts, bit for bit.
"""

import logging
from itertools import pairwise
from typing import Any, Final

import numpy as np

from precede.core.errors import BadInput
from precede.core.instants import Instant
from precede.traces.intervals import Floats, Intervals, Ints, Segments, merge_contacts, no_contacts
from precede.traces.numba_kernel import HAS_NUMBA, jit, sweep

__all__ = ["Intervals", "Segments", "checked", "cut_time", "find_contacts", "merge_contacts"]

MAX_INSTANT_US: Final = 2**52
MAX_COORDINATE_M: Final = 1e9
_MANY_SEGMENTS: Final = 2_000
_log: Final = logging.getLogger("precede")


def find_contacts(
    segments: Segments, range_m: float, begin_us: Instant | None = None, end_us: Instant | None = None
) -> Intervals:
    """Return all contacts within `range_m` of segments in any order, cut to the slice [begin_us, end_us]."""
    segments = checked(segments)
    if not (np.isfinite(range_m) and 0 < range_m <= MAX_COORDINATE_M):
        raise BadInput(f"expected a range in metres, got {range_m!r}")
    lasting = segments.t1_us > segments.t0_us
    if begin_us is not None:
        lasting &= segments.t1_us > begin_us
    if end_us is not None:
        lasting &= segments.t0_us < end_us
    kept = np.flatnonzero(lasting)
    if len(kept) == 0:
        return no_contacts()
    kept = kept[np.argsort(segments.t0_us[kept], kind="stable")]
    node, names = segments.node[kept], None
    if int(node.max()) > 4 * len(node) + 1024:
        names, node = np.unique(node, return_inverse=True)
    motions = np.column_stack([column[kept].astype(np.float64) for column in segments[1:]])
    first, last = int(motions[0, 0]), int(motions[:, 3].max())
    first = first if begin_us is None else max(begin_us, first)
    last = last if end_us is None else min(end_us, last)
    if not HAS_NUMBA and len(kept) > _MANY_SEGMENTS:
        _log.warning(
            "%s segments in plain Python, which is slow: pip install 'precede[fast]'", f"{len(kept):,}"
        )
    pieces = sweep(node, motions, float(range_m), first, last, _window_width(motions, range_m, last - first))
    a, b, start, end = pieces
    whole = _joined(a, b, start, end, _sorted_by_pair(a, b, int(node.max()) + 1))
    return whole if names is None else Intervals(names[whole.a], names[whole.b], whole.start_us, whole.end_us)


def cut_time(segments: Segments, count: int) -> list[tuple[Instant, Instant]]:
    """Divide time into at most `count` slices with about the same sum of segment durations."""
    present = segments.t1_us > segments.t0_us
    if count < 1 or not present.any():
        return []
    instants = np.concatenate((segments.t0_us[present], segments.t1_us[present]))
    steps = np.repeat(np.array([1, -1]), int(present.sum()))
    order = np.argsort(instants, kind="stable")
    instants = instants[order]
    work = np.concatenate(
        ([0.0], np.cumsum(np.cumsum(steps[order])[:-1] * np.diff(instants).astype(np.float64)))
    )
    inner = np.interp(np.arange(1, count) / count * work[-1], work, instants).astype(np.int64)
    edges = np.unique(np.concatenate((instants[:1], inner, instants[-1:])))
    return list(pairwise(edges.tolist()))


def checked(segments: Segments) -> Segments:
    """Return the segments with the types that the kernel needs. Raises BadInput for an impossible value."""
    types = (np.int64, np.int64, np.float64, np.float64, np.int64, np.float64, np.float64)
    columns: list[Any] = [np.asarray(c, dtype=t) for c, t in zip(segments, types, strict=True)]
    if any(c.ndim != 1 or len(c) != len(columns[0]) for c in columns):
        raise BadInput("segments: the seven columns must be one-dimensional and equally long")
    result = Segments(*columns)
    for c in (result.x0, result.y0, result.x1, result.y1):
        if not (np.abs(c) <= MAX_COORDINATE_M).all():
            raise BadInput(f"segments: a coordinate is not a number within {MAX_COORDINATE_M:g} m")
    for t in (result.t0_us, result.t1_us):
        if not ((t >= -MAX_INSTANT_US) & (t <= MAX_INSTANT_US)).all():
            raise BadInput("segments: an instant lies more than 142 years from zero")
    if (result.t1_us < result.t0_us).any():
        raise BadInput("segments: a segment ends before it begins")
    if len(result.node) and (result.node.min() < 0 or result.node.max() >= 2**31):
        raise BadInput("segments: node ids must lie between 0 and 2**31 - 1")
    return result


def _window_width(motions: Floats, range_m: float, span_us: int) -> int:
    """Return the longest duration of a window; it affects speed only, never the result.

    It is the mean duration of a segment (longer windows test pairs that never coexist), or the time in which
    nodes move by twice the range (longer windows have large boxes), whichever is less. The fastest hundredth of
    the time is left out, so that one impossible jump does not make windows tiny.
    """
    some = motions[:: max(1, len(motions) // 20_000)]
    durations = some[:, 3] - some[:, 0]
    ways = np.hypot(some[:, 4] - some[:, 1], some[:, 5] - some[:, 2])
    order = np.argsort(ways / durations, kind="stable")
    passed = np.cumsum(durations[order])
    slow = order[passed <= 0.99 * passed[-1]]
    moved = float(ways[slow].sum())
    crossing = range_m * float(durations[slow].sum()) / moved if moved > 0 else np.inf
    return max(
        int(min(2 * crossing, float(durations.mean()), span_us)), span_us // (4 * len(motions) + 1024) + 1
    )


def _joined(a: Ints, b: Ints, start: Ints, end: Ints, order: Ints) -> Intervals:
    """Make contacts of pieces in the order `order`. Pieces of one pair that overlap or touch are joined."""
    a, b, start, end = (column[order] for column in (a, b, start, end))
    count = _join(a, b, start, end)
    return Intervals(*(column[:count].copy() for column in (a, b, start, end)))


@jit
def _sorted_by_pair(a: Ints, b: Ints, nodes: int) -> Ints:
    """Return the indices that sort pieces by (a, b), by counting sort; pieces of one pair keep their order."""
    order = np.arange(len(a))
    for key in (b, a):
        place = np.zeros(nodes + 1, dtype=np.int64)
        for k in range(len(key)):
            place[key[k] + 1] += 1
        for n in range(nodes):
            place[n + 1] += place[n]
        following = np.empty(len(key), dtype=np.int64)
        for k in range(len(key)):
            at = order[k]
            following[place[key[at]]] = at
            place[key[at]] += 1
        order = following
    return order


@jit
def _join(a: Ints, b: Ints, start: Ints, end: Ints) -> int:
    """Join the nearly sorted pieces of each pair in place, by insertion sort. Returns how many remain."""
    count = 0
    for i in range(len(a)):
        k = i
        s, e = start[i], end[i]
        while k > 0 and a[k - 1] == a[i] and b[k - 1] == b[i] and start[k - 1] > s:
            start[k], end[k] = start[k - 1], end[k - 1]
            k -= 1
        start[k], end[k] = s, e
    for i in range(len(a)):
        if start[i] >= end[i]:
            continue
        if count and a[count - 1] == a[i] and b[count - 1] == b[i] and end[count - 1] >= start[i]:
            end[count - 1] = max(end[count - 1], end[i])
            continue
        a[count], b[count], start[count], end[count] = a[i], b[i], start[i], end[i]
        count += 1
    return count
