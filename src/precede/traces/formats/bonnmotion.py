"""Reads BonnMotion's movement: a line per node, `t x y t x y …`, in seconds and metres.

Between two waypoints a node moves in a straight line. It is present from its first to its last waypoint. Nodes
are called 0, 1, … by their line, as in BonnMotion's own exports. A line that cannot be used rejects its node.
Movement in three dimensions (`t x y z …`) needs `--columns time,x,y,z`; z is ignored.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from precede.core.errors import BadInput
from precede.files.lines import BadRow, data_lines
from precede.traces.lines import coordinate, instant
from precede.traces.records import Nodes, Row, SegmentRow, Summary

_COLUMNS: Final = ("time", "x", "y")


def read_bonnmotion(
    lines: Iterable[tuple[int, str]], summary: Summary, columns: list[str] | None = None
) -> Iterator[Row]:
    """Yields the segments of each node, and rejects; memory holds one line."""
    layout = list(_COLUMNS) if columns is None else columns
    absent = [name for name in _COLUMNS if name not in layout]
    if absent:
        raise BadInput(f"--columns for bonnmotion is a list such as time,x,y,z; it lacks {', '.join(absent)}")
    nodes = Nodes(summary)
    for number, (line, text) in enumerate(data_lines(lines)):
        summary.rows_read += 1
        try:
            rows = list(_node(str(number), text.split(), layout))
        except BadRow as error:
            yield summary.reject(line, str(error))
            continue
        summary.rows_kept += 1
        nodes.add(str(number))
        yield from rows


def _node(name: str, words: list[str], layout: list[str]) -> Iterator[SegmentRow]:
    """Yield the segments of one node. Raises BadRow if a waypoint is wrong or there is none."""
    width = len(layout)
    if len(words) % width:
        raise BadRow(f"not a whole number of waypoints: {len(words)} fields by {width} (see --columns)")
    if len(words) < 2 * width:
        raise BadRow("fewer than two waypoints")
    time, x, y = (layout.index(column) for column in _COLUMNS)
    points = [
        (instant(words[k + time]), coordinate(words[k + x], "x"), coordinate(words[k + y], "y"))
        for k in range(0, len(words), width)
    ]
    for before, after in pairwise(points):
        if after[0] < before[0]:
            raise BadRow("time out of order for this node")
        if after[0] > before[0]:
            yield SegmentRow(name, *before, *after)
        elif after[1:] != before[1:]:
            raise BadRow("two positions at the same instant")
