"""Reads The ONE's movement: first line `minTime maxTime minX maxX minY maxY`, then `time id x y`, in metres.

Between two rows a node moves in a straight line; it is present from its first to its last row. A row outside
the bounds of the first line is kept and noted.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

import numpy as np

from precede.core.instants import SECOND
from precede.files.lines import BadRow, data_lines, name_of
from precede.traces.formats.columns import is_numeric
from precede.traces.formats.one import read_one_events
from precede.traces.formats.plain_columns import PlainBlock, PlainBlocks, are_coordinates, blank_in, instants_of
from precede.traces.lines import coordinate, instant
from precede.traces.records import Row, Summary
from precede.traces.tracks import Samples, Tracks

_OUTSIDE: Final = "rows outside the bounds of the first line, kept"


def read_one(lines: Iterable[tuple[int, str]], summary: Summary) -> Iterator[Row]:
    """Reads any file of The ONE: movement if the first line has six numbers, else contacts and messages."""
    content = data_lines(lines)
    first = next(content, None)
    if first is None:
        return iter(())
    words = first[1].split()
    if len(words) == 6 and all(is_numeric(word) for word in words):
        return read_one_movement([float(word) for word in words], content, summary, lines)
    return read_one_events(chain([first], content), summary, lines)


def read_one_movement(
    bounds: list[float], content: Iterable[tuple[int, str]], summary: Summary, lines: object
) -> Iterator[Row]:
    """Yields the segments between the rows of each node, and rejects. `content` are the rows in `lines`."""
    tracks = Tracks(summary)
    bounds = [bounds[0] * SECOND, bounds[1] * SECOND, *bounds[2:]]
    blocks = None
    for line, text in content:
        words = text.split()
        if blocks is None:
            blocks = PlainBlocks(lines, len(words), (1,), (0, 2, 3), _samples, blank_in(text))
        try:
            if len(words) < 4:
                raise BadRow("too few fields")
            at, node = instant(words[0]), name_of(words[1])
            x, y = coordinate(words[2], "x"), coordinate(words[3], "y")
        except BadRow as error:
            summary.rows_read += 1
            yield summary.reject(line, str(error))
            continue
        if not _are_inside(bounds, at, x, y):
            summary.note(_OUTSIDE)
        yield from tracks.add(line, node, at, x, y)
        for samples in blocks.after(line):
            outside = np.count_nonzero(~_are_inside(bounds, samples.at, samples.x, samples.y))
            if outside:
                summary.note(_OUTSIDE, int(outside))
            yield from tracks.add_block(samples)
    yield from tracks.finish()


def _samples(block: PlainBlock) -> Samples | None:
    """Return all rows of a block; None if one of them would be rejected."""
    seconds, x, y = block.numbers
    at = instants_of(seconds)
    if at is None or not are_coordinates(x, y):
        return None
    return Samples(block.first, *block.names[0], at, x, y)


def _are_inside(bounds: list[float], at: Any, x: Any, y: Any) -> Any:
    """Are these rows, or is this row, within the bounds of the first line? Its times are instants here."""
    first, last, left, right, low, high = bounds
    return (first <= at) & (at <= last) & (left <= x) & (x <= right) & (low <= y) & (y <= high)
