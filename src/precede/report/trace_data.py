"""The numbers on a trace's page: when nodes meet, for how long, how often, and how far a message could get."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from precede.report.figures import Point
from precede.report.packing import Ints

_SAMPLES: Final = 80
_WIDTHS_S: Final = (1, 10, 60, 600, 3600, 21600, 86400, 604800)
_MOST_BINS: Final = 200
_BEGINS: Final = (0.0, 0.25, 0.5, 0.75)
MOST_CONTACTS: Final = 300_000
"""A trace with more contacts has no figure of reachability: it takes too long to compute."""


class Meetings(NamedTuple):
    """The contacts of a trace: indices of two nodes, start and end in microseconds from its first instant."""

    nodes: Sequence[str]
    a: Ints
    b: Ints
    start: Ints
    end: Ints

    @property
    def span(self) -> int:
        return int(self.end.max(initial=1))


def meetings_of(contacts: Any) -> Meetings:
    """Return the contacts of a contact list, with time counted from its first instant."""
    begin = contacts.span()[0]
    return Meetings(contacts.names, contacts.a, contacts.b, contacts.start_us - begin, contacts.end_us - begin)


def bin_width(span: int) -> int:
    """Return a round width in microseconds that divides a span into at most 200 parts."""
    return next((w * 1_000_000 for w in _WIDTHS_S if span <= w * 1_000_000 * _MOST_BINS), span // _MOST_BINS)


def begun(meetings: Meetings) -> list[tuple[int, float]]:
    """Return the contacts that begin per hour: the middle of each interval, and the rate in it."""
    width = bin_width(meetings.span)
    counts = np.bincount(meetings.start // width, minlength=-(-meetings.span // width))
    return [(k * width + width // 2, count * 3.6e9 / width) for k, count in enumerate(counts.tolist())]


def neighbours(meetings: Meetings) -> list[tuple[int, float]]:
    """Return the mean number of neighbours of a node at each change of interval, averaged over the interval."""
    width = bin_width(meetings.span)
    edges = np.arange(0, meetings.span + width, width)
    # the time that contacts last up to each edge, summed: a contact adds its part before the edge
    order_start, order_end = np.sort(meetings.start), np.sort(meetings.end)
    lasted = _before(order_start, edges) - _before(order_end, edges)
    mean = 2 * np.diff(lasted) / width / max(1, len(meetings.nodes))
    return list(zip((edges[:-1] + width // 2).tolist(), mean.tolist(), strict=True))


def _before(instants: Ints, edges: Ints) -> Any:
    """Return, for each edge, the sum over all earlier instants of the time from the instant to the edge."""
    sums = np.concatenate(([0.0], np.cumsum(instants.astype(np.float64))))
    count = np.searchsorted(instants, edges)
    return count * edges.astype(np.float64) - sums[count]


def degrees(meetings: Meetings) -> Ints:
    pairs = np.unique(meetings.a * len(meetings.nodes) + meetings.b)
    ends = np.concatenate((pairs // len(meetings.nodes), pairs % len(meetings.nodes)))
    return np.bincount(ends, minlength=len(meetings.nodes))


def gaps(meetings: Meetings) -> Ints:
    order = np.lexsort((meetings.start, meetings.b, meetings.a))
    a, b, start, end = (column[order] for column in meetings[1:])
    same = (a[1:] == a[:-1]) & (b[1:] == b[:-1])
    between: Ints = (start[1:] - end[:-1])[same]
    return between


def ccdf(values: Ints, unit: float) -> list[Point]:
    """Return the share of values above x, at the least value, up to 80 others, and the greatest but one."""
    distinct, counts = np.unique(values, return_counts=True)
    above = 1 - np.cumsum(counts) / max(1, len(values))
    keep = np.unique(np.geomspace(1, max(1, len(distinct)), _SAMPLES).round().astype(np.int64)) - 1
    keep = np.union1d(
        keep,
        np.unique(np.searchsorted(-above, -np.geomspace(1, 1e-4, _SAMPLES)).clip(0, max(0, len(above) - 1))),
    )
    points = [Point(float(distinct[k]) / unit, float(above[k])) for k in keep.tolist() if k < len(distinct)]
    return [point for point in points if point.x > 0 and point.y > 0]


def reached(meetings: Meetings) -> Iterator[tuple[float, list[tuple[int, float]]]]:
    """Yield, for four instants of the trace, the share of pairs that a message born then reaches over time.

    Every node hands everything on to whom it meets, in no time: no routing delivers more.
    """
    order = np.argsort(meetings.start, kind="stable")
    rows = list(zip(*(column[order].tolist() for column in meetings[1:]), strict=True))
    for share in _BEGINS:
        yield share, list(_flood(rows, len(meetings.nodes), int(share * meetings.span), meetings.span))


def _flood(rows: Sequence[tuple[int, ...]], nodes: int, begin: int, span: int) -> Iterator[tuple[int, float]]:
    """Yield instants and shares of one flood. Each node has the set of sources that reached it, as bits."""
    have = [1 << node for node in range(nodes)]
    links: list[dict[int, int]] = [{} for _ in range(nodes)]
    pairs, count = max(1, nodes * (nodes - 1)), 0
    step = max(1, (span - begin) // _SAMPLES)
    due = begin
    for a, b, start, end in rows:
        if end <= begin:
            continue
        now = max(start, begin)
        while now > due:
            yield due, count / pairs
            due += step
        links[a][b] = links[b][a] = end
        count += _share(have, links, a, b, now)
    while due <= span:
        yield due, count / pairs
        due += step


def _share(have: list[int], links: list[dict[int, int]], a: int, b: int, now: int) -> int:
    """Give everything that a and b have to all whom they reach now; return how many pairs are new."""
    both = have[a] | have[b]
    if have[a] == have[b]:
        return 0
    new, todo = 0, [node for node in (a, b) if have[node] != both]
    while todo:
        node = todo.pop()
        if have[node] | both == have[node]:
            continue
        new += (both & ~have[node]).bit_count()
        have[node] |= both
        over = [peer for peer, end in links[node].items() if end <= now]
        for peer in over:
            del links[node][peer]
        todo += links[node]
    return new
