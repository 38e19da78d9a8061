"""Writes the tables and figures of a reproduction: Markdown, LaTeX, HTML, CSV, SVG and PNG.

`precede.reproduction.exhibits` decides what they show; `precede.report` draws them.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from precede.report.figures import Curve, Figure, Mark, Point, write_figure
from precede.report.tables import Table, shown, write_table
from precede.reproduction.claims import Claim
from precede.reproduction.exhibits import (
    CurvePoint,
    FigureSpec,
    by_exhibit,
    curves_of,
    measured_means,
    published_values,
    read_figures,
)
from precede.reproduction.judging import Comparison
from precede.reproduction.request import Reproduction


def write_exhibits(result: Reproduction, folder: Path) -> list[Path]:
    """Write every table as Markdown, LaTeX, HTML and CSV, and every figure as SVG and PNG. Return the files."""
    written = [path for name, table in tables_of(result) for path in write_table(table, folder, name)]
    for spec, figure in figures_of(result):
        written += write_figure(figure, folder, f"{spec.name}-curves")
    return written


def tables_of(result: Reproduction) -> Iterator[tuple[str, Table]]:
    """Yield a named table of comparisons for each exhibit. Without claims, yield one table of the measures."""
    request = result.request
    exhibits = by_exhibit(result.comparisons)
    for exhibit, comparisons in exhibits.items():
        caption = f"{request.key}, {exhibit}: published beside ours ({request.scale} scale)"
        yield exhibit, comparison_table(caption, comparisons)
    if not exhibits:
        yield request.exhibit, measures_table(result)


def comparison_table(caption: str, comparisons: Sequence[Comparison]) -> Table:
    """Make a table with a row for each claim: published value, ours with its interval, deviation, status."""
    readings = any(one.reading for one in comparisons)
    header = ["claim", *(["reading"] if readings else []), "says", "paper", "ours", "95 % interval", "off, %"]
    rows = [
        [
            one.claim.id,
            *([one.reading] if readings else []),
            one.claim.says,
            published(one.claim),
            ours(one),
            interval(one),
            None if one.off is None else round(one.off, 2),
            one.status,
        ]
        for one in comparisons
    ]
    return Table(caption, [*header, "status"], rows)


def measures_table(result: Reproduction) -> Table:
    """Make a table with a row for each point and measure of an experiment that no claim is about."""
    request = result.request
    header = ("point", "measure", "mean", "low", "high", "runs")
    rows = [list(mean) for mean in measured_means(result.samples)]
    return Table(f"{request.key}, {request.exhibit} ({request.scale} scale)", header, rows)


def figures_of(result: Reproduction) -> Iterator[tuple[FigureSpec, Figure]]:
    """Yield every figure of the paper for which a point was measured."""
    for spec in read_figures(result.request.folder / "figures.toml"):
        curves = curves_of(spec, result.samples)
        if not curves:
            continue
        lines = [_curve(spec, name, points) for name, points in curves.items()]
        marks = [Mark(*value) for value in published_values(spec, result.request.all_claims().claim)]
        labels = (spec.title, spec.x_label or spec.x, spec.y_label or (spec.columns or spec.measures)[0])
        yield spec, Figure(*labels, lines, marks, tuple(spec.bins), log_x=spec.log_x, log_y=spec.log_y)


def _curve(spec: FigureSpec, name: str, points: Sequence[CurvePoint]) -> Curve:
    drawn = [Point(*point) for point in points]
    if spec.shape == "line":
        return Curve(name, drawn, marked=False)
    return Curve(name, drawn, style=spec.shape)


def published(claim: Claim) -> str:
    """Return the published value or bound, as the text of a table cell.

    >>> published(Claim(id="c", place="p", says="s", experiment="e", kind="at_most", measure="m", value=4))
    'at most 4'
    """
    low, high = claim.bounds
    if claim.kind in ("about", "greatest"):
        return shown(float(low))
    if math.isfinite(low) and math.isfinite(high):
        return f"{shown(float(low))} to {shown(float(high))}"
    if math.isfinite(high):
        return f"at most {shown(float(high))}"
    if math.isfinite(low):
        return f"at least {shown(float(low))}"
    return claim.kind.replace("_", " ")


def ours(one: Comparison) -> str:
    """Return our mean, or the range of our means, as the text of a table cell; empty if there is none."""
    if one.ours is None:
        return ""
    low, high = (shown(float(value)) for value in one.ours)
    return low if low == high else f"{low} to {high}"


def interval(one: Comparison) -> str:
    """Return the 95 % interval of our mean as the text of a table cell; empty if there is none."""
    return "" if one.interval is None else " to ".join(shown(float(end)) for end in one.interval)
