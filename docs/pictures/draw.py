"""The drawings of the README and of the pages on orders: nodes are lines of time, messages lines between.

    python docs/pictures/draw.py                         writes the SVG files beside this one
    python docs/pictures/draw.py --site demo-out/site    takes two pictures of the site that `make demo` leaves

A drawing is panels side by side; a panel has lanes, and messages that begin in one lane and come to others.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

HERE = Path(__file__).parent
TOP, STEP, LEFT = 66, 48, 40
STYLE = (
    ".bg{fill:#fff}.line{stroke:#8a94a6;stroke-width:1.5}.q{stroke:#2563eb;stroke-width:2;fill:none}"
    ".a{stroke:#d97706;stroke-width:2;fill:none}.g{stroke:#059669;stroke-width:2;fill:none}"
    ".qd{fill:#2563eb}.ad{fill:#d97706}.gd{fill:#059669}.t{fill:#1f2937}.s{fill:#6b7280;font-size:12px}"
    ".bad{stroke:#dc2626;stroke-width:2.5;fill:none}.badt{fill:#dc2626;font-size:12px}"
    ".due{stroke:#6b7280;stroke-width:2;stroke-dasharray:3 3;fill:none}"
    ".hold{stroke:#d97706;stroke-width:6;stroke-opacity:.35}\n"
    "@media (prefers-color-scheme: "
    "dark){.bg{fill:#0f172a}.t{fill:#e5e7eb}.s{fill:#9ca3af}.line{stroke:#64748b}}"
)


@dataclass(frozen=True)
class Sent:
    """A message: its name, its colour (q, a or g), where it begins, where it comes; `late`: the wrong ones."""

    name: str
    colour: str
    lane: str
    at: int
    to: Sequence[tuple[str, int]] = ()
    late: Sequence[str] = ()


@dataclass(frozen=True)
class Panel:
    """`events`: further deliveries (lane, at, colour, name); `due`: a deadline; `held`: from when to when."""

    title: str
    lanes: str
    width: int
    sent: Sequence[Sent] = ()
    events: Sequence[tuple[str, int, str, str]] = ()
    due: tuple[str, int, str] | None = None
    held: tuple[str, int, int] | None = None
    says: Sequence[str] = ()
    wrong: str = ""

    def y(self, lane: str) -> int:
        return TOP + STEP * self.lanes.index(lane)

    def height(self) -> int:
        return TOP + STEP * len(self.lanes) - 12 + 18 * (len(self.says) + bool(self.wrong)) + 10

    def svg(self) -> Iterator[str]:
        yield f'<text class="t" x="16" y="28" font-weight="600">{escape(self.title)}</text>'
        for lane in self.lanes:
            yield f'<text class="t" x="16" y="{self.y(lane) + 5}">{lane}</text>'
            yield f'<path class="line" d="M{LEFT} {self.y(lane)}H{self.width - 12}"/>'
        if self.held:
            lane, begin, end = self.held
            yield f'<path class="hold" d="M{begin} {self.y(lane)}H{end}"/>'
        for one in self.sent:
            for lane, at in one.to:
                yield f'<path class="{one.colour}" d="M{one.at} {self.y(one.lane)}L{at} {self.y(lane)}"/>'
        for one in self.sent:
            yield from self._dots(one)
        for lane, at, colour, name in self.events:
            yield f'<circle class="{colour}d" cx="{at}" cy="{self.y(lane)}" r="6"/>'
            yield f'<text class="s" x="{at - 3}" y="{self.y(lane) - 11}">{escape(name)}</text>'
        if self.due:
            lane, at, text = self.due
            yield f'<path class="due" d="M{at} {self.y(lane) - 16}V{self.y(lane) + 16}"/>'
            place = f'x="{at - 6}" y="{self.y(lane) - 8}"'
            yield f'<text class="s" text-anchor="end" {place}>{escape(text)}</text>'
        lines = [("s", text) for text in self.says] + ([("badt", self.wrong)] if self.wrong else [])
        for number, (kind, text) in enumerate(lines):
            place = TOP + STEP * len(self.lanes) - 12 + 18 * number
            yield f'<text class="{kind}" x="16" y="{place}">{escape(text)}</text>'

    def _dots(self, one: Sent) -> Iterator[str]:
        y = self.y(one.lane)
        yield f'<circle class="{one.colour}d" cx="{one.at}" cy="{y}" r="6"/>'
        above = one.lane == self.lanes[0]
        place = (
            f'x="{one.at - 8}" y="{y - 11}"' if above else f'x="{one.at + 4}" y="{y + 20}" text-anchor="end"'
        )
        yield f'<text class="s" {place}>{escape(one.name)}</text>'
        for lane, at in one.to:
            yield f'<circle class="{one.colour}d" cx="{at}" cy="{self.y(lane)}" r="5"/>'
            if lane in one.late:
                yield f'<circle class="bad" cx="{at}" cy="{self.y(lane)}" r="10"/>'


@dataclass(frozen=True)
class Drawing:
    title: str
    describes: str
    panels: Sequence[Panel]

    def svg(self) -> str:
        width, height = sum(panel.width for panel in self.panels), max(p.height() for p in self.panels)
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            'aria-labelledby="t d" font-family="system-ui, sans-serif" font-size="14">',
            f'<title id="t">{escape(self.title)}</title>',
            f'<desc id="d">{escape(self.describes)}</desc>',
            f"<style>\n{STYLE}\n</style>",
            f'<rect class="bg" width="{width}" height="{height}" rx="8"/>',
        ]
        left = 0
        for panel in self.panels:
            lines += [f'<g transform="translate({left} 0)">', *panel.svg(), "</g>"]
            left += panel.width
        return "\n".join([*lines, "</svg>", ""])


WINDOW = {"message": "L03-5:7", "from": "4:36:00", "to": "5:05:00"}
INSTANT = "At 4:57:00"
"""What the pictures of the site show: a message of a bus in the fifth hour, and what the map says then."""

_QUESTION = Sent("question", "q", "A", 80, [("B", 130), ("C", 290)])
_ANSWER = Sent("answer", "a", "B", 160, [("C", 215)])
DRAWINGS = {
    "answer-before-question": Drawing(
        "An answer overtakes its question",
        "Three lines of time, A, B and C. A broadcasts a question; B receives it and broadcasts an "
        "answer; the answer reaches C before the question. Without order C reads the answer first. "
        "With Precede C holds the answer until the question has come.",
        [
            Panel(
                "today: the order of arrival",
                "ABC",
                380,
                [_QUESTION, _ANSWER],
                says=["C reads the answer first"],
            ),
            Panel(
                "with Precede: the order of cause",
                "ABC",
                380,
                [_QUESTION, _ANSWER],
                held=("C", 215, 290),
                says=["C holds the answer until the question has come"],
            ),
        ],
    ),
    "orders-fifo-causal": Drawing(
        "FIFO and causal order",
        "Left: c delivers the second message of a before the first, which breaks FIFO. Right: c "
        "delivers b's answer "
        "before a's question; each source has one message, so FIFO holds and causal order does not.",
        [
            Panel(
                "FIFO broken",
                "ac",
                360,
                [Sent("m1", "q", "a", 80, [("c", 280)], "c"), Sent("m2", "a", "a", 150, [("c", 200)])],
                wrong="c delivers m2, then m1: one source sent both",
            ),
            Panel(
                "FIFO kept, causal order broken",
                "abc",
                380,
                [
                    Sent("m", "q", "a", 80, [("b", 130), ("c", 290)], "c"),
                    Sent("m'", "a", "b", 165, [("c", 220)]),
                ],
                says=["m -> m': b had delivered m when it broadcast m'"],
                wrong="c delivers m', then m",
            ),
        ],
    ),
    "orders-transitive": Drawing(
        "A chain through messages that were never delivered",
        "Node d delivers m3 and then m1. Node d never delivers m2, but m1 precedes m2 and m2 precedes "
        "m3, so m1 is late.",
        [
            Panel(
                "causal order broken through a message that d never sees",
                "abcd",
                520,
                [
                    Sent("m1", "q", "a", 80, [("b", 140), ("d", 420)], "d"),
                    Sent("m2", "g", "b", 175, [("c", 235)]),
                    Sent("m3", "a", "c", 270, [("d", 330)]),
                ],
                says=["m1 -> m2 -> m3"],
                wrong="d delivers m3, then m1; m2 never reaches d",
            )
        ],
    ),
    "orders-multicast": Drawing(
        "Causal order of multicasts",
        "a sends m1 to v and m2 to b; b then sends m3 to v. v delivers m3 before m1 although m1 "
        "precedes m3 through m2, which was not addressed to v.",
        [
            Panel(
                "multicast-causal order broken",
                "abv",
                500,
                [
                    Sent("m1 to v", "q", "a", 80, [("v", 400)], "v"),
                    Sent("m2 to b", "g", "a", 150, [("b", 210)]),
                    Sent("m3 to v", "a", "b", 245, [("v", 320)]),
                ],
                says=["m1 -> m2 -> m3, and v is a destination of m1 and of m3"],
                wrong="v delivers m3, then m1",
            )
        ],
    ),
    "orders-delta": Drawing(
        "Δ-causal order",
        "Left: m expires before it reaches c, is not delivered, and m' is: nothing is broken. Right: "
        "c delivers m after "
        "its deadline.",
        [
            Panel(
                "Δ-causal order kept",
                "abc",
                380,
                [Sent("m", "q", "a", 80, [("b", 130)]), Sent("m'", "a", "b", 165, [("c", 250)])],
                due=("c", 210, "deadline of m"),
                says=["m expired on its way to c and is given up;", "m' does not wait for it"],
            ),
            Panel(
                "Δ-causal order broken",
                "ac",
                380,
                [Sent("m", "q", "a", 80, [("c", 290)], "c")],
                due=("c", 210, "deadline of m"),
                wrong="c delivers m after its deadline, by c's clock",
            ),
        ],
    ),
    "orders-total": Drawing(
        "Total order",
        "Left: p delivers x before y and q delivers y before x, which breaks total order. Right: p "
        "has x before y, q has y before z, r has z before x; no two nodes share two messages, so total "
        "order holds, though there is a cycle.",
        [
            Panel(
                "total order broken",
                "pq",
                300,
                events=[("p", 110, "q", "x"), ("p", 200, "a", "y"), ("q", 110, "a", "y"), ("q", 200, "q", "x")],
                wrong="p delivers x, y; q delivers y, x",
            ),
            Panel(
                "a cycle longer than a pair: a finding, no violation",
                "pqr",
                440,
                events=[
                    *(("p", 110, "q", "x"), ("p", 200, "a", "y"), ("q", 110, "a", "y")),
                    *(("q", 200, "g", "z"), ("r", 110, "g", "z"), ("r", 200, "q", "x")),
                ],
                says=[
                    "x before y, y before z, z before x, each at one node;",
                    "no two nodes deliver the same two messages",
                ],
            ),
        ],
    ),
    "why-clock": Drawing(
        "Sorting by clocks",
        "A's clock is five minutes ahead. Its question has the time 10:05, B's answer 10:01; sorted by these "
        "times, C shows the answer above the question.",
        [
            Panel(
                "sorted by the senders' clocks",
                "ABC",
                460,
                [
                    Sent("question, 10:05", "q", "A", 90, [("B", 150), ("C", 200)]),
                    Sent("answer, 10:01", "a", "B", 290, [("C", 360)], "C"),
                ],
                says=["A's clock is five minutes ahead"],
                wrong="C shows the answer (10:01) above the question (10:05)",
            )
        ],
    ),
    "why-lost": Drawing(
        "A message that is lost",
        "Left: the question is lost on its way to C, and the answer waits for ever. Right: the question has a "
        "lifetime; when it ends, C delivers the answer without it.",
        [
            Panel(
                "causal order: C waits for ever",
                "ABC",
                380,
                [Sent("question", "q", "A", 80, [("B", 130)]), _ANSWER],
                held=("C", 215, 368),
                wrong="the question never comes to C",
            ),
            Panel(
                "with lifetimes: C waits as long as it helps",
                "ABC",
                380,
                [Sent("question", "q", "A", 80, [("B", 130)]), _ANSWER],
                held=("C", 215, 310),
                due=("C", 310, "its end of life"),
                says=["then the answer is delivered alone"],
            ),
        ],
    ),
    "why-list": Drawing(
        "Two changes of one list",
        "Left: A adds milk and B removes it at the same time. A applies add, remove; B applies remove, add: "
        "the lists differ. Right: both apply the changes in the same order.",
        [
            Panel(
                "causal order: the lists differ",
                "AB",
                380,
                [
                    Sent("add milk", "q", "A", 90, [("B", 230)]),
                    Sent("remove milk", "a", "B", 110, [("A", 250)]),
                ],
                wrong="A has no milk on its list, B has",
            ),
            Panel(
                "total order: the same everywhere",
                "AB",
                380,
                events=[
                    *(("A", 200, "q", "add"), ("A", 270, "a", "remove")),
                    *(("B", 230, "q", "add"), ("B", 300, "a", "remove")),
                ],
                says=["both wait until the order is agreed"],
            ),
        ],
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=Path, help="a site made by `precede report` or `make demo`")
    given = parser.parse_args(arguments)
    if given.site is not None:
        return take_pictures(given.site)
    for name, drawing in DRAWINGS.items():
        (HERE / f"{name}.svg").write_text(drawing.svg(), encoding="utf-8")
    return 0


def take_pictures(site: Path) -> int:
    """Diagram and map of the run that brings a message furthest, a quarter of an hour after it was born."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    runs = sorted(site.glob("run-delta_causal-s1-*.html"))
    if program is None or not runs:
        print("no Chromium here" if program is None else f"no run of delta_causal in {site}", file=sys.stderr)
        return 2
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 760})
        page.goto(max(runs, key=lambda run: _delivered(page, run)).resolve().as_uri())
        _show(page)
        page.locator("#diagram").screenshot(path=str(HERE / "site-diagram.png"))
        while page.inner_text("#instant") < INSTANT:
            page.press("#map", "ArrowRight")
            page.wait_for_timeout(100)
        page.locator("#map").screenshot(path=str(HERE / "site-map.png"))
        browser.close()
    return 0


def _delivered(page: Page, run: Path) -> int:
    """How many nodes delivered the message in a run."""
    page.goto(run.resolve().as_uri())
    _show(page)
    found = re.search(r"([\d,]+) nodes delivered it", page.inner_text("#selection"))
    return int(found[1].replace(",", "")) if found else 0


def _show(page: Page) -> None:
    page.wait_for_timeout(1000)
    for field, text in WINDOW.items():
        page.fill(f"#{field}", text)
        page.press(f"#{field}", "Enter")
    page.wait_for_timeout(500)


if __name__ == "__main__":
    sys.exit(main())
