"""The page of a run in a real Chromium: diagram and map by mouse and keys, violations, ShiViz, a large run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from precede.lake.layout import Lake
from precede.report.run_data import SHOWN, Log, read_log
from precede.report.shiviz import shiviz_lines
from tests.report.conftest import LARGE, SCREENSHOTS, SMALL, Watched

BROADCAST, DELIVERED = SHOWN.index("broadcast"), SHOWN.index("delivered")
WINDOW = "[precede.diagram.from, precede.diagram.to]"


def run_of(site: Path, prefix: str) -> Path:
    return next(iter(sorted(site.glob(f"run-{prefix}*.html"))))


def log_of(lake: Lake, page: Path) -> Log:
    return read_log(lake, page.stem.removeprefix("run-"), 100_000)


def happened_before(log: Log) -> dict[str, set[str]]:
    """An oracle: the past of every message, from the definition of happened-before."""
    past: dict[str, set[str]] = {}
    seen: list[set[str]] = [set() for _ in log.nodes]
    for node, kind, message in zip(log.node.tolist(), log.kind.tolist(), log.message.tolist(), strict=True):
        if kind == BROADCAST:
            past[log.name(message)] = set(seen[node])
        if kind in (BROADCAST, DELIVERED):
            seen[node] |= {log.name(message)} | past[log.name(message)]
    return past


PAST_AND_FUTURE = """
name => {
  const { model } = precede;
  const names = marks => [...marks].flatMap((mark, m) => mark ? [model.name(m)] : []);
  const m = model.find(name);
  return [names(model.past(m)), names(model.future(m))];
}
"""


@pytest.mark.parametrize("kind", ["vector_clock", "unordered", "delta_causal"])
def test_past_and_future_follow_the_definition_of_happened_before(
    kind: str, site: Path, lake: Lake, watched: Watched
) -> None:
    path = run_of(site, kind)
    page = watched.open(path)
    past = happened_before(log_of(lake, path))
    names = list(past)
    for name in (names[0], names[len(names) // 2], names[-1]):
        before, after = page.evaluate(PAST_AND_FUTURE, name)
        assert set(before) == past[name]
        assert set(after) == {other for other, its in past.items() if name in its}


def place_of(page: Any, message: str) -> dict[str, float]:
    """The position on the screen at which a message's broadcast is drawn."""
    return dict(
        page.evaluate(
            """name => {
              const d = precede.diagram, box = d.canvas.getBoundingClientRect();
              const row = d.model.origin[d.model.find(name)];
              return { x: box.left + d.x(d.model.time[row]), y: box.top + d.y(d.model.node[row]) };
            }""",
            message,
        )
    )


def test_the_diagram_reacts_to_the_mouse(site: Path, lake: Lake, watched: Watched) -> None:
    path = run_of(site, "vector_clock")
    page = watched.open(path)
    log = log_of(lake, path)
    name = next(log.name(m) for m in log.message[log.kind == BROADCAST].tolist()[5:])
    page.locator("#message").fill(name)
    page.keyboard.press("Enter")
    at = page.evaluate("precede.model.time[precede.model.origin[precede.diagram.selected]]")
    page.locator("#clear").click()
    assert "No message is selected" in page.locator("#selection").inner_text()
    page.locator("#from").fill(f"0:00:{(at - 2e4) / 1e6:.6f}")
    page.keyboard.press("Tab")
    page.locator("#to").fill(f"0:00:{(at + 6e5) / 1e6:.6f}")
    page.keyboard.press("Tab")
    watched.settle()
    page.locator("#diagram").scroll_into_view_if_needed()
    spot = place_of(page, name)
    page.mouse.click(spot["x"], spot["y"])
    text = page.locator("#selection").inner_text()
    assert text.startswith(f"{name} was broadcast by ")
    assert re.search(r"\d+ messages happened before it, \d+ after it", text)
    assert page.locator("#fates tbody tr").count() >= 1
    watched.settle()
    watched.keep("diagram-selected")
    low, high = page.evaluate(WINDOW)
    page.mouse.move(spot["x"], spot["y"])
    page.mouse.wheel(0, -200)
    zoomed = page.evaluate(WINDOW)
    assert zoomed[1] - zoomed[0] < high - low
    page.mouse.down()
    page.mouse.move(spot["x"] - 150, spot["y"], steps=3)
    page.mouse.up()
    panned = page.evaluate(WINDOW)
    assert panned[0] > zoomed[0]
    assert panned[1] - panned[0] == pytest.approx(zoomed[1] - zoomed[0])
    assert page.locator("#selection").inner_text() == text, "a drag is no click"
    page.locator("#zoom-all").click()
    assert page.evaluate(WINDOW)[1] > high


def test_filters_by_node_and_time_show_only_that_part(site: Path, lake: Lake, watched: Watched) -> None:
    path = run_of(site, "delta_causal")
    page = watched.open(path)
    log = log_of(lake, path)
    page.locator("#nodes").fill("L01-*")
    page.keyboard.press("Enter")
    watched.settle()
    lanes = [k for k, name in enumerate(log.nodes) if name.startswith("L01-")]
    rows = int(sum((log.node == k).sum() for k in lanes))
    assert page.evaluate("precede.diagram.lanes") == lanes
    assert page.locator("#window").inner_text().startswith(f"{rows:,} events")
    page.locator("#from").fill("2:00:00")
    page.locator("#from").blur()
    page.locator("#to").fill("4:00:00")
    page.locator("#to").blur()
    watched.settle()
    here = (log.at_us >= 7.2e9) & (log.at_us < 14.4e9)
    rows = int(sum(((log.node == k) & here).sum() for k in lanes))
    assert page.locator("#window").inner_text().startswith(f"{rows:,} events")
    page.locator("#nodes").fill("nobody")
    page.keyboard.press("Enter")
    assert page.locator("#nodes:invalid").count() == 1


def test_the_diagram_reacts_to_keys(site: Path, watched: Watched) -> None:
    page = watched.open(run_of(site, "delta_causal"))
    page.locator("#shiviz").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "diagram"
    low, high = page.evaluate(WINDOW)
    page.keyboard.press("+")
    closer = page.evaluate(WINDOW)
    assert closer[1] - closer[0] == pytest.approx((high - low) / 2)
    page.keyboard.press("ArrowRight")
    assert page.evaluate(WINDOW)[0] > closer[0]
    page.keyboard.press("-")
    page.keyboard.press("n")
    first = page.locator("#message").input_value()
    page.keyboard.press("n")
    second = page.locator("#message").input_value()
    assert first
    assert second
    assert first != second
    page.keyboard.press("p")
    assert page.locator("#message").input_value() == first
    page.keyboard.press("Escape")
    assert page.locator("#message").input_value() == ""
    page.keyboard.press("0")
    assert page.evaluate(WINDOW) == [low, high]


def test_a_wait_is_shown_with_its_length_and_the_awaited_message(
    site: Path, lake: Lake, watched: Watched
) -> None:
    path = run_of(site, "vector_clock")
    page = watched.open(path)
    log = log_of(lake, path)
    received: dict[tuple[int, int], int] = {}
    waits: dict[int, int] = {}
    for node, kind, message, at in zip(
        log.node.tolist(), log.kind.tolist(), log.message.tolist(), log.at_us.tolist(), strict=True
    ):
        if kind == SHOWN.index("received"):
            received[node, message] = at
        if kind == DELIVERED and (node, message) in received:
            waits[message] = max(waits.get(message, 0), at - received[node, message])
    longest = max(waits, key=waits.__getitem__)
    assert waits[longest] > 0
    page.locator("#message").fill(log.name(longest))
    page.keyboard.press("Enter")
    found = page.evaluate("precede.diagram.fates.map(f => f.wait)")
    assert max(wait for wait in found if wait is not None) == waits[longest]
    text = page.locator("#selection").inner_text()
    match = re.search(r"The longest wait was (.+), at (\w+), for (\S+)\.", text)
    assert match is not None, text
    assert match[3] in happened_before(log)[log.name(longest)]
    assert page.locator("#fates tbody tr").first.inner_text().split("\t")[2] == match[1]


def test_the_map_plays_and_a_message_spreads(site: Path, watched: Watched) -> None:
    page = watched.open(run_of(site, "delta_causal"))
    page.locator("#diagram").focus()
    page.keyboard.press("n")
    page.locator("#map").scroll_into_view_if_needed()
    before = page.evaluate("precede.map.time")
    page.locator("#play").click()
    page.wait_for_function(f"() => precede.map.time > {before} + 1e7")
    assert page.locator("#play").inner_text() == "Pause"
    watched.keep("map-playing")
    page.locator("#map").focus()
    page.keyboard.press(" ")
    assert page.evaluate("precede.map.rate") == 0
    stopped = page.evaluate("precede.map.time")
    page.keyboard.press("ArrowRight")
    watched.settle()
    assert page.evaluate("precede.map.time") > stopped
    page.locator("#time").focus()
    page.keyboard.press("End")
    watched.settle()
    assert page.evaluate("precede.map.time") == page.evaluate("precede.model.end")
    delivered = page.evaluate("precede.diagram.fates.filter(f => f.delivered !== 0xffffffff).length")
    assert f"has been delivered {delivered} times" in page.locator("#instant").inner_text()


def test_the_map_shows_the_contacts_of_the_instant(site: Path, lake: Lake, watched: Watched) -> None:
    page = watched.open(run_of(site, "fifo"))
    contacts = lake.read("contacts", "day@200m")
    zero = min(lake.read("segments", "day")["t0_us"].to_pylist())
    spans = list(zip(contacts["start_us"].to_pylist(), contacts["end_us"].to_pylist(), strict=True))
    for share in (0.2, 0.5, 0.77):
        at = page.evaluate(
            f"precede.map.set(precede.model.begin + {share} * (precede.model.end - precede.model.begin))"
        )
        watched.settle()
        at = page.evaluate("precede.map.time") + zero
        reach = page.evaluate("precede.map.counts.links")
        near = sum(start - 200_000 <= at <= end + 200_000 for start, end in spans)
        surely = sum(start + 200_000 <= at <= end - 200_000 for start, end in spans)
        assert surely <= reach <= near


def test_hosts_are_drawn_at_the_station_they_heard(site: Path, watched: Watched) -> None:
    page = watched.open(run_of(site, "was"))
    stations = page.evaluate("[...precede.map.stations].map(s => precede.map.data.nodes[s])")
    assert stations == ["s0", "s1", "s2"]
    cells = page.evaluate(
        """() => { const m = precede.map, host = m.data.nodes.indexOf("h0");
        return m.links.filter(l => l[0] === host).map(l => m.data.nodes[l[1]]); }"""
    )
    assert cells == ["s0", "s1", "s2"]


def test_a_violation_opens_with_its_two_messages_and_the_chain(
    site: Path, lake: Lake, watched: Watched
) -> None:
    path = run_of(site, "unordered")
    rows = lake.read("violations", "office").to_pylist()
    first = next(row for row in rows if row["run_id"] == path.stem.removeprefix("run-"))
    page = watched.open(path)
    page.get_by_role("link", name="open 1", exact=True).click()
    watched.settle()
    text = page.locator("#selection").inner_text()
    chain = re.search(r"but (.+?)\.\n", first["explanation"])
    assert chain is not None
    assert text.startswith("The chain: " + chain[1].replace("->", "→") + ".")
    assert first["message"] in chain[1]
    assert page.evaluate("precede.diagram.lanes.length") < page.evaluate("precede.model.nodes.length")
    red = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--bad').trim()")
    rgb = [int(red[k : k + 2], 16) for k in (1, 3, 5)]
    count = page.evaluate(
        """([r, g, b]) => { const c = precede.diagram.canvas;
        const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; let n = 0;
        for (let i = 0; i < d.length; i += 4) n += d[i] === r && d[i + 1] === g && d[i + 2] === b;
        return n; }""",
        rgb,
    )
    assert count > 50
    watched.keep("violation")
    page.goto("about:blank")
    watched.open(path, "#violation=0")
    assert page.locator("#selection").inner_text() == text


def test_the_page_and_the_command_export_the_same_shiviz_log(site: Path, lake: Lake, watched: Watched) -> None:
    path = run_of(site, "vector_clock")
    page = watched.open(path)
    with page.expect_download() as download:
        page.locator("#shiviz").click()
    saved = download.value.path().read_text(encoding="utf-8")
    log = log_of(lake, path)
    assert saved == "\n".join(shiviz_lines(log)) + "\n"
    events = re.findall(r"(?P<event>.*)\n(?P<host>\S*) (?P<clock>{.*})\n", saved)
    assert len(events) == int(((log.kind == BROADCAST) | (log.kind == DELIVERED)).sum())
    stamps: dict[str, dict[str, int]] = {}
    own: dict[str, int] = {}
    for event, host, clock in events:
        what, name = event.split(" ")
        stamp = json.loads(clock)
        own[host] = own.get(host, 0) + 1
        assert stamp[host] == own[host]
        if what == "broadcast":
            stamps[name] = stamp
        else:
            assert all(stamp[other] >= count for other, count in stamps[name].items())


INTERACTIONS = {
    "zoom": "d => key(d, '+')",
    "pan": "d => key(d, 'ArrowRight')",
    "all": "d => key(d, '0')",
    "next message": "d => key(d, 'n')",
    "clear": "d => key(d, 'Escape')",
    "click": "d => { const r = d.canvas.getBoundingClientRect(), m = d.model;"
    " const row = m.origin[m.born[m.born.length >> 1]];"
    " for (const type of ['pointerdown', 'pointerup']) d.canvas.dispatchEvent(new PointerEvent(type,"
    " { pointerId: 1, clientX: r.left + d.x(m.time[row]), clientY: r.top + d.y(m.node[row]) }));"
    " if (d.selected === NONE) throw new Error('the click selected nothing'); }",
    "filter nodes": "d => { const f = document.getElementById('nodes'); f.value = f.value ? '' : 'n1*';"
    " f.dispatchEvent(new Event('change')); }",
    "filter time": "d => { const f = document.getElementById('to'); "
    " f.value = f.value > '0:30' ? '0:20:00' : '0:40:00'; f.dispatchEvent(new Event('change')); }",
}
TIMED = """
async ([action, times]) => {
  const diagram = precede.diagram;
  diagram.canvas.setPointerCapture = () => {};
  const key = (d, name) => d.canvas.dispatchEvent(new KeyboardEvent("keydown", { key: name }));
  const run = eval(action);
  const took = [], work = [];
  for (let k = 0; k < times; k++) {
    await new Promise(done => requestAnimationFrame(done));
    const drawn = new Promise(done => diagram.canvas.addEventListener("drawn", done, { once: true }));
    const began = performance.now();
    run(diagram);
    const handled = performance.now() - began;
    diagram.request();
    await drawn;
    took.push(performance.now() - began);
    work.push(handled + diagram.took);
  }
  return [took, work];
}
"""


def test_a_hundred_times_more_events_are_less_than_five_times_slower(site: Path, watched: Watched) -> None:
    """Measures the time from an input to the drawn picture, and the work alone; writes medians of eleven."""
    figures: dict[str, dict[str, float]] = {}
    for name in (SMALL, LARGE):
        page = watched.open(site / f"run-{name}.html")
        assert page.evaluate("precede.model.count") == (1020 if name == SMALL else 100_000)
        for what, action in INTERACTIONS.items():
            took, work = page.evaluate(TIMED, [action, 11])
            figures.setdefault(what, {})[f"{name}_ms"] = round(median(took), 2)
            figures[what][f"{name}_work_ms"] = round(median(work), 2)
    watched.keep("large-run")
    for figure in figures.values():
        figure["ratio"] = round(figure[f"{LARGE}_ms"] / figure[f"{SMALL}_ms"], 2)
        figure["work_ratio"] = round(figure[f"{LARGE}_work_ms"] / max(0.1, figure[f"{SMALL}_work_ms"]), 2)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    (SCREENSHOTS / "interactions.json").write_text(json.dumps(figures, indent=2) + "\n")
    slow = {what: figure for what, figure in figures.items() if figure["ratio"] > 5}
    assert not slow, slow
