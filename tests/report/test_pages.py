"""Every page in a real Chromium, from the disk, without a network: no errors, drawn, fits a phone, readable."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from precede.lake.layout import Lake
from precede.lake.results import read_results
from precede.report.tables import shown
from precede.report.writing import options_text
from tests.report.conftest import Watched

PHONE = {"width": 375, "height": 740}
BLANK = """
canvas => {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  for (let i = 0; i < data.length; i += 28) {
    if (data[i + 3]) colours.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
  }
  return colours.size;
}
"""
CUT_OFF = """
() => [...document.querySelectorAll("body *")].filter(e => {
  if (e.closest(".scroll, pre, .skip, svg, [hidden]") && !e.matches(".scroll, pre")) return false;
  const box = e.getBoundingClientRect();
  return box.width && (box.right > innerWidth + 1 || box.left < -1);
}).map(e => e.outerHTML.slice(0, 80))
"""
DRAWN = """
() => [...document.querySelectorAll("svg.figure")].filter(svg => {
  const box = svg.getBoundingClientRect();
  const shapes = [...svg.querySelectorAll("g.curve[data-name] path, g.curve[data-name] polyline")];
  return box.width < 200 || box.height < 100 || !shapes.length || !svg.querySelector("title").textContent;
}).length
"""


def test_every_page_has_no_errors_is_drawn_and_fits_a_phone(site: Path, watched: Watched) -> None:
    pages = sorted(site.glob("*.html"))
    assert len(pages) > 50
    for path in pages:
        page = watched.open(path)
        assert page.locator("h1").count() == 1, path.name
        assert page.evaluate(DRAWN) == 0, f"{path.name}: a figure is blank"
        for canvas in page.locator("canvas").all():
            assert canvas.evaluate(BLANK) >= 3, f"{path.name}: a canvas is blank"
        page.set_viewport_size(PHONE)
        watched.settle()
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= PHONE["width"], f"{path.name}: {wide} pixels wide on a phone"
        assert page.evaluate(CUT_OFF) == [], path.name
        page.set_viewport_size({"width": 1200, "height": 900})
        assert not watched.wrong, (path.name, watched.wrong)


def test_screenshots_of_every_kind_of_page_are_written(site: Path, watched: Watched) -> None:
    kinds = {
        "index": "index.html",
        "sweep": "sweep-buses.html",
        "paper": "paper-prs1997.html",
        "exhibit": "exhibit-prs1997-figure4.html",
        "protocol": "protocol-delta_causal.html",
        "run-cells": next(site.glob("run-was-*.html")).name,
        "run-buses": next(site.glob("run-delta_causal-*.html")).name,
    }
    for kind, name in kinds.items():
        watched.open(site / name)
        watched.keep(kind, full=True)
    watched.page.emulate_media(color_scheme="dark")
    watched.settle()
    watched.keep("run-buses-dark", full=True)
    watched.page.set_viewport_size(PHONE)
    watched.settle()
    watched.keep("run-buses-phone-dark", full=True)
    watched.page.emulate_media(color_scheme="light", media="print")
    watched.settle()
    watched.keep("run-buses-print", full=True)


def test_dark_mode_is_dark_and_print_has_no_controls(site: Path, watched: Watched) -> None:
    page = watched.open(next(site.glob("run-delta_causal-*.html")))
    brightness = "e => getComputedStyle(e).backgroundColor.match(/\\d+/g).map(Number).reduce((a, b) => a + b)"
    light = page.locator("body").evaluate(brightness)
    page.emulate_media(color_scheme="dark")
    watched.settle()
    assert light > 600
    assert page.locator("body").evaluate(brightness) < 150
    assert page.locator("#diagram").evaluate(BLANK) >= 3
    page.emulate_media(color_scheme="dark", media="print")
    assert page.locator("body").evaluate(brightness) == 765
    assert not page.locator("#zoom-in").is_visible()


def test_the_filter_of_the_index_hides_other_runs(site: Path, watched: Watched) -> None:
    page = watched.open(site / "index.html")
    rows = page.locator("#run-table tbody tr")
    page.locator("#filter").fill("delta_causal 20min")
    shown = [row.inner_text() for row in rows.all() if row.is_visible()]
    assert len(shown) == 2
    assert all("delta_causal" in row and "20min" in row for row in shown)
    assert page.locator("#filter-count").inner_text() == "2 shown"


def test_a_point_of_a_figure_shows_its_value(site: Path, watched: Watched) -> None:
    page = watched.open(site / "sweep-buses.html")
    point = page.locator("svg.figure .curve[data-name=fifo] .point").first
    point.hover()
    assert re.match(r"fifo at 5min: [\d,.]+ \(", page.locator(".tip:visible").inner_text())
    watched.open(site / "exhibit-prs1997-figure4.html")
    assert page.locator("svg.figure .published .range").count() == 3
    assert page.get_by_text("not reproduced", exact=True).count() == 1


def test_a_sweep_over_several_scenarios_shows_every_group(site: Path, lake: Lake, watched: Watched) -> None:
    groups = [row for row in read_results(lake).groups("offices") if row["measure"] == "deliveries"]
    assert len({(row["scenario"], row["protocol"], row["options"]) for row in groups}) == len(groups) == 8
    page = watched.open(site / "sweep-offices.html")
    watched.keep("sweep-offices", full=True)
    rows = page.locator("#rows-numbers tbody tr")
    listed = [[cell.inner_text() for cell in row.locator("th, td").all()] for row in rows.all()]
    head = [cell.inner_text() for cell in page.locator("#rows-numbers thead th").all()]
    at = head.index("Deliveries in a run, deliveries")
    assert sorted((row[0], row[1], row[2], row[at]) for row in listed) == sorted(
        (row["scenario"], row["protocol"], options_text(row["options"]), shown(row["value"])) for row in groups
    )
    titles = page.locator("svg.figure > text").all_text_contents()
    assert titles[:2] == ["Delivery ratio: crowded-office.toml", "Delivery ratio: small-office"]
    for title in (page.locator("svg.figure").nth(place) for place in (0, 1)):
        assert title.locator(".curve[data-name]").count() == 2
    for row in groups:
        settings = json.loads(row["options"])
        figure = page.locator("svg.figure", has_text=f"Deliveries in a run: {row['scenario']}")
        says = f"{row['protocol']} at {settings['world.delay']}: {shown(row['value'])} ("
        assert figure.locator(".point title").filter(has_text=says).count() == 1, says
    ticks = [page.locator("svg.figure").nth(place).locator(".grid").text_content() for place in (2, 3)]
    assert ticks[0] == ticks[1], "panels share their axes"
    assert "None" not in page.locator("main").inner_text()
    page.locator("#filter-numbers").fill("crowded unordered")
    assert sum(row.is_visible() for row in rows.all()) == 2
    with (site / "sweep-offices.csv").open(encoding="utf-8") as file:
        written = [row for row in csv.DictReader(file) if row["measure"] == "deliveries"]
    assert [float(row["value"]) for row in written] == [row["value"] for row in groups]
    page = watched.open(site / "index.html")
    assert page.get_by_text("Delivery ratio: crowded-office.toml").count()
    assert page.locator("#run-table tbody tr", has_text="crowded-office.toml").count() == 8


def test_only_papers_that_were_measured_have_a_page(site: Path) -> None:
    assert [path.name for path in site.glob("paper-*.html")] == ["paper-prs1997.html"]


LABEL_OVERLAP = """
() => [...document.querySelectorAll("svg.figure .grid")].filter(grid => {
  const texts = [...grid.querySelectorAll("text")];
  const label = texts.find(text => text.getAttribute("transform"))?.getBoundingClientRect();
  return texts.some(text => {
    const box = text.getBoundingClientRect();
    return text.getAttribute("text-anchor") === "end" && box.left < label.right - 1
      && box.top < label.bottom && box.bottom > label.top;
  });
}).length
"""


def test_the_label_of_an_axis_does_not_overlap_its_ticks(site: Path, watched: Watched) -> None:
    for path in sorted(site.glob("sweep-*.html")):
        assert watched.open(path).evaluate(LABEL_OVERLAP) == 0, path.name


class Reading(HTMLParser):
    """Collects what a screen reader needs: names of controls, headers of tables, the language."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.inside: list[str] = []
        self.unnamed: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag in ("input", "select") and "label" not in self.inside and "aria-label" not in attributes:
            self.unnamed.append(f"{tag} {attributes}")
        if tag == "canvas" and not ("aria-label" in attributes and attributes.get("tabindex") == "0"):
            self.unnamed.append(f"canvas {attributes}")
        if tag not in ("meta", "link", "input", "br", "img", "hr"):
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass


def test_a_screen_reader_finds_names_and_headers_on_every_page(site: Path) -> None:
    for path in sorted(site.glob("*.html")):
        text = path.read_text(encoding="utf-8")
        reading = Reading()
        reading.feed(text)
        assert reading.unnamed == [], path.name
        tags = [tag for tag, _ in reading.tags]
        assert tags.count("main") == tags.count("h1") == 1
        assert re.search(r"<head>.*<title>[^<]+ · Precede</title>.*</head>", text, re.S)
        assert ("html", {"lang": "en"}) in reading.tags
        assert text.count("<svg ") == len(re.findall(r"<svg [^>]*role=\"img\"[^>]*>\s*<title>", text)), (
            path.name
        )
        assert all(
            "scope" in attributes
            for tag, attributes in reading.tags
            if tag == "th" and "style" not in attributes
        ) or (path.name.startswith(("paper-", "protocol-"))), path.name


def test_all_links_lead_to_files_of_the_site(site: Path) -> None:
    for path in sorted(site.glob("*.html")):
        for target in re.findall(r'(?:href|src)="([^"#]+)', path.read_text(encoding="utf-8")):
            if target.startswith(("https:", "http:")):
                assert path.name.startswith(("paper-", "protocol-")), (path.name, target)
            elif target != "data:,":
                assert (site / target).is_file(), (path.name, target)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours by WCAG 2."""

    def light(colour: str) -> float:
        digits = colour.lstrip("#")
        wide = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
        parts = [int(wide[k : k + 2], 16) / 255 for k in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_colours_have_enough_contrast_in_light_dark_and_print(site: Path) -> None:
    style = (site / "assets" / "style.css").read_text(encoding="utf-8")
    papers = re.findall(r":root \{(.*?)\}", style, re.S)
    assert len(papers) == 3
    for paper in papers:
        colours = dict(re.findall(r"--(\w+): (#\w+)", paper))
        for name in (
            "ink",
            "quiet",
            "link",
            "past",
            "future",
            "selected",
            "wait",
            "bad",
            "good",
            "fair",
            "mute",
        ):
            assert contrast(colours[name], colours["paper"]) >= 4.5, (name, colours[name])
