"""Reads The ONE's movement: first line `minTime maxTime minX maxX minY maxY`, then `time id x y`, in metres.

Between two rows a node moves in a straight line; it is present from its first to its last row. A row outside
the bounds of the first line is kept and noted.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from precede.files.lines import BadRow, data_lines, name_of
from precede.traces.formats.columns import is_numeric
from precede.traces.formats.one import read_one_events
from precede.traces.lines import coordinate, instant
from precede.traces.records import Row, Summary
from precede.traces.tracks import Tracks


def read_one(lines: Iterable[tuple[int, str]], summary: Summary) -> Iterator[Row]:
    """Reads any file of The ONE: movement if the first line has six numbers, else contacts and messages."""
    content = data_lines(lines)
    first = next(content, None)
    if first is None:
        return iter(())
    words = first[1].split()
    if len(words) == 6 and all(is_numeric(word) for word in words):
        return read_one_movement([float(word) for word in words], content, summary)
    return read_one_events(chain([first], content), summary)


def read_one_movement(
    bounds: list[float], content: Iterable[tuple[int, str]], summary: Summary
) -> Iterator[Row]:
    """Yields the segments between the rows of each node, and rejects."""
    tracks = Tracks(summary)
    for line, text in content:
        words = text.split()
        summary.rows_read += 1
        try:
            if len(words) < 4:
                raise BadRow("too few fields")
            at, node = instant(words[0]), name_of(words[1])
            x, y = coordinate(words[2], "x"), coordinate(words[3], "y")
        except BadRow as error:
            yield summary.reject(line, str(error))
            continue
        if not (
            bounds[0] * 1e6 <= at <= bounds[1] * 1e6
            and bounds[2] <= x <= bounds[3]
            and bounds[4] <= y <= bounds[5]
        ):
            summary.note("rows outside the bounds of the first line, kept")
        yield from tracks.add(line, node, at, x, y)
    yield from tracks.finish()
