"""Reads tables of positions: CSV `node,time,x,y`, and the whitespace tables of pedestrian laboratories.

Without a header the number of columns decides: four are `node time x y`; five are `id frame x y z` (Jülich; a
comment `# framerate: 25 fps` and units such as `x/cm` in a comment are used); eight are `frame id x z y vx vz
vy` (UCY `obsmat`, 25 frames per second). The options `--columns`, `--framerate` and `--scale` override this. A
node is present from its first to its last row; a gap over the limit splits its presence.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import MINUTE, Duration, Instant
from precede.files.lines import BadRow, fields_of_csv, name_of, shown
from precede.traces.formats.columns import is_numeric, places_in
from precede.traces.formats.plain_columns import PlainBlock, PlainBlocks, are_coordinates, blank_in, instants_of
from precede.traces.lines import coordinate, instant, number
from precede.traces.records import Row, Summary
from precede.traces.tracks import Samples, Tracks

GAP: Final = 10 * MINUTE
COLUMNS: Final = {
    "node": ("id", "ped", "ped_id", "person", "agent", "name", "personid"),
    "time": ("t", "seconds", "time_s"),
    "frame": ("fr", "frame_id"),
    "x": ("x_m", "pos_x", "x/m", "x/cm", "x/mm"),
    "y": ("y_m", "pos_y", "y/m", "y/cm", "y/mm"),
}
_BY_COUNT: Final = {
    4: ("node", "time", "x", "y"),
    5: ("node", "frame", "x", "y", "z"),
    8: ("frame", "node", "x", "z", "y", "vx", "vz", "vy"),
}
_UCY_FRAMERATE: Final = 25.0
_FRAMERATE: Final = re.compile(r"#\s*frame\s*rate\s*:?\s*([0-9.]+)", re.IGNORECASE)
_UNIT: Final = re.compile(r"(?:^|\s)[xX]\s*[/\[(]\s*(mm|cm|m)\b")
_METRES: Final = {"m": 1.0, "cm": 0.01, "mm": 0.001}


class _Table(Struct):
    """The layout of a table: the index of each column, and the units."""

    node: int
    time: int
    x: int
    y: int
    seconds_per_unit: float
    metres_per_unit: float
    commas: bool

    def row(self, text: str) -> tuple[str, Instant, float, float]:
        """Parse a row as node, instant, x and y; raises BadRow."""
        values = fields_of_csv(text) if self.commas else text.split()
        if len(values) <= max(self.node, self.time, self.x, self.y):
            raise BadRow("too few fields")
        name = values[self.node]
        if is_numeric(name):
            name = _plain(name)
        at = number(values[self.time], "time") * self.seconds_per_unit
        x, y = coordinate(values[self.x], "x"), coordinate(values[self.y], "y")
        return name_of(name), instant(repr(at)), x * self.metres_per_unit, y * self.metres_per_unit

    def blocks(self, lines: object, text: str) -> PlainBlocks[Samples]:
        """Return the blocks of lines that can be parsed by column; `text` is the first line."""
        separator = "," if self.commas else blank_in(text)
        width = len(fields_of_csv(text) if self.commas else text.split())
        numbers = self.time, self.x, self.y
        return PlainBlocks(lines, width, (self.node,), numbers, self._samples, separator)

    def _samples(self, block: PlainBlock) -> Samples | None:
        """Return all rows of a block; None if one of them would be rejected."""
        time, x, y = block.numbers
        with np.errstate(all="ignore"):  # a time out of range makes the block irregular
            at = instants_of(time * self.seconds_per_unit)
        if at is None or not are_coordinates(x, y):
            return None
        column = block.names[0]
        names = [_plain(name) if is_numeric(name) else name for name in column.names]
        places = {name: place for place, name in enumerate(dict.fromkeys(names))}
        codes = np.array([places[name] for name in names], np.int64)[column.codes]
        x, y = x * self.metres_per_unit, y * self.metres_per_unit
        return Samples(block.first, list(places), codes, at, x, y)


def read_positions(
    lines: Iterable[tuple[int, str]],
    summary: Summary,
    columns: dict[str, str] | list[str] | None = None,
    framerate: float | None = None,
    scale: float | None = None,
    gap: Duration = GAP,
    max_speed: float | None = None,
) -> Iterator[Row]:
    """Yields the segments between the rows of each node, and rejects."""
    tracks = Tracks(summary, gap, max_speed)
    table: _Table | None = None
    for line, raw in lines:
        text = raw.strip()
        if not text:
            continue
        if text.startswith("#"):
            framerate = framerate if framerate is not None else _framerate_in(text)
            scale = scale if scale is not None else _scale_in(text)
            continue
        if table is None:
            table, is_header = _table(text, summary, line, columns, framerate, scale)
            blocks = table.blocks(lines, text)
            if is_header:
                continue
        try:
            node, at, x, y = table.row(text)
        except BadRow as error:
            summary.rows_read += 1
            yield summary.reject(line, str(error))
            continue
        yield from tracks.add(line, node, at, x, y)
        for samples in blocks.after(line):
            yield from tracks.add_block(samples)
    yield from tracks.finish()


def _table(
    text: str,
    summary: Summary,
    line: int,
    columns: dict[str, str] | list[str] | None,
    framerate: float | None,
    scale: float | None,
) -> tuple[_Table, bool]:
    """Return the layout of a table, from its first row and the options, and whether that row is a header."""
    where = f"{summary.file}:{line}"
    commas = "," in text
    values = fields_of_csv(text) if commas else text.split()
    places = None
    is_header = not any(is_numeric(value) for value in values)
    if isinstance(columns, list):
        places = places_in(columns, COLUMNS, None, where)
        is_header = False
    elif is_header:
        places = places_in(values, COLUMNS, columns, where)
        if places is not None and scale is None:
            scale = next((s for value in values if (s := _scale_in(value)) is not None), None)
    elif columns:
        raise BadInput(f"{where}: --columns maps names, but there is no header; list all columns in order")
    elif len(values) in _BY_COUNT:
        names = _BY_COUNT[len(values)]
        places = {name: names.index(name) for name in COLUMNS if name in names}
        if len(values) == 8 and framerate is None:
            framerate = _UCY_FRAMERATE
    if places is None or not {"node", "x", "y"} <= places.keys() or not {"time", "frame"} & places.keys():
        raise BadInput(
            f"{where}: no node, time, x and y found in {shown(text)}; name the columns with --columns"
        )
    in_seconds = "time" in places
    if not in_seconds and framerate is None:
        raise BadInput(f"{where}: times are frames; give the frames per second with --framerate")
    if framerate is not None and not 0 < framerate < 1e6:
        raise BadInput(f"{where}: expected a frame rate, got {framerate!r}")
    if scale is not None and not 0 < abs(scale) < 1e9:
        raise BadInput(f"{where}: expected a scale, got {scale!r}")
    per_unit = 1.0 if in_seconds or framerate is None else 1.0 / framerate
    time = places["time"] if in_seconds else places["frame"]
    if not in_seconds:
        summary.facts["frames per second"] = f"{framerate:g}"
    if scale not in (None, 1.0):
        summary.facts["metres per unit"] = f"{scale:g}"
    metres = 1.0 if scale is None else scale
    return _Table(places["node"], time, places["x"], places["y"], per_unit, metres, commas), is_header


def _framerate_in(comment: str) -> float | None:
    match = _FRAMERATE.search(comment)
    return float(match[1]) if match and is_numeric(match[1]) else None


def _scale_in(comment: str) -> float | None:
    """Return the metres per unit that a comment or header gives, or None."""
    match = _UNIT.search(comment)
    return _METRES[match[1]] if match else None


def _plain(text: str) -> str:
    """Return a numeric name without a fraction as a whole number: `1.000000e+00` becomes `1`."""
    if text.isdecimal():
        return text
    value = float(text)
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else text
