"""The tables of a GTFS feed: a zip or a folder of CSV files, read row by row.

A row is rejected if a field is missing or wrong, or if it refers to something that does not exist. Correct rows
that the chosen day does not need are kept and noted.
"""

from __future__ import annotations

import io
import re
import zipfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Iterator
from contextlib import contextmanager
from datetime import date
from itertools import accumulate, pairwise
from operator import add
from pathlib import Path
from typing import IO, Final, NamedTuple, cast

import numpy as np
from msgspec import Struct, field

from precede.core.errors import BadInput
from precede.core.instants import SECOND, Instant
from precede.files.inputs import Counted, Unpacked, open_regular
from precede.files.lines import BadRow, NumberedLines, fields_of_csv, name_of, shown
from precede.files.rejects import Reject
from precede.traces.formats.plain_columns import PlainBlock, PlainBlocks
from precede.traces.geography import Projection, degrees
from precede.traces.lines import number
from precede.traces.records import Summary

MAX_HELD: Final = 20_000_000
_LOST: Final = 1e9
_TIME: Final = re.compile(r"([0-9]{1,3}):([0-5][0-9]):([0-5][0-9])")
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
Fields = dict[str, str]


class Feed:
    """The tables of a feed; in a zip they may be in a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip: zipfile.ZipFile | None = None
        if not path.exists():
            raise BadInput(f"{path}: No such file or directory")
        if path.is_dir():
            self._tables = {child.name: child.name for child in path.glob("*.txt")}
        else:
            try:
                self._packed = Counted(open_regular(path))
                self._zip = zipfile.ZipFile(cast(IO[bytes], self._packed))
                members = [member for member in self._zip.namelist() if member.endswith(".txt")]
            except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
                if isinstance(error, BadInput):
                    raise
                raise BadInput(f"{path}: not a zip archive: {error}") from error
            self._tables = {member.rsplit("/", 1)[-1]: member for member in sorted(members, reverse=True)}

    def __contains__(self, table: str) -> bool:
        return table in self._tables

    def require(self, *tables: str) -> None:
        absent = [table for table in tables if table not in self]
        if absent:
            raise BadInput(f"{self.path}: no {absent[0]}; this is not a GTFS feed")

    @contextmanager
    def _lines(self, table: str) -> Iterator[Iterator[tuple[int, str]]]:
        member = self._tables[table]
        try:
            if self._zip is None:
                with open_regular(self.path / member) as source:
                    yield NumberedLines(source, table)
            else:
                name = f"{self.path.name}/{table}"
                if self._zip.getinfo(member).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise BadInput(f"{name}: neither stored nor deflated; pack it again with `zip`")
                with self._zip.open(member) as unpacked:
                    yield NumberedLines(io.BufferedReader(Unpacked(name, self._packed, unpacked)), name)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:
            raise BadInput(f"{self.path.name}/{table}: cannot be read: {error}") from error

    def rows(
        self, table: str, summary: Summary, *needed: str, unneeded: Unneeded | None = None
    ) -> Iterator[tuple[int, Fields]]:
        """Yield the rows of a table, if it exists, as dictionaries with their lines; count them as read."""
        if table not in self:
            return
        with self._lines(table) as lines:
            header: list[str] | None = None
            for line, text in lines:
                if not text.strip():
                    continue
                values = fields_of_csv(text)
                if header is None:
                    header = [name.lower() for name in values]
                    absent = [name for name in needed if name not in header]
                    if absent:
                        raise BadInput(f"{self.path.name}/{table}:{line}: no column {absent[0]}")
                    blocks = unneeded.blocks(lines, header, summary) if unneeded is not None else None
                    continue
                summary.rows_read += 1
                row = dict(zip(header, values, strict=False))
                if unneeded is None or not unneeded.takes(row, summary):
                    yield line, row
                if blocks is None:
                    continue
                for others in blocks.after(line):
                    for place, values in others:
                        yield place, dict(zip(header, values, strict=True))


class Unneeded(NamedTuple):
    """The rows of a table that have one of `values` in a column: they are kept and noted, and used for nothing.

    They are found by column where the table is regular, which takes a tenth of the time of reading them.
    """

    column: str
    values: Container[str]
    note: str

    def takes(self, row: Fields, summary: Summary) -> bool:
        """Whether a row is one of them. If so, it is counted."""
        if row.get(self.column, "") not in self.values:
            return False
        summary.rows_kept += 1
        summary.note(self.note)
        return True

    def blocks(
        self, lines: object, header: list[str], summary: Summary
    ) -> PlainBlocks[Iterator[tuple[int, list[str]]]]:
        last = max(place for place, name in enumerate(header) if name == self.column)
        return PlainBlocks(lines, len(header), (last,), (), lambda block: self._others(block, summary))

    def _others(self, block: PlainBlock, summary: Summary) -> Iterator[tuple[int, list[str]]]:
        """Count the rows of a block, unneeded ones as kept. Yield the line and the fields of each other."""
        names, codes = block.names[0]
        is_other = np.array([name not in self.values for name in names])[codes]
        if unneeded := block.rows - int(np.count_nonzero(is_other)):
            summary.rows_kept += unneeded
            summary.note(self.note, unneeded)
        texts = block.data.decode("ascii").split("\n")
        before = summary.rows_read
        for place in np.flatnonzero(is_other).tolist():
            summary.rows_read = before + place + 1
            yield block.first + place, fields_of_csv(texts[place])
        summary.rows_read = before + block.rows


class Trip(Struct):
    """A trip of the day: its line in trips.txt, its vehicle, its shape, and its calls."""

    id: str
    line: int
    vehicle: str
    shape: str
    calls: list[Call] = field(default_factory=list)


class Call(Struct):
    """A row of stop_times.txt; a time is None if the feed leaves it open."""

    line: int
    sequence: int
    stop: str
    arrival: Instant | None
    departure: Instant | None
    along: float | None


class Stop(Struct):
    """A stop: its line in stops.txt and its position in metres."""

    line: int
    x: float
    y: float


def clock_time(text: str) -> Instant | None:
    """Parse a time of the service day; `25:10:00` is ten past one in the following night. None if empty."""
    if not text:
        return None
    match = _TIME.fullmatch(text)
    if match is None:
        raise BadRow(f"not a time: {shown(text)}")
    return (int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3])) * SECOND


def calendar_day(text: str) -> date:
    """Parse a date: `20160919` or `2016-09-19`."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise BadRow(f"not a date: {shown(text)}") from None


class Services:
    """Which services run on which day, by calendar.txt and calendar_dates.txt."""

    def __init__(self, feed: Feed, summary: Summary) -> None:
        self._weekly: dict[str, tuple[frozenset[int], date, date]] = {}
        self._exceptions: dict[date, dict[str, bool]] = {}
        self.rejects: list[Reject] = []
        if "calendar.txt" not in feed and "calendar_dates.txt" not in feed:
            raise BadInput(f"{feed.path}: neither calendar.txt nor calendar_dates.txt")
        for line, row in feed.rows("calendar.txt", summary, "service_id", "start_date", "end_date", *_DAYS):
            try:
                begin, end = calendar_day(row["start_date"]), calendar_day(row["end_date"])
                days = frozenset(k for k, name in enumerate(_DAYS) if row.get(name) == "1")
                self._weekly[name_of(row["service_id"])] = (days, begin, end)
            except (BadRow, KeyError) as error:
                self.rejects.append(summary.reject(line, _reason(error), "calendar.txt"))
                continue
            summary.rows_kept += 1
        for line, row in feed.rows("calendar_dates.txt", summary, "service_id", "date", "exception_type"):
            try:
                day, kind = calendar_day(row["date"]), row["exception_type"]
                if kind not in ("1", "2"):
                    raise BadRow(f"neither added nor removed: {shown(kind)}")
                self._exceptions.setdefault(day, {})[name_of(row["service_id"])] = kind == "1"
            except (BadRow, KeyError) as error:
                self.rejects.append(summary.reject(line, _reason(error), "calendar_dates.txt"))
                continue
            summary.rows_kept += 1

    def on(self, day: date) -> frozenset[str]:
        running = {service: True for service in self._weekly if self._usually(service, day)}
        running.update(self._exceptions.get(day, {}))
        return frozenset(service for service, runs in running.items() if runs)

    def _usually(self, service: str, day: date) -> bool:
        """Return whether the service runs on this day by calendar.txt, without the exceptions."""
        days, begin, end = self._weekly.get(service, (frozenset[int](), day, day))
        return begin <= day <= end and day.weekday() in days

    def span(self) -> tuple[date, date] | None:
        marks = [day for _, begin, end in self._weekly.values() for day in (begin, end)]
        marks += self._exceptions
        return (min(marks), max(marks)) if marks else None

    def busiest(self, trips: Counter[str]) -> date | None:
        """Return the first day with the most trips; None if no day has trips.

        Between two days on which a service begins or ends, all weeks are alike, so one week is examined.
        """
        starts, weeks = self._weeks(trips)
        changed = {day.toordinal(): self._exceptional(day, trips) for day in self._exceptions}
        candidates = list(changed)
        for start, until in pairwise(starts[1:]):
            candidates += _week(start, until, changed)
        most, day = 0, 0
        for each in sorted(candidates):
            count = weeks[bisect_right(starts, each) - 1][_weekday(each)] + changed.get(each, 0)
            if count > most:
                most, day = count, each
        return date.fromordinal(day) if most else None

    def _weeks(self, trips: Counter[str]) -> tuple[list[int], list[list[int]]]:
        """Return the days on which the usual timetable changes, and the trips by weekday from then on."""
        changes: dict[int, list[int]] = {0: [0] * 7}
        for service, (days, begin, end) in self._weekly.items():
            if begin <= end:
                for at, more in ((begin.toordinal(), trips[service]), (end.toordinal() + 1, -trips[service])):
                    change = changes.setdefault(at, [0] * 7)
                    for day in days:
                        change[day] += more
        starts = sorted(changes)
        summed = accumulate((changes[start] for start in starts), lambda week, more: list(map(add, week, more)))
        return starts, list(summed)

    def _exceptional(self, day: date, trips: Counter[str]) -> int:
        """Return the number of trips that the exceptions of a day add; negative if they remove trips."""
        changed = self._exceptions[day].items()
        return sum(
            trips[service] if added else -trips[service]
            for service, added in changed
            if added != self._usually(service, day)
        )


def _week(start: int, until: int, exceptional: Container[int]) -> list[int]:
    """Return the first Monday, the first Tuesday and so on in a span of days, without exceptional days."""
    first: dict[int, int] = {}
    for day in range(start, until):
        if day not in exceptional:
            first.setdefault(_weekday(day), day)
        if len(first) == 7:
            break
    return list(first.values())


def _weekday(ordinal: int) -> int:
    return (ordinal + 6) % 7


def read_stops(
    feed: Feed, summary: Summary
) -> tuple[dict[str, Stop], frozenset[str], Projection, list[Reject]]:
    """Read stops.txt: the stops in metres around their median, the ids of stops far outside, and the rejects.

    Far outside is over 100 km, ten times the median distance, and four times the distance of 95 % of the stops.
    """
    held: dict[str, tuple[int, float, float, str]] = {}
    rejects: list[Reject] = []
    for line, row in feed.rows("stops.txt", summary, "stop_id", "stop_lat", "stop_lon"):
        try:
            name = name_of(row["stop_id"])
            if name in held:
                raise BadRow(f"a second stop with this id: {name}")
            if len(held) > MAX_HELD:
                raise BadInput(f"{feed.path}: more than {MAX_HELD:,} stops")
            latitude, longitude = degrees(row["stop_lat"], row["stop_lon"])
        except (BadRow, KeyError) as error:
            rejects.append(summary.reject(line, _reason(error), "stops.txt"))
            continue
        held[name] = (line, latitude, longitude, row.get("stop_name", ""))
    if not held:
        raise BadInput(f"{feed.path}: no usable stop in stops.txt")
    latitudes, longitudes = sorted(row[1] for row in held.values()), sorted(row[2] for row in held.values())
    projection = Projection.around(latitudes[len(held) // 2], longitudes[len(held) // 2])
    away = {name: _away(projection, row[1], row[2]) for name, row in held.items()}
    ranked = sorted(away.values())
    limit = max(100_000.0, 10 * ranked[len(ranked) // 2], 4 * ranked[int(0.95 * (len(ranked) - 1))])
    stops: dict[str, Stop] = {}
    strays: set[str] = set()
    for name, (line, latitude, longitude, title) in held.items():
        if away[name] > min(limit, _LOST / 2):
            where = f"{name} {title!r} at {latitude}, {longitude}"
            rejects.append(summary.reject(line, f"stop far outside the feed: {where}", "stops.txt"))
            strays.add(name)
            continue
        stops[name] = Stop(line, *projection.place(latitude, longitude))
        summary.rows_kept += 1
    return stops, frozenset(strays), projection, rejects


def _away(projection: Projection, latitude: float, longitude: float) -> float:
    """Return the distance from the centre in metres; a very large number if it cannot be projected."""
    try:
        x, y = projection.place(latitude, longitude)
    except BadRow:
        return _LOST
    return float((x * x + y * y) ** 0.5)


def _reason(error: BadRow | KeyError) -> str:
    return "too few fields" if isinstance(error, KeyError) else str(error)


def read_calls(
    feed: Feed,
    summary: Summary,
    trips: dict[str, Trip],
    others: set[str],
    stops: dict[str, Stop],
    strays: frozenset[str],
) -> Iterator[Reject]:
    """Add the rows of stop_times.txt to the trips of the day; yields the rejects."""
    held = 0
    unneeded = Unneeded("trip_id", others, "stop times of other days, not needed")
    columns = ("trip_id", "stop_id", "stop_sequence")
    for line, row in feed.rows("stop_times.txt", summary, *columns, unneeded=unneeded):
        trip = trips.get(row.get("trip_id", ""))
        try:
            if trip is None:
                raise BadRow(f"no such trip: {shown(row.get('trip_id', ''))}")
            stop = row["stop_id"]
            if stop not in stops and stop not in strays:
                raise BadRow(f"no such stop: {shown(stop)}")
            sequence = number(row["stop_sequence"], "stop_sequence")
            arrival, departure = (
                clock_time(row.get("arrival_time", "")),
                clock_time(row.get("departure_time", "")),
            )
            arrival, departure = (
                (departure if arrival is None else arrival),
                (arrival if departure is None else departure),
            )
            if arrival is not None and departure is not None and departure < arrival:
                raise BadRow("departs before it arrives")
            along = row.get("shape_dist_traveled", "")
            distance = number(along, "shape_dist_traveled") if along else None
        except (BadRow, KeyError) as error:
            yield summary.reject(line, _reason(error), "stop_times.txt")
            continue
        summary.rows_kept += 1
        held += 1
        if held > MAX_HELD:
            raise BadInput(f"{feed.path}: more than {MAX_HELD:,} stop times on one day")
        trip.calls.append(Call(line, int(sequence), stop, arrival, departure, distance))
