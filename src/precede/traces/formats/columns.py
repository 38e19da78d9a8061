"""Which column is which: from a header, from an option, or by the number of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from precede.core.errors import BadInput
from precede.traces.lines import BadRow, number

Synonyms = Mapping[str, Sequence[str]]


def parse_columns(written: str | None) -> dict[str, str] | list[str] | None:
    """The option `--columns`: `node=cab,time=unix_time` for a table with a header, `id,frame,x,y` without one.

    >>> parse_columns("node=cab, time=t"), parse_columns("id,frame,x,y"), parse_columns(None)
    ({'node': 'cab', 'time': 't'}, ['id', 'frame', 'x', 'y'], None)
    """
    if not written:
        return None
    parts = [part.strip() for part in written.split(",")]
    if all("=" in part for part in parts):
        return {ours.strip(): theirs.strip() for ours, theirs in (part.split("=", 1) for part in parts)}
    if any("=" in part for part in parts):
        raise BadInput(f"--columns {written!r}: either all `ours=theirs`, or a plain list of all columns")
    return parts


def places_in(
    header: Sequence[str], synonyms: Synonyms, mapping: Mapping[str, str] | None, where: str
) -> dict[str, int] | None:
    """Where each of our columns stands in a header; None if this is not a header of that kind.

    With a mapping, a column that is not there is an error.
    """
    lowered = [name.strip().lower() for name in header]
    if mapping:
        unknown = next((ours for ours in mapping if ours not in synonyms), None)
        if unknown is not None:
            raise BadInput(f"--columns: there is no column {unknown!r} (there are: {', '.join(synonyms)})")
    found: dict[str, int] = {}
    for ours, others in synonyms.items():
        named = (mapping or {}).get(ours)
        candidates = [named.lower()] if named else [ours, *others]
        place = next((lowered.index(name) for name in candidates if name in lowered), None)
        if place is not None:
            found[ours] = place
        elif named:
            raise BadInput(f"{where}: no column {named!r} in the header")
    return found or None


def is_numeric(text: str) -> bool:
    """Could this field be data?"""
    try:
        number(text)
    except BadRow:
        return False
    return True
