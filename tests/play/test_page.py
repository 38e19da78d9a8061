"""The page of play in a real Chromium: by mouse, by keys, on a phone, with hostile names, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from precede.experiments.scenario import read_scenario
from precede.play.export import write_export
from precede.play.saving import replay
from precede.witness.verify import verify
from tests.play.conftest import Table, keep

if TYPE_CHECKING:
    from playwright.sync_api import Page

WHERE = "([side, node]) => precedeGame.stages[side].at[node]"


def click_node(page: Page, side: str, node: int) -> None:
    x, y = page.evaluate(WHERE, [side, node])
    page.locator(f"#{side} .stage").click(position={"x": x, "y": y})


def click_link(page: Page, side: str, a: int, b: int) -> None:
    (x0, y0), (x1, y1) = (page.evaluate(WHERE, [side, node]) for node in (a, b))
    page.locator(f"#{side} .stage").click(position={"x": (x0 + 2 * x1) / 3, "y": (y0 + 2 * y1) / 3})


def tool(page: Page, name: str) -> None:
    page.check(f"input[name=tool][value={name}]")


def speed(page: Page, value: float) -> None:
    page.evaluate("value => precedeGame.setSpeed(value)", value)


def verdict(page: Page, side: str) -> str:
    return str(page.locator(f"#{side} .verdict").text_content())


def until(page: Page, condition: str, *arguments: Any) -> None:
    page.wait_for_function(condition, arg=list(arguments))


def open_tables(page: Page) -> None:
    """Open the tables. Browsers report the opening later, and the page fills the tables then."""
    page.click("#tables summary")
    page.wait_for_selector("#nodes-table tbody tr")


DELIVERED = "([node, message]) => precedeGame.panel.delivered.ordered[node].includes(message)"


def test_clicks_show_a_violation_without_order_and_none_with_it(table: Table) -> None:
    page = table.play("causal")
    tool(page, "cut")
    click_link(page, "ordered", 0, 3)
    until(page, "() => precedeGame.frame.sides.ordered.cuts.length === 1")
    tool(page, "say")
    click_node(page, "unordered", 0)
    until(page, DELIVERED, 1, "0:1")
    tool(page, "answer")
    click_node(page, "ordered", 1)
    until(page, "() => precedeGame.frame.sides.ordered.waiting_count === 1")
    assert "it waits for “hello” (0:1)" in str(page.locator("#ordered .waiting").text_content())
    assert verdict(page, "unordered").endswith("causal order holds")
    tool(page, "cut")
    click_link(page, "unordered", 0, 3)
    speed(page, 30)
    until(page, DELIVERED, 3, "1:1")
    until(page, "() => precedeGame.frame.sides.unordered.violations === 1")
    page.click("#run")
    assert verdict(page, "unordered") == "1 of 8 deliveries out of causal order"
    assert verdict(page, "ordered") == "8 deliveries, causal order holds"
    assert "delivers “hello” (0:1) after “re 0:1” (1:1)" in str(page.locator("#story .bad").text_content())
    assert page.locator("#steps li:not(.aside)").count() == 5
    keep(page, "desktop-light")
    page.click("#save")
    page.wait_for_selector("#saved:not([hidden])")
    folder = table.folder / "played" / "causal_barrier-1"
    assert f"The world is in {folder}" in str(page.locator("#saved-text").text_content())
    assert verify(folder / "ordered").verdict == "holds"
    judged = verify(folder / "unordered", "causal")
    assert (judged.verdict, judged.violations) == ("violated", 1)
    assert judged.first is not None
    assert (judged.first.node, judged.first.message, judged.first.other) == ("3", "0:1", "1:1")
    assert replay(folder, table.folder / "again") == {"unordered": True, "ordered": True}


SPOKEN = """() => {
  window.spoken = [];
  const live = document.getElementById("live");
  new MutationObserver(() => spoken.push(live.textContent)).observe(live, { childList: true });
}"""
"""Collects what a screen reader hears. A sentence is replaced by the next one, however slow the test is."""


def test_everything_can_be_done_with_keys_and_is_said_aloud(table: Table) -> None:
    page = table.play("causal", scheme="dark")
    page.evaluate(SPOKEN)
    page.focus("#ordered .stage")
    page.keyboard.press("ArrowRight")
    assert page.locator("#live").text_content() == "Node 1, up, holds back 0 messages with order."
    page.keyboard.press("c")
    until(page, "() => precedeGame.frame.sides.ordered.down.length === 1")
    page.keyboard.press("c")
    until(page, "() => precedeGame.frame.sides.ordered.down.length === 0")
    page.keyboard.press("x")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("x")
    until(page, "() => String(precedeGame.frame.sides.ordered.cuts) === '1,3'")
    page.keyboard.press("s")
    until(page, DELIVERED, 2, "3:1")
    page.keyboard.press("Space")
    page.wait_for_selector("#run[aria-pressed=false]")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("a")
    until(page, "() => precedeGame.words.ordered.texts.get('2:1') === 're 3:1'")
    page.wait_for_function(
        "() => spoken.some((sentence) => sentence.includes('says') && sentence.includes('3:1'))"
    )
    open_tables(page)
    assert "1" in page.locator("#nodes-table tbody tr").nth(3).locator("td").nth(2).all_inner_texts()
    for selector in ("#run", "#speed", "#node", "#do-say", "#tables summary", "#lessons", "#ordered .diagram"):
        page.focus(selector)
        page.keyboard.press("Shift")  # the browser shows focus only to those who use keys
        shown = page.evaluate("s => getComputedStyle(document.querySelector(s)).outlineStyle", selector)
        assert shown == "solid", selector
    keep(page, "desktop-dark")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_both_worlds_without_scrolling_sideways(table: Table, scheme: str) -> None:
    page = table.play("fifo", width=390, height=844, scheme=scheme)
    click_node(page, "unordered", 0)
    click_node(page, "unordered", 0)
    until(page, "() => precedeGame.frame.sides.ordered.counts.delivered >= 4")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    for selector in ("#unordered .stage", "#ordered .stage", "#run", "#do-say"):
        box = page.locator(selector).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    keep(page, f"phone-{scheme}")


FRAME_BUDGET_MS = 33
CROWD = """
[world]
kind = "contacts"
generator = "random-waypoint"
nodes = 60
duration = "20min"
field = [400, 400]
range = 80
bandwidth = 20000
[workload]
every = "40s"
first = "uniform(1, 20)"
[run]
protocol = "causal_barrier"
"""


def test_sixty_nodes_are_drawn_within_the_budget_of_a_frame(table: Table) -> None:
    """Script, layout and paint of the page, as processor time of its thread: other load does not count."""
    (table.folder / "crowd.toml").write_text(CROWD, encoding="utf-8")
    page = table.play(run=read_scenario(str(table.folder / "crowd.toml")))
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def measured() -> tuple[float, int]:
        metrics = {item["name"]: item["value"] for item in session.send("Performance.getMetrics")["metrics"]}
        return metrics["TaskDuration"], page.evaluate("precedeGame.ticks")

    speed(page, 10)
    page.click("#run")
    page.wait_for_function("() => precedeGame.frame.sides.ordered.counts.delivered > 300")
    assert page.evaluate("precedeGame.stages.ordered.at.filter(Boolean).length") == 60
    assert page.evaluate("precedeGame.frame.sides.ordered.links.length") > 60
    spent, frames = measured()
    page.wait_for_function("ticks => precedeGame.ticks >= ticks + 40", arg=frames)
    spent_after, frames_after = measured()
    cost_ms = 1000 * (spent_after - spent) / (frames_after - frames)
    keep(page, "crowd")
    print(f"{cost_ms:.1f} ms of processor time a frame, {frames_after - frames} frames, 60 nodes")
    assert 0 < cost_ms < FRAME_BUDGET_MS


def test_hostile_names_and_texts_stay_text(table: Table) -> None:
    evil = "<img src=x onerror=alert(1)>"
    folder = table.folder
    (folder / "contacts.csv").write_text(f'a,b,start,end\n"{evil}",b,0,50\nb,c,0,50\n', encoding="utf-8")
    (folder / "world.toml").write_text(
        '[world]\nkind = "contacts"\ncontacts = "contacts.csv"\n[run]\nprotocol = "fifo"\n', encoding="utf-8"
    )
    page = table.play(run=read_scenario(str(folder / "world.toml")))
    page.fill("#text", "</script><b>bold</b>")
    page.select_option("#node", evil)
    page.click("#do-say")
    until(page, "() => precedeGame.frame.sides.ordered.counts.delivered === 3")
    open_tables(page)
    assert evil in str(page.locator("#nodes-table").text_content())
    assert "</script><b>bold</b>" in str(page.locator("#story").text_content())
    assert page.locator("main img, main b").count() == 0


def test_the_static_page_replays_a_lesson_without_a_server(table: Table, tmp_path: Path) -> None:
    page = table.page()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    names = write_export(tmp_path / "export", lessons_only=("causal", "fifo"))
    assert names == ["fifo", "causal"]
    page.goto((tmp_path / "export" / "index.html").as_uri() + "#causal")
    page.wait_for_function("() => window.precedeGame && precedeGame.frame")
    assert page.locator("h1").text_content() == "Causal: no answer before its question"
    assert not page.locator("#do-say").is_visible()
    assert "This is a recording" in str(page.locator("#lesson").text_content())
    speed(page, 10)
    page.click("#run")
    page.wait_for_function("() => precedeGame.ended && precedeGame.shown >= precedeGame.known")
    assert verdict(page, "unordered") == "1 of 8 deliveries out of causal order"
    assert verdict(page, "ordered") == "8 deliveries, causal order holds"
    page.select_option("#lessons", "fifo")
    page.wait_for_function("() => precedeGame.hello.lesson.key === 'fifo'")
    assert all(url.startswith(("file:", "data:")) for url in requested)
    keep(page, "static")
