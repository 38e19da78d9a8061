"""An oracle for contacts: every pair of segments in exact rational arithmetic, without windows or grid.

It shares no code with the kernel: ends of a contact are the roots to eighty digits, rounded inwards, then held
against the exact sign of the quadratic at the neighbouring microseconds.
"""

from __future__ import annotations

from collections import defaultdict
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from itertools import combinations

Segment = tuple[int, int, float, float, int, float, float]
Contact = tuple[int, int, int, int]
STILL = Fraction(1, 10**9)


def place(segment: Segment, t: int) -> tuple[Fraction, Fraction]:
    _, t0, x0, y0, t1, x1, y1 = segment
    part = Fraction(t - t0, t1 - t0)
    fx0, fy0 = Fraction(x0), Fraction(y0)
    return fx0 + (Fraction(x1) - fx0) * part, fy0 + (Fraction(y1) - fy0) * part


def distance_squared(p: Segment, q: Segment, t: int) -> Fraction:
    (px, py), (qx, qy) = place(p, t), place(q, t)
    return (px - qx) ** 2 + (py - qy) ** 2


def as_decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def in_range(p: Segment, q: Segment, reach: float) -> tuple[int, int] | None:
    lo, hi = max(p[1], q[1]), min(p[4], q[4])
    if lo >= hi:
        return None
    (px, py), (qx, qy) = place(p, lo), place(q, lo)
    (px1, py1), (qx1, qy1) = place(p, hi), place(q, hi)
    dx, dy, ex, ey = qx - px, qy - py, qx1 - px1, qy1 - py1
    moved = (ex - dx) ** 2 + (ey - dy) ** 2
    if moved < STILL**2:
        return (lo, hi) if dx * dx + dy * dy <= (Fraction(reach) + STILL) ** 2 else None
    span = hi - lo
    ux, uy = (ex - dx) / span, (ey - dy) / span
    a, b, c = ux * ux + uy * uy, dx * ux + dy * uy, dx * dx + dy * dy - Fraction(reach) ** 2
    if b * b < a * c:
        return None
    with localcontext() as context:
        context.prec = 80
        root = as_decimal(b * b - a * c).sqrt()
        start = int(((as_decimal(-b) - root) / as_decimal(a)).to_integral_value(ROUND_CEILING))
        end = int(((as_decimal(-b) + root) / as_decimal(a)).to_integral_value(ROUND_FLOOR))

    def inside(t: int) -> bool:
        return a * t * t + 2 * b * t + c <= 0

    start -= inside(start - 1)
    end += inside(end + 1)
    assert not inside(start - 1)
    assert not inside(end + 1)
    start, end = lo + max(start, 0), lo + min(end, span)
    return (start, end) if start < end else None


def oracle_contacts(segments: list[Segment], reach: float) -> list[Contact]:
    pieces: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for p, q in combinations(segments, 2):
        if p[0] != q[0] and (piece := in_range(p, q, reach)):
            pieces[min(p[0], q[0]), max(p[0], q[0])].append(piece)
    contacts: list[Contact] = []
    for (a, b), found in sorted(pieces.items()):
        for start, end in sorted(found):
            if contacts and contacts[-1][:2] == (a, b) and contacts[-1][3] >= start:
                contacts[-1] = (a, b, contacts[-1][2], max(end, contacts[-1][3]))
            else:
                contacts.append((a, b, start, end))
    return contacts
