"""A reproduction as tables and figures: one table for each exhibit of a paper, one figure for each entry of
`papers/<key>/figures.toml`:

    [[figure]]
    name = "figure4"
    title = "Tuples carried over the propagation time"
    experiment = "figure4"
    x = "propagation"                 # what the experiment varies
    y = "tuple_share"                 # a measure, or several, each a curve: ["tof_latency_s", "tovf_latency_s"]
    curves = ["nodes"]                # what tells the curves apart; the rest must be fixed by `where`
    where = { }
    x_label = "propagation time"
    y_label = "tuples / N²"
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.experiments.tables import read_toml
from precede.measures.statistics import confidence_interval
from precede.report.figures import Curve, Figure, Mark, Point, svg, table_of, write_figure
from precede.report.tables import Cell, Table, markdown, shown, write_table
from precede.reproduction.claims import Claim
from precede.reproduction.judging import STATUSES, Comparison, Sample, place_on

if TYPE_CHECKING:
    from precede.pipeline.reproduction.reproduce import Reproduced

CLAIM: Final = ("claim", "place", "says")
"""The first columns of a page's table."""


class Drawn(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A figure as `figures.toml` asks for it."""

    name: str
    title: str
    experiment: str
    x: str
    y: str | tuple[str, ...]
    curves: tuple[str, ...] = ()
    where: Mapping[str, Any] = {}
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False
    marks: bool = True

    @property
    def measures(self) -> tuple[str, ...]:
        return (self.y,) if isinstance(self.y, str) else self.y


def write_exhibits(told: Reproduced, folder: Path) -> list[Path]:
    """Every table as Markdown, LaTeX, HTML and CSV, every figure as SVG and PNG."""
    written = [path for name, table in tables_of(told) for path in write_table(table, folder, name)]
    for drawn in read_figures(told.asked.folder / "figures.toml"):
        figure = figure_of(drawn, told)
        if figure is not None:
            written += write_figure(figure, folder, f"{drawn.name}-curves")
    return written


def tables_of(told: Reproduced) -> Iterator[tuple[str, Table]]:
    """A table of comparisons for each exhibit; where nothing is claimed, the measures themselves."""
    exhibits: dict[str, list[Comparison]] = {}
    for one in told.comparisons:
        exhibits.setdefault(one.claim.exhibit, []).append(one)
    for exhibit, several in exhibits.items():
        caption = f"{told.asked.key}, {exhibit}: published beside ours ({told.asked.scale} scale)"
        yield exhibit, comparison_table(caption, several)
    if not exhibits:
        yield told.asked.exhibit, measures_table(told)


def comparison_table(caption: str, several: Sequence[Comparison]) -> Table:
    """Published, ours with its interval, how far it is off, the status."""
    readings = any(one.reading for one in several)
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
        for one in several
    ]
    return Table(caption, [*header, "status"], rows)


def markdown_of(told: Reproduced, command_line: str) -> str:
    """A page's section: how many claims of each status, every claim that was answered, the reasons."""
    witness = f"{told.violations:,} violations, {told.unverified:,} not shown to the witness"
    lines = [f"Written by `{command_line}`: {told.units:,} runs, {witness}.", ""]
    for reading in dict.fromkeys(one.reading for one in told.comparisons):
        counts = count_statuses([one for one in told.comparisons if one.reading == reading])
        words = ", ".join(f"{count} {status}" for status, count in counts.items())
        lines.append(f"* {f'Reading `{reading}`: ' if reading else 'Claims: '}{words}.")
    answered = [one for one in told.comparisons if one.status != "paper scale only"]
    readings = any(one.reading for one in answered)
    expected = "expected" if told.asked.is_of_reasons else "paper"
    header = (*CLAIM, *(("reading",) if readings else ()), expected, "ours", "95 % interval", "status")
    rows = [
        [
            f"`{one.claim.id}`",
            one.claim.place,
            one.claim.says,
            *([one.reading] if readings else []),
            published(one.claim),
            ours(one),
            interval(one),
            one.status,
        ]
        for one in answered
    ]
    if answered:
        what = "what the reasons rest on" if told.asked.is_of_reasons else "published beside ours"
        caption = f"{told.asked.key}, {told.asked.scale} scale: {what}"
        lines += ["", markdown(Table(caption, header, rows)).rstrip("\n"), ""]
    reasons = dict.fromkeys((one.reason, one.shown_by) for one in answered if one.reason)
    if reasons:
        lines += ["Why some are not reproduced, and what shows it:", ""]
        for why, shown_by in reasons:
            named = [one.claim.id for one in answered if one.reason == why]
            lines.append(f"* {', '.join(dict.fromkeys(f'`{name}`' for name in named))}: {why} ({shown_by}).")
        lines.append("")
    return "\n".join(lines)


def figures_beside(told: Reproduced, page: Path) -> str:
    """Every figure of what was run, as an SVG file beside a page, and its numbers; as Markdown."""
    lines = []
    for drawn in read_figures(told.asked.folder / "figures.toml"):
        figure = figure_of(drawn, told)
        if figure is not None:
            svg_file = page.with_name(f"{page.stem}-{drawn.name}.svg")
            svg_file.write_text(svg(figure), encoding="utf-8")
            lines += [f"![{figure.title}]({svg_file.name})", "", markdown(table_of(figure))]
    return "\n".join(lines)


def measures_table(told: Reproduced) -> Table:
    """Means of an experiment that no claim is about: a row for each point and measure."""
    rows: list[list[Cell]] = []
    for point in _points(told.samples):
        axes = _described(point[0].varied, told.samples)
        for measure in point[0].measures:
            values = [sample.measures[measure] for sample in point if measure in sample.measures]
            between = confidence_interval(values) if len(values) > 1 else None
            low, high = between or (None, None)
            rows.append([axes, measure, fmean(values), low, high, len(values)])
    header = ("point", "measure", "mean", "low", "high", "runs")
    return Table(f"{told.asked.key}, {told.asked.exhibit} ({told.asked.scale} scale)", header, rows)


def _points(samples: Sequence[Sample]) -> list[list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(repr((sample.experiment, sorted(sample.varied.items()))), []).append(sample)
    return list(found.values())


def _described(varied: Mapping[str, Any], samples: Sequence[Sample]) -> str:
    """What tells a point from the others."""
    apart = [key for key in varied if len({repr(sample.varied.get(key)) for sample in samples}) > 1]
    return ", ".join(f"{key} {varied[key]}" for key in apart) or "all"


def published(claim: Claim) -> str:
    """What the paper says, as a cell.

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
    return {"withheld": "withheld"}.get(claim.kind, claim.kind.replace("_", " "))


def ours(one: Comparison) -> str:
    """Our mean, or from the least to the greatest mean."""
    if one.ours is None:
        return ""
    low, high = (shown(float(value)) for value in one.ours)
    return low if low == high else f"{low} to {high}"


def interval(one: Comparison) -> str:
    return "" if one.interval is None else " to ".join(shown(float(end)) for end in one.interval)


def count_statuses(comparisons: Sequence[Comparison]) -> dict[str, int]:
    """How many claims have each status, in the order of the statuses."""
    counts = Counter(one.status for one in comparisons)
    return {status: counts[status] for status in STATUSES if counts[status]}


def read_figures(path: Path) -> list[Drawn]:
    """The figures of a paper; none when there is no file."""
    if not path.is_file():
        return []
    tables, _ = read_toml(path)
    try:
        return msgspec.convert(tables.get("figure", []), list[Drawn])
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: {error}") from None


def figure_of(drawn: Drawn, told: Reproduced) -> Figure | None:
    """Curves with their intervals, and what was published beside them; None when nothing was run for it."""
    curves: dict[str, list[Point]] = {}
    for point in _points([s for s in told.samples if _is_meant(drawn, s)]):
        for measure in drawn.measures:
            values = [sample.measures[measure] for sample in point if measure in sample.measures]
            if not values:
                continue
            axes = [f"{axis} {_plain(point[0].varied[axis])}" for axis in drawn.curves]
            name = ", ".join([*axes, *([measure] if len(drawn.measures) > 1 or not axes else [])])
            between = confidence_interval(values) if len(values) > 1 else None
            low, high = between or (None, None)
            place = _place(point[0].varied[drawn.x])
            curves.setdefault(name, []).append(Point(place, fmean(values), low, high))
    if not curves:
        return None
    lines = [Curve(name, sorted(points)) for name, points in curves.items()]
    marks = [mark for claim in told.claims.claim for mark in _marks(drawn, claim)] if drawn.marks else []
    names = (drawn.title, drawn.x_label or drawn.x, drawn.y_label or drawn.measures[0])
    return Figure(*names, lines, marks, log_x=drawn.log_x, log_y=drawn.log_y)


def _is_meant(drawn: Drawn, sample: Sample) -> bool:
    fits = all(sample.varied.get(key) == value for key, value in drawn.where.items())
    return sample.experiment == drawn.experiment and fits


def _plain(value: Any) -> str:
    return "–".join(map(str, value)) if isinstance(value, list) else str(value)


def _place(value: Any) -> float:
    """A place on the x axis; durations in minutes."""
    return place_on(value) / 60e6 if isinstance(value, str) else place_on(value)


def _marks(drawn: Drawn, claim: Claim) -> Iterator[Mark]:
    """What the paper says about the measure that a figure shows."""
    about = claim.experiment == drawn.experiment and claim.measure in drawn.measures and claim.against is None
    if not about or claim.statistic != "mean":
        return
    if any(drawn.where.get(key, value) != value for key, value in claim.where.items()):
        return
    low, high = claim.bounds
    if not (math.isfinite(low) or math.isfinite(high)):
        return
    x = _place(claim.where[drawn.x]) if drawn.x in claim.where else None
    if low == high:
        yield Mark(x, low, says=claim.says)
    else:
        ends = [end if math.isfinite(end) else None for end in (low, high)]
        yield Mark(x, None, ends[0], ends[1], says=claim.says)
