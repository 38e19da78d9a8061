"""The page of a trace: contacts per hour, neighbours, durations, gaps, reachability and a map."""

from typing import Any, Final

import numpy as np
from markupsafe import Markup

from precede.lake.results import Results
from precede.lake.stored_contacts import read_stored_contacts
from precede.report import trace_data
from precede.report.figures import Curve, Figure, Point
from precede.report.tables import Cell, Link, Table, html
from precede.report.units import Unit, readable, unit_of
from precede.report.writing import Pages, Section, page_name, with_numbers

_MOST_LINES: Final = 20_000
_MAP_SIZE: Final = 720.0


def write_traces(pages: Pages, results: Results) -> Table:
    """Write a page for each trace and range with contacts in the lake; returns the table of traces."""
    rows: list[list[Cell]] = []
    for unit in sorted(results.lake.units("contacts")):
        trace, _, written = unit.partition("@")
        range_m = float(written.removesuffix("m")) if written else None
        meetings = trace_data.meetings_of(read_stored_contacts(results.lake, trace, range_m))
        if not len(meetings.a):
            continue
        facts = _facts(meetings)
        title = trace if range_m is None else f"{trace}, within {range_m:g} m"
        page = pages.write(
            page_name("trace", unit),
            "tables.html",
            title=f"Trace {title}",
            lead=_lead(meetings),
            sections=[
                Section("In numbers", tables=[html(facts)]),
                Section("Over time", figures=[with_numbers(figure) for figure in _over_time(meetings)]),
                Section("Distributions", figures=[with_numbers(figure) for figure in _distributions(meetings)]),
                *_reachability(meetings),
                *_map(results, trace),
                _runs(results, trace, range_m),
            ],
        )
        rows.append(
            [Link(title, page), len(meetings.nodes), len(meetings.a), readable("span_us", meetings.span)]
        )
    return Table("Traces", ("trace", "nodes", "contacts", "span"), rows)


def _lead(meetings: trace_data.Meetings) -> str:
    met = int((trace_data.degrees(meetings) > 0).sum())
    return (
        f"{len(meetings.a):,} contacts of {met:,} nodes in {readable('span_us', meetings.span)}. "
        "Time counts from the trace's first instant."
    )


def _facts(meetings: trace_data.Meetings) -> Table:
    lasted, between, met = (
        meetings.end - meetings.start,
        trace_data.gaps(meetings),
        trace_data.degrees(meetings),
    )
    rows: list[list[Cell]] = [
        ["nodes", len(meetings.nodes)],
        ["contacts", len(meetings.a)],
        ["span", readable("us", meetings.span)],
        ["contacts per hour", len(meetings.a) * 3.6e9 / meetings.span],
        ["different nodes that a node met, mean", float(met.mean())],
    ]
    for name, values in (("contact duration", lasted), ("time between contacts of a pair", between)):
        if len(values):
            rows += [[f"{name}, median", readable("us", float(np.median(values)))]]
            rows += [[f"{name}, mean", readable("us", float(values.mean()))]]
    return Table("The trace", ("what", "value"), rows)


def _over_time(meetings: trace_data.Meetings) -> list[Figure]:
    unit = _clock(meetings.span)
    label = f"time, {unit.name}"
    begun = [Point(at / unit.size, rate) for at, rate in trace_data.begun(meetings)]
    neighbours = [Point(at / unit.size, mean) for at, mean in trace_data.neighbours(meetings)]
    return [
        Figure(
            "Contacts per hour",
            label,
            "contacts that begin, per hour",
            [Curve("contacts", begun, marked=False)],
        ),
        Figure(
            "Neighbours of a node",
            label,
            "mean over the nodes",
            [Curve("neighbours", neighbours, marked=False)],
        ),
    ]


def _distributions(meetings: trace_data.Meetings) -> list[Figure]:
    """Return the figures of durations and gaps (on logarithmic axes) and of degrees."""
    figures = []
    for title, values in (
        ("Contact duration", meetings.end - meetings.start),
        ("Time between contacts of a pair", trace_data.gaps(meetings)),
    ):
        unit = _clock(int(np.median(values))) if len(values) else Unit("s", 1e6)
        points = trace_data.ccdf(values, unit.size)
        if len(points) > 1:
            label = f"{title.lower()}, {unit.name}"
            curve = Curve("share of longer ones", points, marked=False)
            figures.append(Figure(title, label, "share that is longer", [curve], log_x=True, log_y=True))
    met = np.sort(trace_data.degrees(meetings))
    steps = np.unique(met, return_counts=True)
    above = 1 - np.cumsum(steps[1]) / len(met)
    points = [Point(float(x), float(y)) for x, y in zip(steps[0].tolist(), above.tolist(), strict=True)]
    points = [Point(max(0.0, points[0].x - 1), 1.0), *points]
    curve = Curve("share of nodes that met more", points, marked=False)
    figures.append(Figure("Degree", "different nodes met", "share of nodes that met more", [curve]))
    return figures


def _reachability(meetings: trace_data.Meetings) -> list[Section]:
    """Return the section with the figure of reachability; none for a trace of very many contacts."""
    if len(meetings.a) > trace_data.MOST_CONTACTS:
        return []
    unit = _clock(meetings.span)
    curves = []
    for share, points in trace_data.reached(meetings):
        name = f"from {readable('us', share * meetings.span)} on" if share else "from the start on"
        curves.append(Curve(name, [Point(at / unit.size, part) for at, part in points], marked=False))
    figure = Figure("Reachability over time", f"time, {unit.name}", "share of pairs reached", curves)
    text = (
        "A message is born at every node at one instant, and every node hands everything on to whom it meets, "
        "in no time. The curves show the share of pairs of a source and another node that it has reached. No "
        "routing delivers more."
    )
    return [Section("Reachability", Markup("<p>{}</p>").format(text), figures=[with_numbers(figure)])]


def _clock(span: float) -> Unit:
    return unit_of("us", span) or Unit("s", 1e6)


def _map(results: Results, trace: str) -> list[Section]:
    """Return the section with the paths of all nodes as a drawing; none for a trace without positions."""
    if not results.lake.has("segments", trace):
        return []
    moved = results.lake.read("segments", trace, ["x0", "y0", "x1", "y1"])
    columns = [moved[name].to_numpy() for name in ("x0", "y0", "x1", "y1")]
    x0, y0, x1, y1 = columns
    if not len(x0):
        return []
    left, right = float(min(x0.min(), x1.min())), float(max(x0.max(), x1.max()))
    low, high = float(min(y0.min(), y1.min())), float(max(y0.max(), y1.max()))
    scale = _MAP_SIZE / max(right - left, high - low, 1.0)
    parts = np.rint(np.stack(((x0 - left), (high - y0), (x1 - left), (high - y1))) * scale).astype(int)
    moves = np.unique(parts[:, (parts[0] != parts[2]) | (parts[1] != parts[3])], axis=1)
    moves = moves[:, :: -(-moves.shape[1] // _MOST_LINES) or 1]
    lines = [f"M{a} {b}L{c} {d}" for a, b, c, d in moves.T.tolist()]
    width, height = (round(size * scale) for size in (right - left, high - low))
    bar = _bar_length((right - left) or (high - low))
    drawing = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" class="figure" role="img" viewBox="-8 -8 {w} {h}"'
        ' font-size="13"><title>{title}</title><g class="curve c0" data-name="paths" stroke="#0b62a8"'
        ' stroke-opacity="0.45">'
        '<path d="{lines}" fill="none" stroke-width="1"/></g>'
        '<path class="diamond" d="M0 {y}h{bar}" fill="none" stroke="#1c2126" stroke-width="2"/>'
        '<text class="ink" x="0" y="{text_y}">{says}</text></svg>'
    ).format(
        w=max(width, 60) + 16,
        h=height + 52,
        title=f"The paths of the nodes of {trace}",
        lines="".join(lines),
        y=height + 16,
        bar=round(bar * scale),
        text_y=height + 34,
        says=f"{bar / 1000:g} km" if bar >= 1000 else f"{bar:g} m",
    )
    return [Section("Map", figures=[{"svg": drawing, "table": Markup()}])]


def _bar_length(width: float) -> float:
    """Return a round length in metres of about a fifth of a map's width.

    >>> _bar_length(4200), _bar_length(13)
    (500.0, 2.0)
    """
    power = 10.0 ** np.floor(np.log10(max(width, 1e-3) / 5))
    return float(max(power * factor for factor in (1, 2, 5) if power * factor <= max(width, 1e-3) / 5 * 1.0001))


def _runs(results: Results, trace: str, range_m: float | None) -> Section:
    rows: dict[str, int] = {}
    for run in results.runs:
        world: dict[str, Any] = run["about"]["world"]
        if world.get("trace") == trace and world.get("range") in (None, range_m):
            rows[run["sweep"]] = rows.get(run["sweep"], 0) + 1
    table = Table(
        "Runs on this trace", ("sweep", "runs"), [[Link(s, page_name("sweep", s)), n] for s, n in rows.items()]
    )
    return Section("Runs", tables=[html(table)]) if rows else Section()
