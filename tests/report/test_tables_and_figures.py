"""Tables and figures have the same content in every format."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from precede.lake.results import Results
from precede.report import site, sweep_pages
from precede.report.figures import Curve, Figure, Mark, Point, png, svg, table_of, write_figure
from precede.report.tables import Link, Table, csv_text, html, latex, markdown, write_table

TABLE = Table(
    "Waits & ages (50 %)",
    ("protocol", "wait_s", "verdict"),
    [(Link("delta_causal", "d.html"), 12.345678901234, "holds"), ("a|b <i>", None, "violated")],
)
FIGURE = Figure(
    "Waits",
    "lifetime",
    "wait, s",
    [
        Curve("first <1>", [Point(0, 10.0, 8.0, 12.0), Point(1, 20.0, 19.0, 25.0)]),
        Curve("second", [Point(0, 5.0), Point(1, 40.0)]),
    ],
    [Mark(1, 21.0, says="Table II"), Mark(0, low=6.0, high=9.0, says="between 6 and 9")],
    categories=("5min", "20min"),
)
SVG = "{http://www.w3.org/2000/svg}"


def test_every_format_of_a_table_escapes_its_special_characters() -> None:
    assert r"a\|b" in markdown(TABLE)
    text = latex(TABLE)
    assert r"Waits \& ages (50 \%)" in text
    assert r"delta\_causal & 12.35 & holds \\" in text
    page = ElementTree.fromstring(html(TABLE))
    assert [cell.text for cell in page.iter("td")] == ["12.35", None, None, None]
    assert [word.get("class") for word in page.iter("span")] == ["word good", "word bad"]
    assert next(page.iter("a")).get("href") == "d.html"


def test_csv_keeps_every_digit(tmp_path: Path) -> None:
    rows = list(csv.reader(csv_text(TABLE).splitlines()))
    assert float(rows[1][1]) == 12.345678901234
    assert {path.suffix for path in write_table(TABLE, tmp_path / "new", "waits")} == {
        *(".md", ".tex", ".html", ".csv")
    }


def test_a_row_with_a_wrong_number_of_cells_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cells for 2"):
        Table("t", ("a", "b"), [("x",)])


def test_a_point_is_drawn_at_its_coordinates() -> None:
    drawing = ElementTree.fromstring(svg(FIGURE))
    first, second = [g for g in drawing.iter(f"{SVG}g") if g.get("data-name")]
    heights = {}
    for curve in (first, second):
        line = next(curve.iter(f"{SVG}polyline")).get("points", "")
        heights[curve.get("data-name")] = [float(pair.split(",")[1]) for pair in line.split()]
    (y10, y20), (y5, y40) = heights["first <1>"], heights["second"]
    assert (y5 - y20) / (y5 - y10) == pytest.approx(3, rel=0.01)
    assert (y5 - y40) / (y5 - y10) == pytest.approx(7, rel=0.01)
    titles = [title.text for title in drawing.iter(f"{SVG}title")]
    assert "first <1> at 20min: 20 (19 to 25)" in titles
    assert "published: between 6 and 9" in titles


def test_a_figure_is_also_a_table() -> None:
    rows = table_of(FIGURE).rows
    assert ["first <1>", "20min", 20.0, 19.0, 25.0] in rows
    assert ["published: Table II", "20min", 21.0, None, None] in rows


def test_a_png_has_text_on_machines_without_fonts(tmp_path: Path) -> None:
    with_letters = png(FIGURE, 720)
    blank = Figure("", "", "", FIGURE.curves, FIGURE.marks, categories=("", ""))
    assert with_letters[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(with_letters) > 1.2 * len(png(blank, 720))
    assert [path.suffix for path in write_figure(FIGURE, tmp_path, "waits")] == [".svg", ".pdf", ".png"]
    assert re.search(r"<title>Waits</title>", (tmp_path / "waits.svg").read_text())


def test_a_logarithmic_axis_leaves_out_zero() -> None:
    figure = Figure(
        "t", "n", "b", [Curve("c", [Point(1, 0.0), Point(10, 100.0), Point(100, 10.0)])], log_y=True
    )
    drawing = ElementTree.fromstring(svg(figure))
    assert len([p for p in drawing.iter(f"{SVG}path") if p.get("class") == "point"]) == 2
    with pytest.raises(ValueError, match="figure without values"):
        svg(Figure("t", "n", "b", [Curve("c", [])]))


def test_the_latency_of_a_sweep_is_that_of_all_its_runs_with_intervals():
    values = {"1s": 0.0, "1min": 0.25, "20min": 0.5, "1h": 0.5, "24h": 0.5}
    groups = [
        {
            **{
                "scenario": scenario,
                "protocol": "x",
                "options": "{}",
                "measure": f"delivery_ratio_within_{age}",
            },
            **{"value": value, "low": value - 0.1, "high": value + 0.1, "runs": 5},
        }
        for scenario in ("bus", "walk")
        for age, value in values.items()
    ]
    (section,) = sweep_pages._latency(groups)
    assert len(section.figures) == 2, "a panel for each scenario"
    figure = sweep_pages._over_time("bus", {"x": groups[:5]})
    assert figure is not None
    assert [point.y for point in figure.curves[0].points] == [0.0, 0.25, 0.5], "ends where nothing rises"
    assert [point.low for point in figure.curves[0].points] == pytest.approx([-0.1, 0.15, 0.4])
    assert sweep_pages._latency([]) == []


def test_pages_are_for_broken_runs_first_then_for_first_seeds_within_the_rows(monkeypatch: pytest.MonkeyPatch):
    class Stored:
        def has(self, table: str, run_id: str) -> bool:
            return run_id != "lost"

    def run(name: str, seed: int, rows: int = 40) -> dict[str, Any]:
        return {"run_id": name, "seed": seed, "rows": rows, "status": "finished"}

    runs = [run("a1", 1), run("a2", 2), run("b1", 1), run("b2", 2), run("lost", 1)]
    results = Results(Stored(), runs=runs, verdicts={"b2": {"verdict": "violated"}})  # type: ignore[arg-type]
    monkeypatch.setattr(site, "_ROWS", 100)
    assert [run["run_id"] for run in site._chosen(results, None)] == ["b2", "a1", "b1"]
    assert [run["run_id"] for run in site._chosen(results, 9)] == ["b2", "a1", "b1", "a2"]


def test_many_points_are_one_path_of_dots_or_of_lines() -> None:
    points = [Point(0, 1), Point(4, 1), Point(1, 2), Point(3, 2)]
    for style, drawn in (("dots", r"(M[\d.]+ [\d.]+h0){4}"), ("segments", r"(M[\d.]+ [\d.]+H[\d.]+){2}")):
        figure = Figure("Stays", "h", "node", [Curve("stays", points, style=style)])  # type: ignore[arg-type]
        (group,) = (
            one
            for one in ElementTree.fromstring(svg(figure)).iter(f"{SVG}g")
            if one.get("data-name") == "stays"
        )
        (path,) = list(group)
        assert re.fullmatch(drawn, path.get("d") or ""), style
        assert len(table_of(figure).rows) == 4
