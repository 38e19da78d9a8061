"""A figure of results as SVG: curves with confidence intervals, and the values that a paper published.

    figure = Figure("Waits", "lifetime, min", "wait, s",
                    [Curve("delta_causal", [Point(5, 12.5, 11, 14), Point(20, 80.25, 78, 83)])],
                    [Mark(20, 80, says="Table II: 80 s")])
    write_figure(figure, Path("out"), "waits")        # out/waits.svg, .pdf and .png
    write_figure(figure, Path("out"), "waits", column=252)  # 252 pt wide, letters of 8 pt, without its title

Every curve has its own colour, dash and point shape, so curves differ in print and without colours. Colours are
SVG attributes, so that a page's style sheet can override them for dark mode and a file needs no style sheet.
Every point has a title for pointers and screen readers. `table_of` gives the same data as a table.
"""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, NamedTuple

from markupsafe import Markup, escape

from precede.report.axes import Axis, fitting
from precede.report.tables import Cell, Table, shown


class Point(NamedTuple):
    """A measured value, with its confidence interval if there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


class Curve(NamedTuple):
    """Points with one name, sorted by x. `joined`: drawn with a line; `marked`: each point has a shape.

    `style` is for hundreds of points, which have no titles: `dots`, or `segments` (two points are one line).
    """

    name: str
    points: Sequence[Point]
    joined: bool = True
    marked: bool = True
    style: Literal["points", "dots", "segments"] = "points"


class Mark(NamedTuple):
    """A published value, or a range from `low` to `high` (one may be None). Without `x` it holds for all x."""

    x: float | None
    y: float | None = None
    low: float | None = None
    high: float | None = None
    says: str = ""


@dataclass(frozen=True)
class Figure:
    """Curves and published marks over two axes; panels with the same `heights` share their vertical axis."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    marks: Sequence[Mark] = ()
    categories: Sequence[str] = ()
    log_x: bool = False
    log_y: bool = False
    heights: Sequence[float] = ()

    def x_shown(self, x: float) -> str:
        """Return an x value as text: its category, or the number."""
        return self.categories[round(x)] if self.categories else shown(float(x))


COLOURS: Final = ("#0b62a8", "#c4500a", "#107a5b", "#9a2f7f", "#7a6400", "#4b4f58", "#2a8fbd", "#b3303a")
DASHES: Final = ("", "7 3", "2 3", "9 3 2 3", "4 2", "1 2", "12 4", "6 2 2 2")
INK, FAINT, PAPER_MARK = "#1c2126", "#c9ced4", "#111111"
_LEFT, _RIGHT, _TOP, _BOTTOM, _ROW = 74.0, 18.0, 40.0, 52.0, 20.0
_LETTERS: Final = 13
_PRINTED_LETTERS_PT: Final = 8.0
_PNG_DPI: Final = 600
_NO_DATE: Final = datetime(2000, 1, 1, tzinfo=UTC)


def svg(figure: Figure, width: int = 720, height: int = 400, column: float | None = None) -> Markup:
    """Return the figure as one self-contained SVG element; its height grows with the legend.

    With `column`, it is that many points wide and has no title, as in the column of a paper.
    """
    top, size = _TOP, ""
    if column is not None:
        width = round(column * _LETTERS / _PRINTED_LETTERS_PT)
        height, top = round(0.6 * width), 14.0
    legend_rows = _legend_rows(figure, width)
    bottom = height - _BOTTOM
    whole = round(height + _ROW * len(legend_rows))
    size = f' width="{width}" height="{whole}"'
    if column is not None:
        size = f' width="{column:g}pt" height="{column * whole / width:.2f}pt"'
    across, up = _axes(figure, width, bottom, top)
    title = (
        f'<text class="ink" x="{_LEFT:g}" y="22" font-size="15" font-weight="600">{escape(figure.title)}</text>'
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="figure" role="img" viewBox="0 0 {width} {whole}"'
        f'{size} font-family="Source Sans Pro, system-ui, sans-serif"'
        f' font-size="{_LETTERS}" fill="{INK}">',
        f"<title>{escape(figure.title)}</title><desc>{escape(describe(figure))}</desc>",
        *([title] if column is None else []),
        *_draw_axes(figure, across, up, bottom, width),
        *_draw_marks(figure.marks, across, up, figure),
        *(part for k, curve in enumerate(figure.curves) for part in _draw_curve(k, curve, across, up, figure)),
        *_draw_legend(legend_rows, figure.curves, height),
        "</svg>",
    ]
    return Markup("\n".join(parts) + "\n")


def png(figure: Figure, width: int = 1440, column: float | None = None) -> bytes:
    """Return the figure as a PNG image; with `column`, of 600 dots per inch at that many points."""
    import font_source_sans_pro
    import resvg_py

    image: bytes = resvg_py.svg_to_bytes(
        svg_string=svg(figure, column=column),
        width=width if column is None else round(column / 72 * _PNG_DPI),
        dpi=96,
        background="#ffffff",
        skip_system_fonts=True,
        font_files=[font_source_sans_pro.SourceSansPro, font_source_sans_pro.SourceSansProSemibold],
        font_family="Source Sans Pro",
        sans_serif_family="Source Sans Pro",
    )
    return bytes(image)


def pdf(figure: Figure, column: float | None = None) -> bytes:
    """Return the figure as one page of PDF, as lines and letters. The same figure gives the same bytes."""
    import font_source_sans_pro
    from fpdf import FPDF

    drawing = re.sub(r"<(title|desc)>.*?</\1>", "", svg(figure, column=column), flags=re.DOTALL)
    width, height = (float(value) for value in re.findall(r' viewBox="0 0 (\d+) (\d+)"', drawing)[0])
    column = 0.75 * width if column is None else column  # 96 dots per inch, as on a screen
    page = FPDF(unit="pt", format=(column, column * height / width))
    page.set_creation_date(_NO_DATE)
    page.set_title(figure.title)
    page.set_margin(0)
    page.set_auto_page_break(False)
    page.add_font("Source Sans Pro", "", font_source_sans_pro.SourceSansPro)
    page.add_font("Source Sans Pro", "B", font_source_sans_pro.SourceSansProSemibold)
    page.add_page()
    page.image(io.BytesIO(drawing.encode()), x=0, y=0, w=column)
    return bytes(page.output())


def write_figure(figure: Figure, folder: Path, name: str, column: float | None = None) -> list[Path]:
    """Write `name.svg`, `name.pdf` and `name.png`; returns their paths. `column` is a width in points."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "svg": svg(figure, column=column).encode(),
        "pdf": pdf(figure, column),
        "png": png(figure, column=column),
    }
    paths = [folder / f"{name}.{suffix}" for suffix in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        path.write_bytes(content)
    return paths


def table_of(figure: Figure) -> Table:
    rows: list[list[Cell]] = []
    for curve in figure.curves:
        rows += [[curve.name, figure.x_shown(p.x), p.y, p.low, p.high] for p in curve.points]
    for mark in figure.marks:
        x = "" if mark.x is None else figure.x_shown(mark.x)
        rows.append([f"published: {mark.says}", x, mark.y, mark.low, mark.high])
    return Table(figure.title, ("curve", figure.x_label, figure.y_label, "from", "to"), rows)


def describe(figure: Figure) -> str:
    """Return the content of a figure as a sentence, for screen readers."""
    sentences = []
    for curve in figure.curves:
        if curve.points:
            first, last = curve.points[0], curve.points[-1]
            values = [point.y for point in curve.points]
            sentences.append(
                f"{curve.name}: {len(values)} points from {figure.x_shown(first.x)}"
                f" to {figure.x_shown(last.x)}, between {shown(float(min(values)))}"
                f" and {shown(float(max(values)))}"
            )
    marks = f" {len(figure.marks)} published marks." if figure.marks else ""
    return f"{figure.y_label} over {figure.x_label}. " + "; ".join(sentences) + "." + marks


def _axes(figure: Figure, width: float, bottom: float, top: float) -> tuple[Axis, Axis]:
    """Return the horizontal and the vertical axis, such that all points, intervals and marks fit."""
    points = [point for curve in figure.curves for point in curve.points]
    heights = [p.y for p in points] + [v for p in points for v in (p.low, p.high) if v is not None]
    heights += figure.heights
    heights += [v for m in figure.marks for v in (m.y, m.low, m.high) if v is not None]
    if figure.log_y:
        heights = [value for value in heights if value > 0]
    if not heights:
        raise ValueError(f"{figure.title}: a figure without values")
    up = fitting(heights, bottom, top, figure.log_y, zero=True)
    left = max(_LEFT, 40 + 7.2 * max(len(shown(value)) for value in up.ticks()))
    if figure.categories:
        return Axis(-0.5, len(figure.categories) - 0.5, left, width - _RIGHT), up
    places = [p.x for p in points] + [m.x for m in figure.marks if m.x is not None]
    return fitting(places or [0.0], left, width - _RIGHT, figure.log_x, zero=False), up


def _draw_axes(figure: Figure, across: Axis, up: Axis, bottom: float, width: float) -> Iterator[str]:
    left = across.start
    yield '<g class="grid" aria-hidden="true">'
    for value in up.ticks():
        y = up.place(value)
        yield f'<line x1="{left:g}" x2="{width - _RIGHT:g}" y1="{y:.1f}" y2="{y:.1f}" stroke="{FAINT}"/>'
        yield f'<text class="ink" x="{left - 8:g}" y="{y + 4:.1f}" text-anchor="end">{shown(value)}</text>'
    ticks = [float(k) for k in range(len(figure.categories))] if figure.categories else across.ticks()
    for value in ticks:
        x = across.place(value)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom:.1f}" y2="{bottom + 5:.1f}" stroke="{INK}"/>'
        label = escape(figure.x_shown(value))
        inside = x + 3.7 * len(label) <= width
        place = f'x="{x:.1f}" text-anchor="middle"' if inside else f'x="{width - 1:g}" text-anchor="end"'
        yield f'<text class="ink" {place} y="{bottom + 19:.1f}">{label}</text>'
    yield f'<line x1="{left:g}" x2="{width - _RIGHT:g}" y1="{bottom:g}" y2="{bottom:g}" stroke="{INK}"/>'
    middle, height = (across.start + across.end) / 2, (up.start + up.end) / 2
    yield f'<text class="ink" x="{middle:.1f}" y="{bottom + 40:.1f}" text-anchor="middle">'
    yield f"{escape(figure.x_label)}</text>"
    yield f'<text class="ink" transform="translate(16 {height:.1f}) rotate(-90)" text-anchor="middle">'
    yield f"{escape(figure.y_label)}</text></g>"


def _draw_curve(k: int, curve: Curve, across: Axis, up: Axis, figure: Figure) -> Iterator[str]:
    colour = COLOURS[k % len(COLOURS)]
    shift = 0.0
    if figure.categories and len(figure.curves) > 1:
        shift = (k - (len(figure.curves) - 1) / 2) * min(9.0, 60.0 / len(figure.curves))
    points = [p for p in curve.points if not up.logarithmic or p.y > 0]
    places = [(across.place(p.x) + shift, up.place(p.y)) for p in points]
    name = escape(curve.name)
    yield f'<g class="curve c{k % len(COLOURS)}" data-name="{name}" stroke="{colour}" fill="{colour}">'
    if curve.style != "points":
        yield _draw_many(curve.style, places)
    elif curve.joined and len(places) > 1:
        way = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        dash = f' stroke-dasharray="{DASHES[k % len(DASHES)]}"' if DASHES[k % len(DASHES)] else ""
        yield f'<polyline points="{way}" fill="none" stroke-width="1.8"{dash}/>'
    has_shapes = curve.marked and curve.style == "points"
    for point, (x, y) in zip(points, places, strict=True) if has_shapes else ():
        if point.low is not None and point.high is not None and (not up.logarithmic or point.low > 0):
            top, foot = up.place(point.high), up.place(point.low)
            whisker = f"M{x:.1f} {foot:.1f}V{top:.1f}M{x - 3:.1f} {foot:.1f}h6M{x - 3:.1f} {top:.1f}h6"
            yield f'<path d="{whisker}" fill="none" stroke-width="1.2"/>'
        title = f"{curve.name} at {figure.x_shown(point.x)}: {shown(float(point.y))}"
        if point.low is not None and point.high is not None:
            title += f" ({shown(float(point.low))} to {shown(float(point.high))})"
        yield f'<path class="point" d="{_shape(k, x, y)}"><title>{escape(title)}</title></path>'
    yield "</g>"


def _draw_many(style: str, places: Sequence[tuple[float, float]]) -> str:
    """Return one SVG path for many points: a dot for each, or a line for each two."""
    if style == "dots":
        way = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places)
        return f'<path d="{way}" fill="none" stroke-width="2.6" stroke-linecap="round"/>'
    lines = zip(places[::2], places[1::2], strict=True)
    way = "".join(f"M{x:.1f} {y:.1f}H{end:.1f}" for (x, y), (end, _) in lines)
    return f'<path d="{way}" fill="none" stroke-width="1.2"/>'


def _shape(k: int, x: float, y: float, r: float = 3.6) -> str:
    """Return the SVG of a point of curve k: circle, square, triangle or inverted triangle."""
    match k % 4:
        case 0:
            return f"M{x - r:.1f} {y:.1f}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z"
        case 1:
            return f"M{x - r:.1f} {y - r:.1f}h{2 * r}v{2 * r}h{-2 * r}z"
        case 2:
            return f"M{x:.1f} {y - 1.3 * r:.1f}l{1.2 * r:.2f} {2.1 * r:.2f}h{-2.4 * r:.2f}z"
        case _:
            return f"M{x:.1f} {y + 1.3 * r:.1f}l{1.2 * r:.2f} {-2.1 * r:.2f}h{-2.4 * r:.2f}z"


def _draw_marks(marks: Sequence[Mark], across: Axis, up: Axis, figure: Figure) -> Iterator[str]:
    """Yield the SVG of published values: diamonds, and bands for ranges; an open band reaches the edge."""
    yield f'<g class="published" stroke="{PAPER_MARK}" fill="none">'
    for mark in marks:
        title = f"<title>{escape('published: ' + mark.says)}</title>"
        middle = None if mark.x is None else across.place(mark.x)
        if mark.low is not None or mark.high is not None:
            foot = up.start if mark.low is None or mark.low < up.low else up.place(mark.low)
            top = up.end if mark.high is None else up.place(mark.high)
            left, right = (across.start, across.end) if middle is None else (middle - 13, middle + 13)
            yield (
                f'<rect class="range" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}"'
                f' height="{max(1.5, foot - top):.1f}" fill="{PAPER_MARK}" fill-opacity="0.12"'
                f' stroke-dasharray="3 2">{title}</rect>'
            )
        if mark.y is not None and (mark.y > 0 or not up.logarithmic):
            y = up.place(mark.y)
            if middle is None:
                yield (
                    f'<line x1="{across.start:.1f}" x2="{across.end:.1f}" y1="{y:.1f}" y2="{y:.1f}"'
                    f' stroke-dasharray="3 2">{title}</line>'
                )
            else:
                diamond = f"M{middle:.1f} {y - 6.5:.1f}l6.5 6.5l-6.5 6.5l-6.5 -6.5z"
                yield f'<path class="diamond" stroke-width="1.6" d="{diamond}">{title}</path>'
    yield "</g>"


def _legend_rows(figure: Figure, width: float) -> list[list[tuple[int, str, float]]]:
    """Return the legend in rows that fit: curve number (-1: published marks), name and x of each entry."""
    entries = [(k, curve.name) for k, curve in enumerate(figure.curves)]
    if figure.marks:
        entries.append((-1, "published"))
    rows: list[list[tuple[int, str, float]]] = []
    x = width
    for k, name in entries:
        room = 34 + 6.8 * len(name) + 14
        if x + room > width - _RIGHT:
            rows.append([])
            x = _LEFT
        rows[-1].append((k, name, x))
        x += room
    return rows


def _draw_legend(
    rows: Sequence[Sequence[tuple[int, str, float]]], curves: Sequence[Curve], top: float
) -> Iterator[str]:
    yield '<g class="legend" aria-hidden="true">'
    for number, row in enumerate(rows):
        y = top + number * _ROW + 4
        for k, name, x in row:
            if k < 0:
                diamond = f"M{x + 13:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z"
                yield f'<path d="{diamond}" fill="none" stroke="{PAPER_MARK}" class="diamond"/>'
            else:
                colour, dash = COLOURS[k % len(COLOURS)], DASHES[k % len(DASHES)]
                line = f'<path d="M{x:.1f} {y:.1f}h26" stroke-width="1.8" stroke-dasharray="{dash or "none"}"/>'
                shape = f'<path d="{_shape(k, x + 13, y)}"/>'
                has_line, has_shape = (
                    curves[k].style != "dots",
                    curves[k].marked and curves[k].style != "segments",
                )
                drawn = line * has_line + shape * has_shape
                yield f'<g class="curve c{k % len(COLOURS)}" stroke="{colour}" fill="{colour}">{drawn}</g>'
            yield f'<text class="ink" x="{x + 33:.1f}" y="{y + 4.5:.1f}">{escape(name)}</text>'
    yield "</g>"
