"""Reads a trace file by the name of its format: `read("taxis.csv.gz", "gps")`.

Rows come in bounded batches. At the end the summary is complete: rows read are rows kept plus rows rejected.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, get_args

from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import SECOND, Duration, format_duration
from precede.core.settings import did_you_mean
from precede.files.lines import opened
from precede.files.rejects import Reject
from precede.traces.contacts import ContactList, contact_list
from precede.traces.formats.bonnmotion import read_bonnmotion
from precede.traces.formats.columns import parse_columns
from precede.traces.formats.contact_csv import read_contact_csv
from precede.traces.formats.contact_rows import Cleaning, Overlap
from precede.traces.formats.gps import GAP, MAX_SPEED, read_gps
from precede.traces.formats.gtfs import read_gtfs
from precede.traces.formats.ns2 import Presence, read_ns2
from precede.traces.formats.one_movement import read_one
from precede.traces.formats.positions import read_positions
from precede.traces.formats.sightings import read_sightings
from precede.traces.formats.tij import read_tij
from precede.traces.formats.walkers import read_walkers
from precede.traces.mobility import Mobility, mobility_of
from precede.traces.records import BATCH_ROWS, Batch, ContactRow, MessageRow, Row, SegmentRow, Summary, batches


class Options(Struct, frozen=True, kw_only=True):
    """The options of all formats. `Reading` raises BadInput for an option that its format does not have."""

    date: str | None = None
    columns: str | None = None
    framerate: float | None = None
    scale: float | None = None
    gap: Duration | None = None
    max_speed: float | None = None
    window: Duration | None = None
    overlap: Overlap | None = None
    at_least: Duration | None = None
    presence: Presence | None = None
    chain: bool | None = None
    internal: bool | None = None

    def given(self) -> dict[str, str]:
        """Return the options that are set by name, as they are written on the command line."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        given = {name: value for name, value in values.items() if value is not None and value is not False}
        return {name: _written(name, value) for name, value in given.items()}


_DURATIONS: Final = ("gap", "window", "at_least")
_CHOICES: Final = {"overlap": get_args(Overlap), "presence": get_args(Presence)}


def _written(name: str, value: object) -> str:
    option = f"--{name.replace('_', '-')}"
    if value is True:
        return option
    return f"{option} {format_duration(value) if isinstance(value, int) and name in _DURATIONS else value}"


Reader = Callable[[Path, Options, Summary], Iterator[Row]]


def _gtfs(path: Path, options: Options, summary: Summary) -> Iterator[Row]:
    return read_gtfs(path, summary, options.date, bool(options.chain))


def _gps(path: Path, options: Options, summary: Summary) -> Iterator[Row]:
    columns = parse_columns(options.columns)
    if isinstance(columns, list):
        raise BadInput("--columns for gps is written node=…,time=…,latitude=…,longitude=…")
    gap = GAP if options.gap is None else options.gap
    speed = MAX_SPEED if options.max_speed is None else options.max_speed
    return read_gps(lambda: opened(path), summary, columns, gap, speed)


def _positions(path: Path, options: Options, summary: Summary) -> Iterator[Row]:
    columns = parse_columns(options.columns)
    gap = GAP if options.gap is None else options.gap
    with opened(path) as lines:
        yield from read_positions(
            lines, summary, columns, options.framerate, options.scale, gap, options.max_speed
        )


def _contacts(path: Path, options: Options, summary: Summary) -> Iterator[Row]:
    columns = parse_columns(options.columns)
    if isinstance(columns, list):
        raise BadInput("--columns for contacts is written a=…,b=…,start=…,end=…")
    with opened(path) as lines:
        yield from read_contact_csv(lines, summary, columns, _cleaning(options))


def _cleaning(options: Options) -> Cleaning:
    return Cleaning(options.overlap or "union", options.at_least or 0)


def _sightings(path: Path, options: Options, summary: Summary) -> Iterator[Row]:
    columns = parse_columns(options.columns)
    return read_sightings(
        lambda: opened(path), summary, columns, _cleaning(options), internal=bool(options.internal)
    )


def _bonnmotion(path: Path, options: Options, summary: Summary) -> Iterator[Row]:
    columns = parse_columns(options.columns)
    if isinstance(columns, dict):
        raise BadInput("--columns for bonnmotion is a list of the columns of a waypoint: time,x,y,z")
    with opened(path) as lines:
        yield from read_bonnmotion(lines, summary, columns)


def _ns2(path: Path, options: Options, summary: Summary) -> Iterator[Row]:
    with opened(path) as lines:
        yield from read_ns2(lines, summary, options.presence or "whole")


def _tij(path: Path, options: Options, summary: Summary) -> Iterator[Row]:
    with opened(path) as lines:
        yield from read_tij(lines, summary, 20 * SECOND if options.window is None else options.window)


def _lines(reader: Callable[[Iterator[tuple[int, str]], Summary], Iterator[Row]]) -> Reader:
    """Return a reader for a format without options, which reads a file line by line."""

    def read_lines(path: Path, options: Options, summary: Summary) -> Iterator[Row]:
        with opened(path) as lines:
            yield from reader(lines, summary)

    return read_lines


FORMATS: Final[dict[str, tuple[Reader, tuple[str, ...]]]] = {
    "gtfs": (_gtfs, ("date", "chain")),
    "gps": (_gps, ("columns", "gap", "max_speed")),
    "positions": (_positions, ("columns", "framerate", "scale", "gap", "max_speed")),
    "ns2": (_ns2, ("presence",)),
    "bonnmotion": (_bonnmotion, ("columns",)),
    "walkers": (_lines(read_walkers), ()),
    "one": (_lines(read_one), ()),
    "tij": (_tij, ("window",)),
    "contacts": (_contacts, ("columns", "overlap", "at_least")),
    "sightings": (_sightings, ("columns", "overlap", "at_least", "internal")),
}


class Reading:
    """One file that is being read. `summary` is complete when `batches()` is exhausted."""

    def __init__(self, path: str | Path, format: str, options: Options | None = None) -> None:
        options = Options() if options is None else options
        if format not in FORMATS:
            near = did_you_mean(format, FORMATS)
            raise BadInput(f"no format {format!r} (the formats are: {', '.join(FORMATS)}){near}")
        self._reader, own = FORMATS[format]
        given = options.given()
        for name, written in given.items():
            if name not in own:
                raise BadInput(f"{written.split()[0]}: not an option of `--as {format}`")
            if name in _CHOICES and getattr(options, name) not in _CHOICES[name]:
                raise BadInput(f"{written}: expected {' or '.join(_CHOICES[name])}")
        self._path, self._options = Path(path), options
        self.summary = Summary(file=self._path.name, format=format)
        if given:
            self.summary.facts["read with"] = " ".join(given.values())

    def batches(self, size: int = BATCH_ROWS) -> Iterator[Batch]:
        """Yield the rows in bounded batches. If it raises BadInput, nothing of the file should be kept."""
        yield from batches(self._reader(self._path, self._options, self.summary), self.summary, size)


def read(path: str | Path, format: str, options: Options | None = None) -> Iterator[Batch]:
    return Reading(path, format, options).batches()


class Loaded(Struct):
    """The contents of a whole file in memory."""

    segments: list[SegmentRow]
    contacts: list[ContactRow]
    messages: list[MessageRow]
    rejects: list[Reject]
    summary: Summary

    def mobility(self) -> Mobility:
        return mobility_of(self.segments)

    def contact_list(self) -> ContactList:
        return contact_list(self.contacts)


def load(path: str | Path, format: str, options: Options | None = None) -> Loaded:
    reading = Reading(path, format, options)
    loaded = Loaded([], [], [], [], reading.summary)
    for batch in reading.batches():
        loaded.segments += batch.segments
        loaded.contacts += batch.contacts
        loaded.messages += batch.messages
        loaded.rejects += batch.rejects
    return loaded
