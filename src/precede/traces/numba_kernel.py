"""The numba kernel of contact detection: pieces of contacts from sorted segments (see `traces.kernel`).

Candidate pairs are found window by window. A window lasts about as long as nodes need to move by the range; in
it every segment sweeps a box, and a hashed grid finds the boxes that overlap. For each such pair of segments
the interval in range is computed from the roots of a quadratic in double precision, with an error bound. If the
bound does not determine the microsecond, the sign of the quadratic decides, in double-double arithmetic.

Functions that call each other are in this one file, because numba renews the cached compilation of a function
only when the function's own file changes. Without numba they run as plain Python, with the same result; a whole
day of sixty buses takes seconds, a crowd minutes.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

try:
    from precede.files.kernel_cache import cached_kernel
except ModuleNotFoundError:  # without numba
    cached_kernel = None  # type: ignore[assignment]

from precede.traces.intervals import Floats, Ints

F = TypeVar("F", bound=Callable[..., Any])
Motion: TypeAlias = tuple[float, float, float, float, float, float]
"""t0, x0, y0, t1, x1, y1 of a segment; whole microseconds are exact in a double."""

HAS_NUMBA: Final = cached_kernel is not None
_STILL_M: Final = 1e-9
_CELLS_PER_BOX: Final = 64
_VAIN_TESTS: Final = 4


def jit(function: F) -> F:
    """Compile a function with numba, if it is there, and cache the result on disk."""
    return cached_kernel(function, error_model="numpy") if HAS_NUMBA else function


# Double-double arithmetic: a number is the unevaluated sum of two doubles (Dekker 1971, Knuth TAOCP 4.2.2).


@jit
def _sum(x: float, y: float) -> tuple[float, float]:
    """Return x + y exactly, as the rounded sum and its error."""
    s = x + y
    v = s - x
    return s, (x - (s - v)) + (y - v)


@jit
def _product(x: float, y: float) -> tuple[float, float]:
    """Return x * y exactly, as the rounded product and its error."""
    p = x * y
    t = 134217729.0 * x
    xh = t - (t - x)
    t = 134217729.0 * y
    yh = t - (t - y)
    xl, yl = x - xh, y - yh
    return p, ((xh * yh - p) + xh * yl + xl * yh) + xl * yl


@jit
def _add(x: tuple[float, float], y: tuple[float, float]) -> tuple[float, float]:
    s, e = _sum(x[0], y[0])
    t, f = _sum(x[1], y[1])
    s, e = _sum(s, e + t)
    return _sum(s, e + f)


@jit
def _minus(x: tuple[float, float]) -> tuple[float, float]:
    return -x[0], -x[1]


@jit
def _times(x: tuple[float, float], y: tuple[float, float]) -> tuple[float, float]:
    p, e = _product(x[0], y[0])
    return _sum(p, e + (x[0] * y[1] + x[1] * y[0]))


@jit
def _over(x: tuple[float, float], d: float) -> tuple[float, float]:
    q = x[0] / d
    r = _add(x, _minus(_product(q, d)))
    q, e = _sum(q, r[0] / d)
    r = _add(x, _minus(_times((q, e), (d, 0.0))))
    return _sum(q, e + r[0] / d)


@jit
def _line(t0: float, z0: float, t1: float, z1: float, at: float) -> Any:
    """Return the distance moved until an instant and the speed, in one coordinate, in double-double."""
    speed = _over(_sum(z1, -z0), t1 - t0)
    return _times(speed, (at - t0, 0.0)), speed


@jit
def _quadratic(p: Motion, q: Motion, reach: float, lo: float) -> Any:
    """Return squared distance minus squared range as A t^2 + 2 B t + C, with t from `lo`, in double-double.

    The fourth value is the size of the squares in it; the rounding error is at most 2**-98 of that.
    """
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


@jit
def _beyond(f: Any, t: int) -> float:
    """Return squared distance minus squared range at `lo + t`; zero if it is below the rounding error."""
    square, half_linear, constant, size = f
    time = (float(t), 0.0)
    linear = _times((2.0 * half_linear[0], 2.0 * half_linear[1]), time)
    value = float(_add(_add(_times(_times(square, time), time), linear), constant)[0])
    return value if abs(value) > 2.0**-98 * size else 0.0


@jit
def _decided_exactly(p: Motion, q: Motion, reach: float, lo: float, span: int) -> tuple[int, int]:
    """Return first and last whole microsecond in range within [0, span] from `lo`; (1, 0) for a mere touch."""
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


@jit
def _in_range(p: Motion, q: Motion, reach: float) -> tuple[int, int]:
    """Return first and last whole microsecond at which two segments are in range; start > end if none."""
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


@jit
def _motion(motions: Floats, i: int) -> Motion:
    return motions[i, 0], motions[i, 1], motions[i, 2], motions[i, 3], motions[i, 4], motions[i, 5]


@jit
def _boxes(motions: Floats, active: Ints, reach: float, wb: int, we: int) -> Floats:
    """Return the box that each active segment sweeps in the window, enlarged by half the range all round."""
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


@jit
def _pair(
    node: Ints, motions: Floats, i: int, j: int, reach: float, wb: int, we: int, contacts: Ints, count: int
) -> tuple[Ints, int]:
    """Append the contact of two segments in this window, if there is one; the array grows as needed."""
    if node[i] == node[j]:
        return contacts, count
    if max(motions[i, 0], motions[j, 0], wb) >= min(motions[i, 3], motions[j, 3], we):
        return contacts, count
    if node[i] > node[j]:
        i, j = j, i
    start, end = _in_range(_motion(motions, i), _motion(motions, j), reach)
    start, end = max(start, wb), min(end, we)
    if start >= end:
        return contacts, count
    if count == contacts.shape[1]:
        larger = np.empty((4, 2 * count), dtype=np.int64)
        for side in range(4):
            for k in range(count):
                larger[side, k] = contacts[side, k]
        contacts = larger
    contacts[0, count], contacts[1, count], contacts[2, count], contacts[3, count] = (
        node[i],
        node[j],
        start,
        end,
    )
    return contacts, count + 1


@jit
def _window(
    node: Ints, motions: Floats, active: Ints, reach: float, wb: int, we: int, contacts: Ints, count: int
) -> tuple[Ints, int]:
    """Append the contacts of all pairs of one window whose boxes overlap.

    Each pair is tested once, in the cell that holds the low corner of the overlap. A box that covers very many
    cells is compared with all other boxes instead.
    """
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
        covered = (1 + int(cells[k, 2]) - int(cells[k, 0])) * (1 + int(cells[k, 3]) - int(cells[k, 1]))
        large[k] = covered > _CELLS_PER_BOX
        entries += 0 if large[k] else covered
    for k in range(number):
        if large[k]:
            for m in range(number):
                if (m < k or (m > k and not large[m])) and _overlap(boxes, k, m):
                    contacts, count = _pair(node, motions, active[k], active[m], reach, wb, we, contacts, count)
    if entries == 0:
        return contacts, count
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
                    contacts, count = _pair(node, motions, active[k], active[m], reach, wb, we, contacts, count)
    return contacts, count


@jit
def _filled(cells: Any, large: Any, entries: int) -> Any:
    """Build a grid index of the boxes: the start of each bucket, and box and cell of each entry.

    A bucket is one cell if there are few cells, else all cells with the same hash.
    """
    low_x, low_y, high_x, high_y = 2**40, 2**40, -(2**40), -(2**40)
    for k in range(len(cells)):
        if not large[k]:
            low_x, low_y = min(low_x, int(cells[k, 0])), min(low_y, int(cells[k, 1]))
            high_x, high_y = max(high_x, int(cells[k, 2])), max(high_y, int(cells[k, 3]))
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


@jit
def _overlap(boxes: Floats, k: int, m: int) -> bool:
    return bool(
        boxes[k, 0] <= boxes[m, 2]
        and boxes[m, 0] <= boxes[k, 2]
        and boxes[k, 1] <= boxes[m, 3]
        and boxes[m, 1] <= boxes[k, 3]
    )


@jit
def sweep(node: Ints, motions: Floats, reach: float, begin: int, end: int, width: int) -> Ints:
    """Return all pieces of contacts, window by window, as columns a, b, start, end.

    Segments are sorted by t0. A window ends early when many nodes begin a second or third segment in it.
    """
    contacts = np.empty((4, 1024), dtype=np.int64)
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
            contacts, count = _window(node, motions, active[:number], reach, wb, we, contacts, count)
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
    return contacts[:, :count]
