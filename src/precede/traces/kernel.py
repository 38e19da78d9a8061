"""Exact contact intervals of nodes that move in straight segments (DESIGN section 5, lake table `segments`).

Two nodes in straight motion are `|p + u t|` apart, whose square is a quadratic in time; its roots are the ends
of a contact, so nothing is sampled and no pass, however short, is missed. What counts as a contact:

* Nodes are in range at an instant when both are present and their distance is at most the range: a touch at
  exactly the range is in range.
* A contact is written in whole microseconds: `start_us` is the first and `end_us` the last whole microsecond of
  a stretch in range. A stretch that holds fewer than two of them has no length and is no contact: a tangential
  touch (the distance reaches the range at one instant and grows again), a contact cut to nothing by a node that
  enters or leaves, a pass quicker than a microsecond.
* Two nodes whose relative position changes by less than a nanometre while both segments last stand still
  relative to each other; they are in range up to a nanometre beyond it. (A convoy at exactly the range is one
  contact, though its coordinates were rounded.)
* A node is absent between two segments that do not join. Where one ends at the microsecond at which another
  begins the node stays present, and a contact goes on through the joint. Contacts that abut are one.

The microsecond is decided exactly: roots are computed in double precision with an error bound, and where that
leaves the microsecond open, the sign of the quadratic is taken in double-double arithmetic (106 bits). An
interval is a function of the two whole segments alone, never of how time was cut: any number of slices, merged,
gives the same contacts, bit for bit.

Candidates are found window by window (of about the time in which nodes move by the range) on a hashed grid of
the boxes that the segments sweep in that window. All compiled code stands in this one file, because a cached
compilation is only renewed when its own file changes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, TypeAlias, TypeVar, cast

import numpy as np
from numba import njit

from precede.core.errors import BadInput
from precede.core.instants import Instant
from precede.traces.intervals import Floats, Intervals, Ints, Segments, merge_contacts, no_contacts

__all__ = ["Intervals", "Segments", "checked", "cut_time", "find_contacts", "merge_contacts"]

F = TypeVar("F", bound=Callable[..., Any])
Motion: TypeAlias = tuple[float, float, float, float, float, float]
"""t0, x0, y0, t1, x1, y1 of a segment; whole microseconds are exact in a double."""

MAX_INSTANT_US: Final = 2**52
MAX_COORDINATE_M: Final = 1e9
_STILL_M: Final = 1e-9
_CELLS_PER_BOX: Final = 64
_VAIN_TESTS: Final = 4


def find_contacts(
    segments: Segments, range_m: float, begin_us: Instant | None = None, end_us: Instant | None = None
) -> Intervals:
    """All contacts within `range_m`, cut to the slice [begin, end] where one is given.

    A slice needs only the segments that overlap it; more do no harm. Segments may come in any order. Segments
    of one node should not overlap (where they do, the node is in both places).
    """
    segments = checked(segments)
    if not (np.isfinite(range_m) and 0 < range_m <= MAX_COORDINATE_M):
        raise BadInput(f"not a range in metres: {range_m!r}")
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
    found = _sweep(node, motions, float(range_m), first, last, _window_width(motions, range_m, last - first))
    a, b, start, end = found
    whole = _joined(a, b, start, end, _sorted_by_pair(a, b, int(node.max()) + 1))
    return whole if names is None else Intervals(names[whole.a], names[whole.b], whole.start_us, whole.end_us)


def cut_time(segments: Segments, count: int) -> list[tuple[Instant, Instant]]:
    """At most `count` slices that cover all segments, each with about as much time of nodes in it."""
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
    """The same segments with the types the kernel needs; raises BadInput on what cannot be a motion."""
    types = (np.int64, np.int64, np.float64, np.float64, np.int64, np.float64, np.float64)
    columns: list[Any] = [np.asarray(c, dtype=t) for c, t in zip(segments, types, strict=True)]
    if any(c.ndim != 1 or len(c) != len(columns[0]) for c in columns):
        raise BadInput("segments: the seven columns must be flat and equally long")
    result = Segments(*columns)
    for c in (result.x0, result.y0, result.x1, result.y1):
        if not (np.abs(c) <= MAX_COORDINATE_M).all():
            raise BadInput(f"segments: a coordinate is not a number within {MAX_COORDINATE_M:g} m")
    for t in (result.t0_us, result.t1_us):
        if not ((t >= -MAX_INSTANT_US) & (t <= MAX_INSTANT_US)).all():
            raise BadInput("segments: an instant lies more than 142 years from zero")
    if (result.t1_us < result.t0_us).any():
        raise BadInput("segments: one ends before it begins")
    if len(result.node) and (result.node.min() < 0 or result.node.max() >= 2**31):
        raise BadInput("segments: node ids must lie between 0 and 2**31 - 1")
    return result


def _window_width(motions: Floats, range_m: float, span_us: int) -> int:
    """How long a window lasts at most: a segment's mean duration (else pairs are tested that never coexist), or
    the time in which nodes move by twice the range (else boxes grow).

    A matter of speed only, never of the result. The fastest hundredth of the time is left out of the mean, so
    that one impossible jump does not make windows tiny; and they never outnumber segments by far.
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
    """In that order, overlapping and abutting pieces of one pair joined, pieces without length left out."""
    a, b, start, end = (column[order] for column in (a, b, start, end))
    count = _join(a, b, start, end)
    return Intervals(*(column[:count].copy() for column in (a, b, start, end)))


def _compiled(function: F) -> F:
    return cast(F, njit(cache=True, error_model="numpy")(function))


@_compiled
def _sorted_by_pair(a: Ints, b: Ints, nodes: int) -> Ints:
    """The order of (a, b), by counting: pieces of one pair stay in the order in which they came."""
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


@_compiled
def _join(a: Ints, b: Ints, start: Ints, end: Ints) -> int:
    """Join the pieces of each pair, in place. They come nearly in order of time, so insertion sorts them."""
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


# Double-double arithmetic: a number is the unevaluated sum of two doubles (Dekker 1971, Knuth TAOCP 4.2.2).


@_compiled
def _sum(x: float, y: float) -> tuple[float, float]:
    s = x + y
    v = s - x
    return s, (x - (s - v)) + (y - v)


@_compiled
def _product(x: float, y: float) -> tuple[float, float]:
    p = x * y
    t = 134217729.0 * x
    xh = t - (t - x)
    t = 134217729.0 * y
    yh = t - (t - y)
    xl, yl = x - xh, y - yh
    return p, ((xh * yh - p) + xh * yl + xl * yh) + xl * yl


@_compiled
def _add(x: tuple[float, float], y: tuple[float, float]) -> tuple[float, float]:
    s, e = _sum(x[0], y[0])
    t, f = _sum(x[1], y[1])
    s, e = _sum(s, e + t)
    return _sum(s, e + f)


@_compiled
def _minus(x: tuple[float, float]) -> tuple[float, float]:
    return -x[0], -x[1]


@_compiled
def _times(x: tuple[float, float], y: tuple[float, float]) -> tuple[float, float]:
    p, e = _product(x[0], y[0])
    return _sum(p, e + (x[0] * y[1] + x[1] * y[0]))


@_compiled
def _over(x: tuple[float, float], d: float) -> tuple[float, float]:
    q = x[0] / d
    r = _add(x, _minus(_product(q, d)))
    q, e = _sum(q, r[0] / d)
    r = _add(x, _minus(_times((q, e), (d, 0.0))))
    return _sum(q, e + r[0] / d)


@_compiled
def _line(t0: float, z0: float, t1: float, z1: float, at: float) -> Any:
    """Way gone until an instant and speed per microsecond in one coordinate, in double-double."""
    speed = _over(_sum(z1, -z0), t1 - t0)
    return _times(speed, (at - t0, 0.0)), speed


@_compiled
def _quadratic(p: Motion, q: Motion, reach: float, lo: float) -> Any:
    """Squared distance minus squared range as A t^2 + 2 B t + C, t from `lo`, in double-double; and the size of
    the squares that went in, of which rounding is a part in 2**98 at most."""
    ti0, xi0, yi0, ti1, xi1, yi1 = p
    tj0, xj0, yj0, tj1, xj1, yj1 = q
    xi, ui = _line(ti0, xi0, ti1, xi1, lo)
    xj, uj = _line(tj0, xj0, tj1, xj1, lo)
    yi, vi = _line(ti0, yi0, ti1, yi1, lo)
    yj, vj = _line(tj0, yj0, tj1, yj1, lo)
    px = _add(_sum(xj0, -xi0), _add(xj, _minus(xi)))
    py = _add(_sum(yj0, -yi0), _add(yj, _minus(yi)))
    ux, uy = _add(uj, _minus(ui)), _add(vj, _minus(vi))
    square = _add(_times(ux, ux), _times(uy, uy))
    half_linear = _add(_times(px, ux), _times(py, uy))
    distance = _add(_times(px, px), _times(py, py))
    way = abs(xi1 - xi0) + abs(xj1 - xj0) + abs(yi1 - yi0) + abs(yj1 - yj0)
    size = distance[0] + reach * reach + way * way
    return square, half_linear, _add(distance, _minus(_product(reach, reach))), size


@_compiled
def _beyond(f: Any, t: int) -> float:
    """Squared distance minus squared range at `lo + t`; zero where rounding cannot tell it from zero."""
    square, half_linear, constant, size = f
    time = (float(t), 0.0)
    linear = _times((2.0 * half_linear[0], 2.0 * half_linear[1]), time)
    value = float(_add(_add(_times(_times(square, time), time), linear), constant)[0])
    return value if abs(value) > 2.0**-98 * size else 0.0


@_compiled
def _decided_exactly(p: Motion, q: Motion, reach: float, lo: float, span: int) -> tuple[int, int]:
    """First and last whole microsecond in range within [0, span] from `lo`, by bisection on the exact sign.

    If the range is at best touched, there is no stretch.
    """
    f = _quadratic(p, q, reach, lo)
    vertex = -f[1][0] / f[0][0]
    middle = int(min(max(vertex, 0.0), float(span)))
    if middle < span and _beyond(f, middle + 1) < _beyond(f, middle):
        middle += 1
    if _beyond(f, middle) >= 0.0:
        return 1, 0
    out, start = -1, middle
    while start - out > 1:
        probe = (out + start) >> 1
        if _beyond(f, probe) <= 0.0:
            start = probe
        else:
            out = probe
    end, out = middle, span + 1
    while out - end > 1:
        probe = (out + end) >> 1
        if _beyond(f, probe) <= 0.0:
            end = probe
        else:
            out = probe
    return start, end


@_compiled
def _in_range(p: Motion, q: Motion, reach: float) -> tuple[int, int]:
    """First and last whole microsecond of range between two segments; start > end if there is none."""
    ti0, xi0, yi0, ti1, xi1, yi1 = p
    tj0, xj0, yj0, tj1, xj1, yj1 = q
    first, last = max(ti0, tj0), min(ti1, tj1)
    span = last - first
    if span <= 0.0:
        return 1, 0
    lo = int(first)
    fi, fj = 1.0 / (ti1 - ti0), 1.0 / (tj1 - tj0)
    uxi, uyi = (xi1 - xi0) * fi, (yi1 - yi0) * fi
    uxj, uyj = (xj1 - xj0) * fj, (yj1 - yj0) * fj
    ai, aj = first - ti0, first - tj0
    px, py = (xj0 + uxj * aj) - (xi0 + uxi * ai), (yj0 + uyj * aj) - (yi0 + uyi * ai)
    ux, uy = uxj - uxi, uyj - uyi
    speed = np.sqrt(ux * ux + uy * uy)
    if speed * span < _STILL_M:
        if np.sqrt(px * px + py * py) <= reach + _STILL_M:
            return lo, int(last)
        return 1, 0
    vertex = -(px * ux + py * uy) / (speed * speed)
    miss = (px * uy - py * ux) / speed
    scale = abs(xi0) + abs(xj0) + abs(yi0) + abs(yj0) + abs(px) + abs(py) + reach
    scale += abs(xi1 - xi0) + abs(xj1 - xj0) + abs(yi1 - yi0) + abs(yj1 - yj0)
    blur = 1e-14 * scale
    if abs(miss) > reach + blur:
        return 1, 0
    chord = np.sqrt(max(reach * reach - miss * miss, 0.0))
    half = chord / speed
    error = 1e-15 * (abs(vertex) + half) + (blur * (reach + blur) / chord / speed if chord > 0.0 else np.inf)
    begin, finish = vertex - half, vertex + half
    if finish < -1.0 - error or begin > span + 1.0 + error:
        return 1, 0
    start, end = 0, int(span)
    if error < 0.25:
        open_start = abs(begin - np.rint(begin)) <= error and -1.0 <= begin <= span + 1.0
        open_end = abs(finish - np.rint(finish)) <= error and -1.0 <= finish <= span + 1.0
        if not open_start and not open_end:
            if begin > 0.0:
                start = int(np.ceil(begin))
            if finish < span:
                end = int(np.floor(finish))
            return lo + start, lo + end
    start, end = _decided_exactly(p, q, reach, first, int(span))
    return lo + start, lo + end


@_compiled
def _motion(motions: Floats, i: int) -> Motion:
    return motions[i, 0], motions[i, 1], motions[i, 2], motions[i, 3], motions[i, 4], motions[i, 5]


@_compiled
def _boxes(motions: Floats, active: Ints, reach: float, wb: int, we: int) -> Floats:
    """What each active segment sweeps in the window, half the range larger on every side."""
    boxes = np.empty((len(active), 4))
    for k in range(len(active)):
        t0, x0, y0, t1, x1, y1 = _motion(motions, active[k])
        f, g = (max(t0, wb) - t0) / (t1 - t0), (min(t1, we) - t0) / (t1 - t0)
        xa, xb = x0 + (x1 - x0) * f, x0 + (x1 - x0) * g
        ya, yb = y0 + (y1 - y0) * f, y0 + (y1 - y0) * g
        edge = reach * 0.5 + 1e-6 + 1e-12 * (abs(x0) + abs(y0) + abs(x1) + abs(y1))
        boxes[k, 0], boxes[k, 1] = min(xa, xb) - edge, min(ya, yb) - edge
        boxes[k, 2], boxes[k, 3] = max(xa, xb) + edge, max(ya, yb) + edge
    return boxes


@_compiled
def _pair(
    node: Ints, motions: Floats, i: int, j: int, reach: float, wb: int, we: int, found: Ints, count: int
) -> tuple[Ints, int]:
    """Append what two segments contribute to this window."""
    if node[i] == node[j]:
        return found, count
    if max(motions[i, 0], motions[j, 0], wb) >= min(motions[i, 3], motions[j, 3], we):
        return found, count
    if node[i] > node[j]:
        i, j = j, i
    start, end = _in_range(_motion(motions, i), _motion(motions, j), reach)
    start, end = max(start, wb), min(end, we)
    if start >= end:
        return found, count
    if count == found.shape[1]:
        larger = np.empty((4, 2 * count), dtype=np.int64)
        for side in range(4):
            for k in range(count):
                larger[side, k] = found[side, k]
        found = larger
    found[0, count], found[1, count], found[2, count], found[3, count] = node[i], node[j], start, end
    return found, count + 1


@_compiled
def _window(
    node: Ints, motions: Floats, active: Ints, reach: float, wb: int, we: int, found: Ints, count: int
) -> tuple[Ints, int]:
    """All pairs of one window whose boxes overlap: each is tested in the one cell that holds the low corner of
    the overlap. A box over very many cells is held against all others instead."""
    boxes = _boxes(motions, active, reach, wb, we)
    number = len(active)
    extent = 0.0
    for k in range(number):
        extent += boxes[k, 2] - boxes[k, 0] + boxes[k, 3] - boxes[k, 1]
    cell = max(reach, extent / number * 0.5, 1.0)
    cells = np.empty((number, 4), dtype=np.int32)
    large = np.zeros(number, dtype=np.bool_)
    entries = 0
    for k in range(number):
        for side in range(4):
            cells[k, side] = int(np.floor(boxes[k, side] / cell))
        covered = (1 + cells[k, 2] - cells[k, 0]) * (1 + cells[k, 3] - cells[k, 1])
        large[k] = covered > _CELLS_PER_BOX
        entries += 0 if large[k] else covered
    for k in range(number):
        if large[k]:
            for m in range(number):
                if (m < k or (m > k and not large[m])) and _overlap(boxes, k, m):
                    found, count = _pair(node, motions, active[k], active[m], reach, wb, we, found, count)
    if entries == 0:
        return found, count
    first, held = _filled(cells, large, entries)
    for place in range(len(first) - 1):
        for at in range(first[place], first[place + 1]):
            k, cx, cy = int(held[at, 0]), held[at, 1], held[at, 2]
            for other in range(first[place], at):
                m = int(held[other, 0])
                if held[other, 1] != cx or held[other, 2] != cy:
                    continue
                if max(cells[k, 0], cells[m, 0]) != cx or max(cells[k, 1], cells[m, 1]) != cy:
                    continue
                if _overlap(boxes, k, m):
                    found, count = _pair(node, motions, active[k], active[m], reach, wb, we, found, count)
    return found, count


@_compiled
def _filled(cells: Any, large: Any, entries: int) -> Any:
    """Boxes by the cells they cover, sorted by counting: where each bucket begins; box and cell of each entry.

    Buckets are the cells themselves, row by row, where they are few enough, else a hash of them.
    """
    low_x, low_y, high_x, high_y = 2**40, 2**40, -(2**40), -(2**40)
    for k in range(len(cells)):
        if not large[k]:
            low_x, low_y = min(low_x, cells[k, 0]), min(low_y, cells[k, 1])
            high_x, high_y = max(high_x, cells[k, 2]), max(high_y, cells[k, 3])
    rows = high_y - low_y + 1
    size = (high_x - low_x + 1) * rows
    mask = 0
    if size > 4 * entries + 64:
        mask = 1
        while mask < 2 * entries:
            mask *= 2
        size = mask
        mask -= 1
    first = np.zeros(size + 2, dtype=np.int32)
    held = np.empty((entries, 3), dtype=np.int32)
    for filling in (False, True):
        for k in range(len(cells)):
            if not large[k]:
                for cx in range(cells[k, 0], cells[k, 2] + 1):
                    for cy in range(cells[k, 1], cells[k, 3] + 1):
                        if mask:
                            h = cx * 73856093 ^ cy * 19349663
                            place = (h ^ (h >> 15)) & mask
                        else:
                            place = (cx - low_x) * rows + cy - low_y
                        if filling:
                            at = first[place + 1]
                            held[at, 0], held[at, 1], held[at, 2] = k, cx, cy
                            first[place + 1] = at + 1
                        else:
                            first[place + 2] += 1
        if not filling:
            for place in range(size + 1):
                first[place + 1] += first[place]
    return first[: size + 1], held


@_compiled
def _overlap(boxes: Floats, k: int, m: int) -> bool:
    return bool(
        boxes[k, 0] <= boxes[m, 2]
        and boxes[m, 0] <= boxes[k, 2]
        and boxes[k, 1] <= boxes[m, 3]
        and boxes[m, 1] <= boxes[k, 3]
    )


@_compiled
def _sweep(node: Ints, motions: Floats, reach: float, begin: int, end: int, width: int) -> Ints:
    """All pieces of contacts, window after window; segments sorted by t0, each longer than nothing.

    A window ends early when nodes begin their second, third, ... segments in it: of these only one pair in
    several exists at the same time, and the others are tested for nothing.
    """
    found = np.empty((4, 1024), dtype=np.int64)
    count = 0
    active = np.empty(len(node), dtype=np.int64)
    held = np.zeros(node.max() + 1, dtype=np.int64)
    number, upcoming = 0, 0
    wb = begin
    while wb < end:
        if number == 0 and upcoming < len(node):
            wb = max(wb, int(motions[upcoming, 0]))
        elif number == 0:
            break
        we = min(wb + width, end)
        vain, bound = 0, 64 + _VAIN_TESTS * number
        while upcoming < len(node) and motions[upcoming, 0] < we:
            if vain > bound and motions[upcoming, 0] > wb:
                we = int(motions[upcoming, 0])
                break
            active[number] = upcoming
            vain += held[node[upcoming]]
            held[node[upcoming]] += 1
            number += 1
            upcoming += 1
        if number > 1:
            found, count = _window(node, motions, active[:number], reach, wb, we, found, count)
        kept = 0
        for k in range(number):
            held[node[active[k]]] = 0
        for k in range(number):
            if motions[active[k], 3] > we:
                active[kept] = active[k]
                held[node[active[k]]] += 1
                kept += 1
        number = kept
        wb = we
    return found[:, :count]
