"""Pages of an emulation: real nodes beside the simulations of the same scenario, and each one's own page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup, escape

from precede.lake.results import Results, Row
from precede.report.figures import Curve, Figure, Point
from precede.report.run_pages import RunPages
from precede.report.site import EVENTS, fresh_folder
from precede.report.tables import Cell, Link, Table
from precede.report.writing import Section, tabled, with_numbers

_SHOWN: Final = (
    *("broadcasts", "receptions", "deliveries", "own_deliveries", "expired"),
    *("transit_us_mean", "transit_us_median", "wait_us_mean", "wait_us_max", "age_us_mean", "age_us_median"),
)
_LISTED: Final = 200
_POINTS: Final = 100


def write_emulation(
    out: Path,
    results: Results,
    title: str,
    facts: Sequence[tuple[str, Cell]],
    ages: Mapping[str, Sequence[float]],
    sets: Sequence[Sequence[Cell]],
    kinds: Sequence[Mapping[str, Any]],
    differences: Sequence[Sequence[Cell]],
    command: str,
) -> Path:
    """The front page, and a page for every run in `results`; where the front page is."""
    pages = fresh_folder(out)
    writer = RunPages(pages, results, EVENTS)
    for run in results.runs:
        writer.write(run)
    sections = [
        Section("What happened", tables=[tabled(Table("The emulation", ("", ""), [list(f) for f in facts]))]),
        _agreement(sets),
        _differences(kinds, differences),
        _measures(results),
        Section("When", _AGES, figures=[with_numbers(_ages(ages))]),
        Section("The same again", command=command),
    ]
    page = pages.write("index.html", "tables.html", title=title, lead="", sections=sections)
    return out / page


_AGES: Final = Markup(
    "<p>How old messages were when others than their source delivered them. Instants differ between a"
    " simulation in which transfers take no time and real nodes, whose transfers take the machine's time"
    " multiplied by the speed.</p>"
)


def _agreement(sets: Sequence[Sequence[Cell]]) -> Section:
    header = ("the emulation beside", "deliveries there", "emulated", "in both", "there alone", "here alone")
    text = Markup(
        "<p>Who delivered what. Beside the scenario's own network, and beside the simulation in which links and"
        " transfers take the instants and times that were measured in the emulation.</p>"
    )
    return Section("What agrees", text, tables=[tabled(Table("Delivered sets", header, sets))])


def _differences(kinds: Sequence[Mapping[str, Any]], differences: Sequence[Sequence[Cell]]) -> Section:
    if not differences:
        return Section("What differs", Markup("<p>With measured times, nothing: every set is the same.</p>"))
    rows: list[list[Cell]] = [
        [one["kind"], one["only_in"], one["count"], one["margin_s_max"], one["says"]] for one in kinds
    ]
    header = ("kind", "only in", "deliveries", "farthest from the edge, s", "what it means")
    more = f" (the first {_LISTED} of {len(differences):,})" if len(differences) > _LISTED else ""
    each = ("node", "source", "number", "only in", "kind", "came from", "from the edge, s")
    return Section(
        "What differs",
        Markup("<p>Deliveries that the emulation or the simulation with measured times has alone.</p>"),
        tables=[
            tabled(Table("Differences by kind", header, rows)),
            tabled(Table(f"Each of them{more}", each, list(differences)[:_LISTED])),
        ],
    )


def _measures(results: Results) -> Section:
    names = [run["run_id"] for run in results.runs]
    header = ("measure", *names)
    rows: list[list[Cell]] = [
        [measure, *(results.of_run(name).get(measure) for name in names)]
        for measure in _SHOWN
        if any(results.of_run(name).get(measure) is not None for name in names)
    ]
    order: list[Cell] = ["order", *(_verdict(results, run) for run in results.runs)]
    pages: list[Cell] = ["page", *(Link("open", f"run-{name}.html") for name in names)]
    return Section("Measures", tables=[tabled(Table("Measures", header, [order, *rows, pages]))])


def _verdict(results: Results, run: Row) -> str:
    return str(escape(results.verdicts[run["run_id"]]["verdict"]))


def _ages(ages: Mapping[str, Sequence[float]]) -> Figure:
    curves = []
    for name, values in ages.items():
        ordered = sorted(values)
        step = max(1, len(ordered) // _POINTS)
        points = [Point(ordered[k], (k + 1) / len(ordered)) for k in range(0, len(ordered), step)]
        curves.append(Curve(name, points, marked=False))
    return Figure("Age at delivery", "age, s of the scenario", "share of deliveries", curves)
