"""Reads GPS fixes in CSV with a header: id, time (Unix seconds or ISO 8601), latitude, longitude.

Coordinates become metres by a local projection around the median of the data, so the file is read twice. A gap
over the limit (10 minutes) ends a presence. A step over the speed limit (70 m/s) is a jump and is rejected.
Instants are Unix time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Final

import numpy as np

from precede.core.errors import BadInput
from precede.core.instants import MINUTE, Duration, Instant
from precede.files.lines import BadRow, data_lines, fields_of_csv, name_of, shown
from precede.traces.formats.columns import places_in
from precede.traces.formats.plain_columns import PlainBlock, PlainBlocks, instants_of
from precede.traces.geography import Middle, degrees
from precede.traces.lines import instant
from precede.traces.records import Row, Summary
from precede.traces.tracks import Tracks

GAP: Final = 10 * MINUTE
MAX_SPEED: Final = 70.0
COLUMNS: Final = {
    "node": ("id", "cab", "vehicle", "device", "user", "name"),
    "time": ("unix_time", "timestamp", "t", "datetime"),
    "latitude": ("lat",),
    "longitude": ("lon", "lng", "long"),
}
Lines = Iterator[tuple[int, str]]
Fix = tuple[int, str, Instant, float, float]


def read_gps(
    open_lines: Callable[[], AbstractContextManager[Lines]],
    summary: Summary,
    columns: Mapping[str, str] | None = None,
    gap: Duration = GAP,
    max_speed: float = MAX_SPEED,
) -> Iterator[Row]:
    """Yields the segments between fixes, and rejects. `open_lines` opens the file; it is called twice."""
    middle = Middle()
    with open_lines() as lines:
        for fix in _fixes(lines, summary, columns):
            if not isinstance(fix, tuple):
                continue
            middle.add(fix[3], fix[4])
    projection = middle.projection()
    if projection is None:
        with open_lines() as lines:
            yield from _counted(_fixes(lines, summary, columns), summary)
        return
    summary.facts["centre"] = f"{projection.latitude:.4f}, {projection.longitude:.4f}"
    tracks = Tracks(summary, gap, max_speed)
    with open_lines() as lines:
        for fix in _fixes(lines, summary, columns):
            if isinstance(fix, _Unusable):
                summary.rows_read += 1
                yield summary.reject(fix.line, fix.reason)
                continue
            line, node, at, latitude, longitude = fix
            try:
                x, y = projection.place(latitude, longitude)
            except BadRow as error:
                summary.rows_read += 1
                yield summary.reject(line, str(error))
                continue
            yield from tracks.add(line, node, at, x, y)
    yield from tracks.finish()


class _Unusable:
    """A row that is not a usable fix, with the reason."""

    def __init__(self, line: int, reason: str) -> None:
        self.line, self.reason = line, reason


def _counted(fixes: Iterable[Fix | _Unusable], summary: Summary) -> Iterator[Row]:
    """Count the rows of a file that has no usable fix, and yield each as a reject."""
    for fix in fixes:
        summary.rows_read += 1
        assert isinstance(fix, _Unusable)
        yield summary.reject(fix.line, fix.reason)


def _fixes(
    lines: Iterable[tuple[int, str]], summary: Summary, columns: Mapping[str, str] | None
) -> Iterator[Fix | _Unusable]:
    """Yield the rows of the file as fixes (line, node, instant, latitude, longitude), or as unusable."""
    content = data_lines(lines)
    first = next(content, None)
    if first is None:
        return
    places = places_in(fields_of_csv(first[1]), COLUMNS, columns, f"{summary.file}:{first[0]}")
    absent = [name for name in COLUMNS if name not in (places or {})]
    if absent or places is None:
        raise BadInput(
            f"{summary.file}:{first[0]}: no column for {absent[0]} in the header "
            f"{shown(first[1])}; name it with --columns {absent[0]}=…"
        )
    indices = [places[name] for name in COLUMNS]
    blocks = PlainBlocks(lines, len(fields_of_csv(first[1])), indices[:1], indices[1:], _fixes_of)
    for line, text in content:
        values = fields_of_csv(text)
        try:
            if len(values) <= max(indices):
                raise BadRow("too few fields")
            node, at = name_of(values[indices[0]]), _time(values[indices[1]])
            latitude, longitude = degrees(values[indices[2]], values[indices[3]])
        except BadRow as error:
            yield _Unusable(line, str(error))
            continue
        yield line, node, at, latitude, longitude
        for fixes in blocks.after(line):
            yield from fixes


def _fixes_of(block: PlainBlock) -> Iterator[Fix] | None:
    """Return all rows of a block as fixes; None if one of them is unusable."""
    time, latitude, longitude = block.numbers
    at = instants_of(time)
    if at is None or np.abs(latitude).max() > 90.0 or np.abs(longitude).max() > 180.0:
        return None
    column = block.names[0]
    nodes = (column.names[code] for code in column.codes.tolist())
    lines = range(block.first, block.first + block.rows)
    return zip(lines, nodes, at.tolist(), latitude.tolist(), longitude.tolist(), strict=True)


def _time(text: str) -> Instant:
    """Parse Unix seconds or an ISO 8601 date; a date without a zone is UTC."""
    try:
        return instant(text)
    except BadRow:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise BadRow(f"time is neither seconds nor a date: {shown(text)}") from None
    return instant(repr((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()))
