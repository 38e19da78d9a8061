"""Contacts of a trace in the lake, read without Spark: what `trace = "NAME"` in a scenario means.

The lake keeps `contacts/NAME.parquet` for a trace that says who met, `contacts/NAME@50m.parquet` for contacts
computed from movement within a range, and `segments/NAME.parquet` for that movement, which also says who was
there when (DESIGN section 5).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from precede.core.errors import BadInput
from precede.core.natural_order import natural
from precede.traces.contacts import ContactList, Presence, of_intervals
from precede.traces.intervals import Intervals, Ints


def stored_files(lake: str | Path, trace: str, range_m: float | None = None) -> list[Path]:
    """The files that a trace's contacts are read from: contacts, then segments where there are any."""
    folder = Path(lake) / "contacts"
    segments = Path(lake) / "segments" / f"{trace}.parquet"
    moved = [segments] if segments.is_file() else []
    if range_m is not None:
        wanted = folder / f"{trace}@{range_m:.12g}m.parquet"
        if not wanted.is_file():
            raise BadInput(_missing(lake, trace, f"within {range_m:g} m", range_m, moved))
        return [wanted, *moved]
    if (folder / f"{trace}.parquet").is_file():
        return [folder / f"{trace}.parquet"]
    computed = [path for path in sorted(folder.glob("*.parquet")) if path.stem.rpartition("@")[0] == trace]
    if len(computed) > 1:
        ranges = ", ".join(path.stem.rpartition("@")[2].removesuffix("m") for path in computed)
        raise BadInput(f"trace {trace!r} has contacts for several ranges: say which (range = one of {ranges})")
    if not computed:
        raise BadInput(_missing(lake, trace, "", None, moved))
    return [computed[0], *moved]


def stored_traces(lake: str | Path) -> list[str]:
    """Every trace that a lake has, with or without contacts."""
    found = [path.stem for table in ("contacts", "segments") for path in (Path(lake) / table).glob("*.parquet")]
    return sorted({stem.rpartition("@")[0] or stem for stem in found})


def read_stored_contacts(lake: str | Path, trace: str, range_m: float | None = None) -> ContactList:
    """Who meets whom, and who is there when: presence is known for a trace of movement, else everybody is."""
    import pyarrow.parquet as pq

    contacts, *movement = stored_files(lake, trace, range_m)
    table = pq.read_table(contacts, columns=["a", "b", "start_us", "end_us"])
    moved = pq.read_table(movement[0], columns=["node", "t0_us", "t1_us"]) if movement else None
    met = {*table["a"].unique().to_pylist(), *table["b"].unique().to_pylist()}
    names = sorted(met | set(moved["node"].unique().to_pylist() if moved else ()), key=natural)
    found = Intervals(
        _places(table["a"], names),
        _places(table["b"], names),
        table["start_us"].to_numpy(),
        table["end_us"].to_numpy(),
    )
    if moved is None:
        return of_intervals(names, found)
    node = _places(moved["node"], names)
    return of_intervals(names, found, _presence(node, moved["t0_us"].to_numpy(), moved["t1_us"].to_numpy()))


def _places(column: Any, names: list[str]) -> Ints:
    """Names as their places in the list."""
    import pyarrow as pa
    import pyarrow.compute as pc

    places: Ints = pc.index_in(column.cast(pa.string()), value_set=pa.array(names, pa.string())).to_numpy()
    return places.astype(np.int64)


def _presence(node: Ints, enter: Ints, leave: Ints) -> Presence:
    """Segments that join or overlap are one presence."""
    order = np.lexsort((enter, node))
    node, enter, leave = node[order], enter[order], leave[order]
    if not len(node):
        return Presence(node, enter, leave)
    begins = np.ones(len(node), dtype=bool)
    begins[1:] = (node[1:] != node[:-1]) | (enter[1:] > _reach(node, leave)[:-1])
    ends = np.append(np.flatnonzero(begins)[1:] - 1, len(node) - 1)
    return Presence(node[begins], enter[begins], _reach(node, leave)[ends])


def _reach(node: Ints, leave: Ints) -> Ints:
    """The latest end so far of each node's segments."""
    base = leave.min()
    width = int(leave.max() - base) + 1
    reach: Ints = np.maximum.accumulate(node * width + (leave - base)) - node * width + base
    return reach


def _missing(lake: str | Path, trace: str, within: str, range_m: float | None, moved: list[Path]) -> str:
    """What is not there, and the command that makes it."""
    if moved:
        wanted = "METRES" if range_m is None else f"{range_m:g}"
        said = f"no contacts {within}".strip()
        return f"trace {trace!r} has {said} in {lake}: precede contacts {trace} --range {wanted} --lake {lake}"
    known = sorted({path.stem.partition("@")[0] for path in (Path(lake) / "contacts").glob("*.parquet")})
    return f"no trace {trace!r} in {lake} (there are: {', '.join(known) or 'none'})"
