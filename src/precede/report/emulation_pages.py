"""The pages of an emulation: real nodes compared with simulations of the same scenario, and a page for each."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup, escape

from precede.lake.results import Results, Row
from precede.report.figures import Curve, Figure, Point
from precede.report.run_pages import RunPages
from precede.report.site import EVENTS, fresh_folder
from precede.report.tables import Cell, Link, Table, html
from precede.report.writing import Section, page_name, with_numbers

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
    """Write the front page and a page for every run in `results`; returns the path of the front page."""
    pages = fresh_folder(out)
    writer = RunPages(pages, results, EVENTS)
    for run in results.runs:
        writer.write(run)
    sections = [
        Section("The emulation", tables=[html(Table("Facts", ("", ""), [list(f) for f in facts]))]),
        _agreement(sets),
        _differences(kinds, differences),
        _measures(results),
        Section("Ages", _AGES, figures=[with_numbers(_ages(ages))]),
        Section("Run it again", command=command),
    ]
    page = pages.write("index.html", "tables.html", title=title, lead="", sections=sections)
    return out / page


_AGES: Final = Markup(
    "<p>The age of messages when nodes other than their source delivered them. Transfers take no time in the"
    " simulation; between real nodes they take the machine's time multiplied by the speed. The instants"
    " therefore differ.</p>"
)


def _agreement(sets: Sequence[Sequence[Cell]]) -> Section:
    """Return the section that compares the sets of deliveries with those of each simulation."""
    header = ("simulated with", "simulated", "emulated", "in both", "only simulated", "only emulated")
    text = Markup(
        "<p>The deliveries of the emulation, compared with two simulations: with the scenario's own network,"
        " and with the link instants and transfer times that were measured in the emulation.</p>"
    )
    return Section("Agreement", text, tables=[html(Table("Delivered sets", header, sets))])


def _differences(kinds: Sequence[Mapping[str, Any]], differences: Sequence[Sequence[Cell]]) -> Section:
    """Return the section about deliveries that only the emulation or only the simulation has, by kind."""
    if not differences:
        return Section("Differences", Markup("<p>None: with measured times all deliveries are the same.</p>"))
    rows: list[list[Cell]] = [
        [one["kind"], one["only_in"], one["count"], one["margin_s_max"], one["says"]] for one in kinds
    ]
    header = ("kind", "only in", "deliveries", "largest margin, s", "meaning")
    more = f" (the first {_LISTED} of {len(differences):,})" if len(differences) > _LISTED else ""
    each = ("node", "source", "number", "only in", "kind", "came from", "margin, s")
    return Section(
        "Differences",
        Markup("<p>Deliveries that only the emulation or only the simulation with measured times has.</p>"),
        tables=[
            html(Table("Differences by kind", header, rows)),
            html(Table(f"All differences{more}", each, list(differences)[:_LISTED])),
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
    pages: list[Cell] = ["page", *(Link("open", page_name("run", name)) for name in names)]
    return Section("Measures", tables=[html(Table("Measures", header, [order, *rows, pages]))])


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
