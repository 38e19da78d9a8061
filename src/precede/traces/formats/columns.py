"""Finds the columns of a table: by a header, or by the option `--columns`."""

from collections.abc import Mapping, Sequence

from precede.core.errors import BadInput
from precede.files.lines import BadRow
from precede.traces.lines import number

Synonyms = Mapping[str, Sequence[str]]


def parse_columns(option: str | None) -> dict[str, str] | list[str] | None:
    """Parse the option `--columns`: `node=cab,time=unix_time` with a header, `id,frame,x,y` without one.

    >>> parse_columns("node=cab, time=t"), parse_columns("id,frame,x,y"), parse_columns(None)
    ({'node': 'cab', 'time': 't'}, ['id', 'frame', 'x', 'y'], None)
    """
    if not option:
        return None
    parts = [part.strip() for part in option.split(",")]
    if all("=" in part for part in parts):
        return {ours.strip(): theirs.strip() for ours, theirs in (part.split("=", 1) for part in parts)}
    if any("=" in part for part in parts):
        raise BadInput(f"--columns {option!r}: write either `ours=theirs` for each, or a list of all columns")
    return parts


def places_in(
    header: Sequence[str], synonyms: Synonyms, mapping: Mapping[str, str] | None, where: str
) -> dict[str, int] | None:
    """Find our columns in a header: the index of each that it has, or None if it has none.

    `synonyms` are other names for our columns; `mapping` names columns, each of which must exist.
    """
    lowered = [name.strip().lower() for name in header]
    if mapping:
        unknown = next((ours for ours in mapping if ours not in synonyms), None)
        if unknown is not None:
            raise BadInput(f"--columns: no column {unknown!r} (the columns are: {', '.join(synonyms)})")
    places: dict[str, int] = {}
    for ours, others in synonyms.items():
        named = (mapping or {}).get(ours)
        candidates = [named.lower()] if named else [ours, *others]
        place = next((lowered.index(name) for name in candidates if name in lowered), None)
        if place is not None:
            places[ours] = place
        elif named:
            raise BadInput(f"{where}: no column {named!r} in the header")
    return places or None


def is_numeric(text: str) -> bool:
    """Is this field a number, so that its row is data and no header?"""
    try:
        number(text)
    except BadRow:
        return False
    return True
