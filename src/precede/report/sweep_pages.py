"""The page of a sweep: measures of each group of runs with confidence intervals, as figures and a table."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup

from precede.lake.results import Results, Row
from precede.measures.delivery import WITHIN
from precede.report.difference_pages import difference_sections
from precede.report.figures import COLOURS, Curve, Figure, Point, svg
from precede.report.tables import Cell, Link, Table, csv_text, html
from precede.report.units import unit_of
from precede.report.writing import Pages, Section, options_text, page_name, with_numbers

DRAWN: Final = {
    "delivery_ratio": ("Delivery ratio", "share of expected deliveries"),
    "deliveries": ("Deliveries in a run", "deliveries"),
    "age_us_mean": ("Age of a message when it is delivered", ""),
    "wait_us_mean": ("Wait from reception to delivery", ""),
    "control_bytes_mean": ("Control data in a packet", ""),
    "packets": ("Packets", "packets"),
    "overhead_ratio": ("Overhead ratio", "copies that were no delivery, per delivery"),
    "tuple_share": ("Tuples a message carries, of N squared", "share"),
}
NOT_SET: Final = "not set"
_WITHIN: Final = "delivery_ratio_within_"
_NUMBER: Final = re.compile(r"(-?\d[\d.]*)\s*(us|ms|s|min|h)?")
_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def write_sweep(pages: Pages, results: Results, sweep: str, with_page: set[str]) -> dict[str, Any]:
    """Write the page of a sweep; returns its entry for the index."""
    groups = results.groups(sweep)
    panels = [figures for name in DRAWN if (figures := figures_of(groups, name))]
    runs = [run for run in results.runs if run["sweep"] == sweep]
    page = pages.write(
        page_name("sweep", sweep),
        "tables.html",
        title=f"Sweep {sweep}",
        lead=_summary(runs),
        sections=[
            Section("Figures", figures=[with_numbers(figure) for figures in panels for figure in figures]),
            *_latency(groups),
            *difference_sections([row for row in results.differences if row["sweep"] == sweep]),
            Section(
                "Numbers",
                _download(pages, sweep, groups),
                tables=[html(table_of_groups(groups))],
                filter="numbers",
            ),
            Section("Runs", tables=[html(run_table("Runs", results, runs, with_page))], filter="runs"),
        ],
    )
    return {
        "name": sweep,
        "page": page,
        "summary": _summary(runs),
        "figures": [svg(figure) for figure in panels[0]] if panels else [],
    }


def _latency(groups: list[Row]) -> list[Section]:
    """Return the section of deliveries over time: a panel for each scenario, a curve for each group of runs.

    Too many curves get a panel for each value of the axis' setting; if they are still too many, none.
    """
    curves: dict[tuple[str, str, str], list[Row]] = {}
    for row in sorted(groups, key=_in_order):
        if row["measure"].removeprefix(_WITHIN) in WITHIN and row["value"] is not None:
            curves.setdefault((row["scenario"], row["protocol"], row["options"]), []).append(row)
    settings = [json.loads(options) for _, _, options in curves]
    axis = _axis(settings, _varied(settings))
    for fixed in ([], [] if axis is None else [axis]):
        panels: dict[str, dict[str, list[Row]]] = {}
        for ((scenario, protocol, _), rows), own in zip(curves.items(), settings, strict=True):
            name = _curve_name([protocol], own, [key for key in own if key not in (*fixed, "protocol")])
            panels.setdefault(_curve_name([scenario], own, fixed), {})[name] = rows
        if all(len(curves) <= len(COLOURS) for curves in panels.values()):
            figures = [_over_time(name if len(panels) > 1 else "", panels[name]) for name in panels]
            shown = [with_numbers(figure) for figure in figures if figure is not None]
            text = Markup("<p>Mean and 95 % interval over seeds; a curve ends at the delivery ratio.</p>")
            return [Section("Latency", text, figures=shown)] if shown else []
    return []


def _over_time(scenario: str, curves: Mapping[str, list[Row]]) -> Figure | None:
    """Draw the share of expected deliveries within a time, up to where no curve rises; None without any."""
    measures = dict.fromkeys(row["measure"] for rows in curves.values() for row in rows)
    ages = {measure: WITHIN[measure.removeprefix(_WITHIN)] for measure in measures}
    last = {name: max(row["value"] for row in rows) for name, rows in curves.items()}
    rising = [
        ages[row["measure"]] for name, rows in curves.items() for row in rows if 0 < row["value"] < last[name]
    ]
    longest = min((age for age in ages.values() if age > max(rising, default=0)), default=0)
    unit = unit_of("us", longest)
    if not any(last.values()) or unit is None:
        return None
    return Figure(
        f"Delivered within a time{': ' if scenario else ''}{scenario}",
        f"time since the broadcast, {unit.name}",
        "share of expected deliveries",
        [
            Curve(
                name,
                sorted(
                    Point(ages[row["measure"]] / unit.size, row["value"], row["low"], row["high"])
                    for row in rows
                    if ages[row["measure"]] <= longest
                ),
            )
            for name, rows in curves.items()
        ],
        log_x=True,
    )


def _in_order(row: Row) -> tuple[str, str, list[tuple[int, float, str]]]:
    """Return a sort key for runs and groups: scenario, protocol, then settings by size."""
    settings = json.loads(row["options"])
    return row["scenario"], row["protocol"], [_size(str(settings[key])) for key in sorted(settings)]


def glance(results: Results) -> Table:
    """Return the table of verdicts by sweep, scenario and protocol: promised order, checked order, result."""
    rows: list[list[Cell]] = []
    for sweep in results.sweeps():
        runs = [run for run in results.runs if run["sweep"] == sweep and run["run_id"] in results.verdicts]
        for group in dict.fromkeys((run["scenario"], run["protocol"]) for run in runs):
            scenario, protocol = group
            members = [run for run in runs if (run["scenario"], run["protocol"]) == group]
            verdicts = [results.verdicts[run["run_id"]] for run in members]
            counts = Counter(verdict["verdict"] for verdict in verdicts)
            overall = "violated" if counts["violated"] else "unknown" if counts["unknown"] else "holds"
            rows.append(
                [
                    Link(protocol, page_name("protocol", protocol)),
                    Link(sweep, page_name("sweep", sweep)),
                    scenario,
                    verdicts[0]["promised"],
                    verdicts[0]["order"],
                    overall,
                    f"{counts['holds']} of {len(verdicts)}",
                    sum(verdict["deliveries_checked"] or 0 for verdict in verdicts),
                    sum(verdict["violations"] or 0 for verdict in verdicts),
                ]
            )
    columns = (
        *("protocol", "sweep", "scenario", "promises", "checked for", "verdict", "runs that hold"),
        *("deliveries", "violations"),
    )
    return Table("The order that each protocol promises, and the verdicts", columns, rows)


def _summary(runs: list[Row]) -> str:
    """Return a sentence: how many runs of which scenarios, protocols, settings and seeds."""
    protocols = list(dict.fromkeys(run["protocol"] for run in runs))
    scenarios = list(dict.fromkeys(run["scenario"] for run in runs))
    settings = len({run["options"] for run in runs})
    seeds = len({run["seed"] for run in runs})
    return (
        f"{len(runs)} runs of {', '.join(scenarios)}: {', '.join(protocols)}; {settings} setting"
        f"{'' if settings == 1 else 's'}, {seeds} seed{'' if seeds == 1 else 's'}."
    )


def figures_of(groups: list[Row], measure: str) -> list[Figure]:
    """Return figures of a measure over the first varied setting: a panel for each scenario, same axes."""
    rows = [row for row in groups if row["measure"] == measure and row["value"] is not None]
    if len(rows) < 2 or all(row["value"] == 0 for row in rows):
        return []
    title, unit, scale = _titled(rows, measure)
    settings = [json.loads(row["options"]) for row in rows]
    keys = _varied(settings)
    axis = _axis(settings, keys)
    others = [key for key in keys if key != axis]
    values = [_value(one, axis) if axis else row["protocol"] for one, row in zip(settings, rows, strict=True)]
    categories = sorted(set(values), key=_size)
    names: list[str] = []
    one_protocol = len({row["protocol"] for row in rows}) == 1
    order = {}
    for one, row in zip(settings, rows, strict=True):
        first = ([] if one_protocol and others else [row["protocol"]]) if axis else [unit]
        name = _curve_name(first, one, others) or row["protocol"]
        order[name] = [row["protocol"], *(_size(_value(one, key)) for key in others)]
        names.append(name)
    scenarios = list(dict.fromkeys(row["scenario"] for row in rows))
    curve_names = sorted(order, key=lambda name: order[name])
    panels: dict[str, dict[str, list[Point]]] = {s: {name: [] for name in curve_names} for s in scenarios}
    heights = []
    for value, name, row in zip(values, names, rows, strict=True):
        low, high = (None if row[end] is None else row[end] / scale for end in ("low", "high"))
        point = Point(categories.index(value), row["value"] / scale, low, high)
        panels[row["scenario"]][name].append(point)
        heights += [height for height in (point.y, low, high) if height is not None]
    label = axis.rpartition(".")[2] if axis else "protocol"
    is_scale = axis is not None and all(_is_number(value) for value in categories if value != NOT_SET)
    return [
        Figure(
            title if len(scenarios) == 1 else f"{title}: {scenario}",
            label,
            unit,
            [Curve(name, sorted(points), joined=is_scale) for name, points in curves.items()],
            categories=categories,
            heights=heights,
        )
        for scenario, curves in panels.items()
    ]


def _titled(rows: list[Row], measure: str) -> tuple[str, str, float]:
    """Return the title, unit and scale in which these values of a measure are shown."""
    title, word = DRAWN.get(measure, (measure.replace("_", " "), ""))
    unit = unit_of(measure, max((abs(row["value"]) for row in rows if row["value"] is not None), default=0.0))
    return (title, word, 1.0) if unit is None else (title, unit.name, unit.size)


def _varied(settings: list[dict[str, Any]]) -> list[str]:
    keys = dict.fromkeys(key for one in settings for key in one if key != "protocol")
    return [key for key in keys if len({str(one.get(key)) for one in settings}) > 1]


def _axis(settings: list[dict[str, Any]], keys: list[str]) -> str | None:
    """Return the varied setting for the horizontal axis, one of numbers or durations first; None if none is."""

    def is_scale(key: str) -> bool:
        return all(_is_number(str(one[key])) for one in settings if one.get(key) is not None)

    return next((key for key in keys if is_scale(key)), keys[0] if keys else None)


def _value(settings: dict[str, Any], key: str) -> str:
    """Return the value of a setting as a category; "not set" for a protocol that does not have the setting."""
    value = settings.get(key)
    return NOT_SET if value is None else str(value)


def _curve_name(first: list[str], settings: dict[str, Any], keys: list[str]) -> str:
    """Return the name of a curve: protocol, and the settings that it has of those that vary."""
    others = [
        str(settings[key]) if key == "dissemination" else f"{key.rpartition('.')[2]} {settings[key]}"
        for key in keys
        if settings.get(key) is not None
    ]
    return ", ".join([*first, *others])


def _size(text: str) -> tuple[int, float, str]:
    """Return a sort key: numbers and durations by size, then other words by name."""
    match = _NUMBER.fullmatch(text)
    return (0, float(match[1]) * _UNITS.get(match[2] or "s", 1.0), text) if match else (1, 0.0, text)


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def table_of_groups(groups: list[Row]) -> Table:
    measures = [name for name in DRAWN if any(row["measure"] == name for row in groups)]
    titles = {name: _titled([row for row in groups if row["measure"] == name], name) for name in measures}
    cells: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in sorted(groups, key=_in_order):
        cells.setdefault((row["scenario"], row["protocol"], row["options"]), {})[row["measure"]] = row
    rows: list[list[Cell]] = []
    for (scenario, protocol, options), group in cells.items():
        runs = max(row["runs"] for row in group.values())
        line: list[Cell] = [scenario, protocol, options_text(options), runs]
        for name in measures:
            mean, scale = group.get(name), titles[name][2]
            known = mean is not None and mean["value"] is not None
            line += [mean["value"] / scale, _half(mean, scale)] if mean is not None and known else [None, None]
        rows.append(line)
    columns = [part for title, unit, _ in titles.values() for part in (f"{title}, {unit}", "±")]
    return Table(
        "Means over seeds; ± is half of the 95 % confidence interval",
        ["scenario", "protocol", "options", "runs", *columns],
        rows,
    )


def _half(row: Row, scale: float) -> float | None:
    return None if row["low"] is None or row["high"] is None else (row["high"] - row["low"]) / 2 / scale


def run_table(title: str, results: Results, runs: list[Row], with_page: set[str]) -> Table:
    """Return a table of runs, with links to their pages."""
    rows: list[list[Cell]] = []
    for run in runs:
        name = run["run_id"]
        link = Link(name, page_name("run", name)) if name in with_page else name
        verdict = results.verdicts.get(name, {}) if run["status"] == "finished" else {}
        described = (run["scenario"], run["protocol"], options_text(run["options"]), run["seed"])
        rows.append(
            [link, *described, verdict.get("order"), verdict.get("verdict", run["status"]), run["rows"]]
        )
    columns = ("run", "scenario", "protocol", "options", "seed", "order", "verdict", "rows")
    return Table(title, columns, rows)


def _download(pages: Pages, sweep: str, groups: list[Row]) -> Markup:
    """Write every measure of every group as CSV; returns a link to the file."""
    columns = ("scenario", "protocol", "options", "measure", "value", "low", "high", "runs")
    table = Table(sweep, columns, [[row[column] for column in columns] for row in groups])
    name = page_name("sweep", sweep).removesuffix(".html") + ".csv"
    pages.file(name, csv_text(table))
    return Markup('<p>All measures of all groups: <a href="{0}">{0}</a></p>').format(name)
