"""The page of a trace: its numbers against plain recounts, and the page in a browser."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from precede.lake.layout import Lake
from precede.lake.results import read_results
from precede.report import trace_data
from precede.report.run_data import read_log
from precede.report.site import build_site
from precede.traces.contacts import contact_list

if TYPE_CHECKING:
    from tests.report.conftest import Watched

S = 1_000_000


def drawn(seed: int) -> trace_data.Meetings:
    random = Random(seed)
    rows = []
    for _ in range(60):
        a, b = random.sample("abcdefg", 2)
        start = random.randrange(0, 400) * S
        rows.append((a, b, start, start + random.randrange(1, 40) * S))
    return trace_data.meetings_of(contact_list(rows))


def rows_of(meetings: trace_data.Meetings) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in meetings[1:]), strict=True))


def flooded(meetings: trace_data.Meetings, begin: int, until: int) -> float:
    """The share of pairs, by relaxing every contact again and again until nothing changes."""
    reached = 0
    for source in range(len(meetings.nodes)):
        at = {source: begin}
        changed = True
        while changed:
            changed = False
            for a, b, start, end in rows_of(meetings):
                for here, there in ((a, b), (b, a)):
                    arrival = max(start, at.get(here, end))
                    if here in at and arrival < end and arrival < at.get(there, end):
                        at[there] = arrival
                        changed = True
        reached += sum(1 for node, instant in at.items() if node != source and instant <= until)
    return reached / (len(meetings.nodes) * (len(meetings.nodes) - 1))


@pytest.mark.parametrize("seed", range(4))
def test_reachability_equals_a_flood_by_relaxation(seed: int) -> None:
    meetings = drawn(seed)
    for share, points in trace_data.reached(meetings):
        begin = int(share * meetings.span)
        assert [part for _, part in points] == sorted(part for _, part in points)
        for at, part in points[::20]:
            assert part == pytest.approx(flooded(meetings, begin, at)), (share, at)


def test_neighbours_and_rates_are_those_of_a_recount() -> None:
    meetings = drawn(9)
    width = trace_data.bin_width(meetings.span)
    assert sum(rate * width / 3.6e9 for _, rate in trace_data.begun(meetings)) == pytest.approx(len(meetings.a))
    for middle, mean in trace_data.neighbours(meetings):
        low, high = middle - width // 2, middle + width // 2
        lasted = sum(max(0, min(end, high) - max(start, low)) for _, _, start, end in rows_of(meetings))
        assert mean == pytest.approx(2 * lasted / width / len(meetings.nodes))


def test_degrees_gaps_and_shares_are_those_of_a_recount() -> None:
    meetings = drawn(3)
    rows = rows_of(meetings)
    met = {frozenset(row[:2]) for row in rows}
    assert trace_data.degrees(meetings).tolist() == [
        sum(node in pair for pair in met) for node in range(len(meetings.nodes))
    ]
    gaps = [two[2] - one[3] for one, two in pairwise(sorted(rows)) if one[:2] == two[:2]]
    assert sorted(trace_data.gaps(meetings).tolist()) == sorted(gaps)
    lasted = meetings.end - meetings.start
    points = trace_data.ccdf(lasted, S)
    assert len(points) > 5
    for x, y, *_ in points:
        assert y == pytest.approx(float((lasted > x * S).mean()))


def test_a_trace_has_a_page_with_figures_and_a_map(site: Path, lake: Lake, watched: Watched) -> None:
    page = watched.open(site / "index.html")
    page.locator("a", has_text="day, within 200 m").click()
    titles = page.locator("svg.figure > text").all_text_contents()
    for title in ("Contacts per hour", "Contact duration", "Time between contacts of a pair", "Degree"):
        assert title in titles
    assert "Reachability over time" in titles
    assert page.locator("h2", has_text="Map").count() == 1
    assert page.locator("a", has_text="buses").count() == 1
    text = page.locator("main").inner_text()
    assert " min" in text
    assert "nan" not in text.lower()
    watched.keep("trace", full=True)
    for width in (1200, 390):
        page.set_viewport_size({"width": width, "height": 900})
        over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(over) == 0, "nothing is cut, nothing scrolls sideways but tables and figures"
    letters = page.locator("svg.figure text").nth(2).bounding_box()
    assert letters is not None
    assert letters["height"] >= 9, "readable on a phone"
    watched.keep("trace-phone", full=True)


def test_latency_ends_at_the_delivery_ratio(site: Path, lake: Lake, watched: Watched) -> None:
    results = read_results(lake)
    run = next(run for run in results.runs if run["sweep"] == "buses")
    measures = results.of_run(run["run_id"])
    log = read_log(lake, run["run_id"], 10)
    assert len(log.ages) == measures["deliveries"] - measures["own_deliveries"]
    assert float(np.mean(log.ages)) == pytest.approx(measures["age_us_mean"])
    page = watched.open(site / f"run-{run['run_id']}.html")
    assert page.locator("h2", has_text="Latency").count() == 1
    page.locator("a", has_text="day").first.click()
    assert page.locator("h1").inner_text() == "Trace day, within 200 m"
    page = watched.open(site / "sweep-buses.html")
    assert page.locator("svg.figure > text", has_text="Delivered within a time").count() == 1


def test_links_of_every_page_lead_to_sections_that_exist(site: Path, tmp_path: Path, lake: Lake) -> None:
    front = (site / "index.html").read_text()
    for section in re.findall(r'href="index.html#(\w+)"', front):
        assert f'id="{section}"' in front, section
    assert 'href="index.html#papers"' in front
    empty = build_site(Lake(tmp_path / "lake"), tmp_path / "site").front.read_text()
    assert "index.html#" not in empty
