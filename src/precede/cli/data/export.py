"""`precede export`: a sweep as figures and tables for a paper, a trace as a temporal network."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from precede.cli.data.spark import LakeOption
from precede.cli.parameters import Argument, Option

if TYPE_CHECKING:
    from precede.lake.layout import Lake

_COLUMNS: Final = {"single": 252.0, "double": 516.0}
_POINTS: Final = {"pt": 1.0, "mm": 72 / 25.4, "cm": 720 / 25.4, "in": 72.0}


def command(
    name: Annotated[str, Argument(help="a sweep or a trace in the lake")],
    out: Annotated[Path, Option("--out", metavar="DIR", help="folder for the files")],
    lake: LakeOption = "lake",
    measure: Annotated[
        list[str] | None,
        Option(help="sweep: draw this measure (may be repeated; default: those of the site)"),
    ] = None,
    column: Annotated[
        str, Option(help="sweep: width of a figure: single, double, or a length such as 84mm")
    ] = "single",
    range_m: Annotated[
        float | None, Option("--range", metavar="METRES", help="trace: contacts within this range")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="print the files as one JSON object")] = False,
) -> None:
    """Write a sweep as figures and tables for a paper, or a trace as a temporal network.

    A sweep gives each measure as SVG, PDF and PNG at the width of a paper's column, with 95 % intervals, and
    the measures as LaTeX, Markdown, HTML and CSV. A trace gives its contacts as CSV (a,b,start,end), as events
    (time,event,a,b) and as a GraphML graph of all pairs that met.

    \b
    Example:
      precede export buses --out paper --measure delivery_ratio
      precede export hospital --out networks
    """
    from precede.cli.progress import working
    from precede.core.errors import BadInput
    from precede.lake.layout import Lake
    from precede.lake.results import read_results
    from precede.lake.stored_contacts import stored_traces

    store = Lake(lake)
    width = column_width(column)
    if name in stored_traces(store):
        with working(f"exporting {name}"):
            written = export_trace(store, name, range_m, out)
    elif name in read_results(store).sweeps():
        with working(f"exporting {name}"):
            written = export_sweep(store, name, measure or [], width, out)
    else:
        raise BadInput(f"the lake {store.location} has no sweep and no trace {name!r}")
    files = [str(path) for path in written]
    print(json.dumps({"name": name, "files": files}) if as_json else "\n".join(files))


def column_width(text: str) -> float:
    """Return the width of a column in points: `single` and `double` (of a two-column paper), or a length.

    >>> column_width("single"), column_width("3.5in"), round(column_width("88.9mm"), 3), column_width("240pt")
    (252.0, 252.0, 252.0, 240.0)
    """
    from precede.core.errors import BadInput

    if text in _COLUMNS:
        return _COLUMNS[text]
    match = re.fullmatch(r"(\d+(?:\.\d*)?)\s*(pt|mm|cm|in)", text)
    width = float(match[1]) * _POINTS[match[2]] if match else 0.0
    if not 72 <= width <= 1440:
        raise BadInput(f"--column {text}: expected single, double, or a length from 1in to 20in, such as 84mm")
    return width


def export_sweep(lake: Lake, sweep: str, measures: list[str], column: float, out: Path) -> list[Path]:
    """Write the figures and tables of a sweep; returns the paths of the files."""
    from dataclasses import replace

    from precede.core.errors import BadInput
    from precede.lake.results import read_results
    from precede.report.figures import write_figure
    from precede.report.sweep_pages import DRAWN, figures_of, table_of_groups
    from precede.report.tables import write_table
    from precede.report.writing import slug

    groups = read_results(lake).groups(sweep)
    known = sorted({row["measure"] for row in groups})
    written = []
    for measure in measures or DRAWN:
        if measures and measure not in known:
            raise BadInput(
                f"--measure {measure}: sweep {sweep!r} does not have it (it has: {', '.join(known)})"
            )
        figures = figures_of(groups, measure)
        if measures and not figures:
            raise BadInput(f"--measure {measure}: fewer than two groups have a value other than 0")
        for drawn in figures:
            figure = replace(drawn, y_label=axis_label(measure, drawn.y_label))
            panel = "" if len(figures) == 1 else f"-{slug(figure.title.partition(': ')[2])}"
            written += write_figure(figure, out, f"{measure}{panel}", column)
    return written + write_table(table_of_groups(groups), out, slug(sweep))


def axis_label(measure: str, unit: str) -> str:
    """Return the name of a measure with its unit, short enough for the axis of a figure in a column.

    >>> axis_label("age_us_mean", "min"), axis_label("control_bytes_mean", "kB"), axis_label("packets", "")
    ('age, min', 'control data, kB', 'packets')
    """
    words = [{"bytes": "data"}.get(word, word) for word in measure.split("_") if word not in ("us", "mean")]
    return ", ".join([" ".join(words), *([unit] if {"us", "bytes"} & set(measure.split("_")) else [])])


def export_trace(lake: Lake, trace: str, range_m: float | None, out: Path) -> list[Path]:
    """Write the contacts of a trace as contacts, as events and as a graph; returns the paths of the files."""
    from precede.lake.stored_contacts import read_stored_contacts
    from precede.traces.networks import write_events, write_graphml
    from precede.traces.writers import write_contacts

    contacts = read_stored_contacts(lake, trace, range_m)
    out.mkdir(parents=True, exist_ok=True)
    writers = {"contacts.csv": write_contacts, "events.csv": write_events, "graphml": write_graphml}
    paths = [out / f"{trace}.{suffix}" for suffix in writers]
    for path, write in zip(paths, writers.values(), strict=True):
        write(contacts, path)
    return paths
