"""Reads raw Bluetooth sightings: a row `id seen start end` says that a device heard another one.

iMote files have this form, with more columns that are ignored. Fields are separated by spaces, tabs, commas or
semicolons; times are in seconds. A sighting is directed: that i hears j and j hears i at the same time is one
contact. A device that never scans itself is *external*; `internal` rejects its sightings.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Final, TypeAlias

from precede.core.errors import BadInput
from precede.files.lines import BadRow, data_lines, fields_of_csv, shown
from precede.traces.formats.columns import is_numeric, places_in
from precede.traces.formats.contact_rows import Cleaning, ContactRows
from precede.traces.records import MAX_NODES, Row, Summary

Opened: TypeAlias = Callable[[], AbstractContextManager[Iterator[tuple[int, str]]]]
COLUMNS: Final = {
    "id": ("node", "a", "i", "user_id", "scanner", "device"),
    "seen": ("b", "j", "seen_id", "seen_user_id", "seen_device", "neighbour", "peer"),
    "start": ("begin", "from", "t_start", "start_time", "first"),
    "end": ("until", "to", "t_end", "end_time", "last"),
}


def read_sightings(
    opened: Opened,
    summary: Summary,
    columns: dict[str, str] | list[str] | None = None,
    cleaning: Cleaning | None = None,
    internal: bool = False,
) -> Iterator[Row]:
    """Yields the rejects, then the contacts, sorted. Reads the file twice: first to know who scans."""
    scanners: set[str] = set()
    seen: set[str] = set()
    with opened() as lines:
        for _, values in _rows(lines, summary, columns):
            if values is not None:
                scanners.add(values[0])
                seen.add(values[1])
                if len(scanners) + len(seen) > 2 * MAX_NODES:
                    raise BadInput(f"{summary.file}: more than {MAX_NODES:,} nodes; is the id column right?")
    external = seen - scanners
    if external:
        summary.facts["external devices (seen, never scanning)"] = f"{len(external):,}"
    contacts = ContactRows(summary, cleaning)
    with opened() as lines:
        for line, values in _rows(lines, summary, columns):
            summary.rows_read += 1
            try:
                if values is None:
                    raise BadRow("too few fields")
                if internal and values[1] in external:
                    raise BadRow(f"sighting of an external device: {shown(values[1])}")
                contacts.add(line, *values)
            except BadRow as error:
                yield summary.reject(line, str(error))
    yield from contacts.finish()


def _rows(
    lines: Iterable[tuple[int, str]], summary: Summary, columns: dict[str, str] | list[str] | None
) -> Iterator[tuple[int, list[str] | None]]:
    """Yields the number of each row with its id, seen, start and end; None for a row with too few fields."""
    places: tuple[int, ...] = ()
    for line, text in data_lines(lines):
        values = _fields(text)
        if not places:
            places, is_header = _places(values, columns, f"{summary.file}:{line}")
            if is_header:
                continue
        enough = len(values) > max(places)
        yield line, [values[place] for place in places] if enough else None


def _fields(text: str) -> list[str]:
    if "," in text:
        return fields_of_csv(text)
    return [value.strip() for value in text.split(";")] if ";" in text else text.split()


def _places(
    values: list[str], columns: dict[str, str] | list[str] | None, where: str
) -> tuple[tuple[int, ...], bool]:
    """Return the indices of id, seen, start and end, and whether this first line is a header."""
    is_header = not any(is_numeric(value) for value in values)
    if isinstance(columns, list):
        places = places_in(columns, COLUMNS, None, where)
    elif is_header:
        places = places_in(values, COLUMNS, columns, where)
    elif columns:
        raise BadInput(f"{where}: --columns maps names, but there is no header; list all columns in order")
    else:
        return (0, 1, 2, 3), False
    absent = [name for name in COLUMNS if name not in (places or {})]
    if places is None or absent:
        raise BadInput(f"{where}: no column for {', '.join(absent)}; name the columns with --columns")
    return tuple(places[name] for name in COLUMNS), is_header and not isinstance(columns, list)
