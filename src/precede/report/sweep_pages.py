"""The page of a sweep: measures of each group of runs with confidence intervals, as figures and a table."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final

from precede.lake.results import Results, Row
from precede.report.figures import Curve, Figure, Point, svg
from precede.report.tables import Cell, Link, Table, html
from precede.report.writing import Pages, Section, options_text, page_name, with_numbers

_DRAWN: Final = {
    "deliveries": ("Deliveries in a run", "deliveries", 1.0),
    "age_us_mean": ("Age of a message when it is delivered", "seconds", 1e6),
    "wait_us_mean": ("Wait from reception to delivery", "seconds", 1e6),
    "control_bytes_mean": ("Control bytes in a packet", "bytes", 1.0),
    "packets": ("Packets", "packets", 1.0),
    "tuple_share": ("Tuples a message carries, of N squared", "share", 1.0),
}
_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def write_sweep(pages: Pages, results: Results, sweep: str, with_page: set[str]) -> dict[str, Any]:
    """Write the page of a sweep; returns its entry for the index."""
    groups = results.groups(sweep)
    figures = [figure for name in _DRAWN for figure in _figure(groups, name)]
    runs = [run for run in results.runs if run["sweep"] == sweep]
    page = pages.write(
        page_name("sweep", sweep),
        "tables.html",
        title=f"Sweep {sweep}",
        lead=_summary(runs),
        sections=[
            Section("Figures", figures=[with_numbers(figure) for figure in figures]),
            Section("Numbers", tables=[html(_table(groups))]),
            Section("Runs", tables=[html(_runs(results, runs, with_page))]),
        ],
    )
    return {
        "name": sweep,
        "page": page,
        "summary": _summary(runs),
        "figure": svg(figures[0]) if figures else "",
    }


def glance(results: Results) -> Table:
    """The verdicts by sweep and protocol: promised order, checked order, result."""
    rows: list[list[Cell]] = []
    for sweep in results.sweeps():
        runs = [run for run in results.runs if run["sweep"] == sweep and run["run_id"] in results.verdicts]
        for protocol in dict.fromkeys(run["protocol"] for run in runs):
            verdicts = [results.verdicts[run["run_id"]] for run in runs if run["protocol"] == protocol]
            counts = Counter(verdict["verdict"] for verdict in verdicts)
            overall = "violated" if counts["violated"] else "unknown" if counts["unknown"] else "holds"
            rows.append(
                [
                    Link(protocol, page_name("protocol", protocol)),
                    Link(sweep, page_name("sweep", sweep)),
                    verdicts[0]["promised"],
                    verdicts[0]["order"],
                    overall,
                    f"{counts['holds']} of {len(verdicts)}",
                    sum(verdict["deliveries_checked"] or 0 for verdict in verdicts),
                    sum(verdict["violations"] or 0 for verdict in verdicts),
                ]
            )
    columns = (
        *("protocol", "sweep", "promises", "checked for", "verdict", "runs that hold", "deliveries"),
        "violations",
    )
    return Table("The order that each protocol promises, and the verdicts", columns, rows)


def _summary(runs: list[Row]) -> str:
    """A sentence: how many runs of which scenarios, protocols, settings and seeds."""
    protocols = list(dict.fromkeys(run["protocol"] for run in runs))
    scenarios = list(dict.fromkeys(run["scenario"] for run in runs))
    settings = len({run["options"] for run in runs})
    seeds = len({run["seed"] for run in runs})
    return (
        f"{len(runs)} runs of {', '.join(scenarios)}: {', '.join(protocols)}; {settings} setting"
        f"{'' if settings == 1 else 's'}, {seeds} seed{'' if seeds == 1 else 's'}."
    )


def _figure(groups: list[Row], measure: str) -> list[Figure]:
    """A measure over the first setting that the grid varied; one curve for each protocol and other settings."""
    rows = [row for row in groups if row["measure"] == measure]
    if len(rows) < 2 or all(row["value"] == 0 for row in rows):
        return []
    title, unit, scale = _DRAWN[measure]
    settings = [json.loads(row["options"]) for row in rows]
    keys = [
        k
        for k in dict.fromkeys(k for one in settings for k in one)
        if len({str(o.get(k)) for o in settings}) > 1
    ]
    axis = keys[0] if keys else None
    values = [str(one.get(axis)) if axis else row["protocol"] for one, row in zip(settings, rows, strict=True)]
    categories = sorted(set(values), key=_size)
    curves: dict[str, list[Point]] = {}
    for one, value, row in zip(settings, values, rows, strict=True):
        others = [f"{k.rpartition('.')[2]} {one.get(k)}" for k in keys[1:]]
        name = ", ".join([row["protocol"] if axis else measure, *others])
        low, high = (None if row[end] is None else row[end] / scale for end in ("low", "high"))
        curves.setdefault(name, []).append(Point(categories.index(value), row["value"] / scale, low, high))
    drawn_curves = [Curve(name, sorted(points), joined=axis is not None) for name, points in curves.items()]
    label = axis.rpartition(".")[2] if axis else "protocol"
    return [Figure(title, label, unit, drawn_curves, categories=categories)]


def _size(text: str) -> tuple[int, float, str]:
    """A sort key: numbers and durations by size, then other words by name."""
    match = re.fullmatch(r"(-?[\d.]+)\s*(us|ms|s|min|h)?", text)
    return (0, float(match[1]) * _UNITS.get(match[2] or "s", 1.0), text) if match else (1, 0.0, text)


def _table(groups: list[Row]) -> Table:
    """The means of the drawn measures, one row for each group."""
    measures = [name for name in _DRAWN if any(row["measure"] == name for row in groups)]
    cells: dict[tuple[str, str], dict[str, Row]] = {}
    for row in groups:
        cells.setdefault((row["protocol"], row["options"]), {})[row["measure"]] = row
    rows: list[list[Cell]] = []
    for (protocol, options), group in cells.items():
        line: list[Cell] = [protocol, options_text(options), max(row["runs"] for row in group.values())]
        for name in measures:
            mean, scale = group.get(name), _DRAWN[name][2]
            line += [None, None] if mean is None else [mean["value"] / scale, _half(mean, scale)]
        rows.append(line)
    columns = [part for name in measures for part in (f"{_DRAWN[name][0]}, {_DRAWN[name][1]}", "±")]
    return Table(
        "Means over seeds; ± is half of the 95 % confidence interval",
        ["protocol", "options", "runs", *columns],
        rows,
    )


def _half(row: Row, scale: float) -> float | None:
    """Half the width of a confidence interval; None for a single run."""
    return None if row["low"] is None or row["high"] is None else (row["high"] - row["low"]) / 2 / scale


def _runs(results: Results, runs: list[Row], with_page: set[str]) -> Table:
    """The runs of a sweep with links to their pages."""
    rows: list[list[Cell]] = []
    for run in runs:
        name = run["run_id"]
        verdict = results.verdicts.get(name, {}).get("verdict", run["status"])
        link = Link(name, page_name("run", name)) if name in with_page else name
        rows.append([link, run["protocol"], options_text(run["options"]), run["seed"], verdict, run["rows"]])
    return Table("Runs", ("run", "protocol", "options", "seed", "verdict", "rows"), rows)
