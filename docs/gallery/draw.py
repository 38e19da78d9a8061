"""The pictures of the gallery: one world each, as a map at one instant.

    python docs/gallery/draw.py            writes the SVG files beside this one

Lines are the ways of the nodes in the minutes before, dots are the nodes, orange lines join nodes that hear
each other. The worlds are the scenarios on the page: a block `toml file=NAME.toml` is drawn as NAME.svg.
"""

import re
import sys
import tomllib
from html import escape
from pathlib import Path

import numpy as np

from precede.experiments.keys import read_table
from precede.experiments.tables import Table
from precede.experiments.worlds.contacts import ContactsTable
from precede.experiments.worlds.generators import RANGE_M, mobility
from precede.traces.mobility import Mobility

HERE = Path(__file__).parent
MINUTE = 60_000_000
INSTANTS = {"city-bus": 9 * 60, "pedestrians": 20, "working-day": 600}
"""The minute that is drawn; of other worlds the tenth."""
STYLE = (
    ".bg{fill:#fff}.way{stroke:#9fb3c8;stroke-width:1;fill:none}.link{stroke:#d97706;stroke-width:2}"
    ".node{fill:#2563eb}.t{fill:#1f2937}"
    "@media (prefers-color-scheme: dark){.bg{fill:#0f172a}"
    ".way{stroke:#475569}.t{fill:#e5e7eb}.node{fill:#60a5fa}}"
)
WIDTH, MARGIN, HEAD = 720, 16, 34


def scenarios() -> dict[str, str]:
    """The scenario texts on the page, by name."""
    page = (HERE / "README.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^```toml file=([\w-]+)\.toml\n(.*?)^```", page, re.M | re.S))


def world_of(name: str, text: str) -> tuple[Mobility, float]:
    """The movement in a scenario, and the range of its radios."""
    data = tomllib.loads(text)
    table = Table(data["world"], "world", f"{name}.toml", text, HERE)
    world = read_table(ContactsTable, table)
    range_m = world.range or RANGE_M.get(str(world.generator), 30.0)
    return mobility(world, table, data["run"]["seed"]), range_m


def position(t0: float, x0: float, t1: float, x1: float, at: float) -> float:
    return x0 if t1 == t0 else x0 + (x1 - x0) * (at - t0) / (t1 - t0)


def svg(name: str, text: str) -> str:
    moved, range_m = world_of(name, text)
    s = moved.segments
    at = INSTANTS.get(name, 10) * MINUTE
    left, low = float(np.minimum(s.x0, s.x1).min()), float(np.minimum(s.y0, s.y1).min())
    right, high = float(np.maximum(s.x0, s.x1).max()), float(np.maximum(s.y0, s.y1).max())
    scale = (WIDTH - 2 * MARGIN) / max(right - left, 1)
    height = round((high - low) * scale) + 2 * MARGIN + HEAD

    def place(x: float, y: float) -> tuple[int, int]:
        return round(MARGIN + (x - left) * scale), round(HEAD + MARGIN + (high - y) * scale)

    ways, here = [], {}
    for row in np.flatnonzero((s.t0_us <= at) & (s.t1_us > at - 5 * MINUTE)):
        t0, t1 = int(s.t0_us[row]), int(s.t1_us[row])
        begin, end = max(t0, at - 5 * MINUTE), min(t1, at)
        ends = [
            (position(t0, s.x0[row], t1, s.x1[row], t), position(t0, s.y0[row], t1, s.y1[row], t))
            for t in (begin, end)
        ]
        one, other = place(*ends[0]), place(*ends[1])
        if one != other:
            ways.append(f"M{one[0]} {one[1]}L{other[0]} {other[1]}")
        if t0 <= at <= t1:
            here[moved.names[int(s.node[row])]] = ends[1]
    links = [
        (place(*here[a]), place(*here[b]))
        for a in here
        for b in here
        if a < b and np.hypot(here[a][0] - here[b][0], here[a][1] - here[b][1]) <= range_m
    ]
    size = f"{right - left:,.0f} x {high - low:,.0f} m"
    title = f"{name}: {len(here)} nodes on {size}, range {range_m:g} m, {len(links)} contacts"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
            'aria-labelledby="t" font-family="system-ui, sans-serif" font-size="14">',
            f'<title id="t">{escape(title)}</title>',
            f"<style>{STYLE}</style>",
            f'<rect class="bg" width="{WIDTH}" height="{height}" rx="8"/>',
            f'<text class="t" x="{MARGIN}" y="24">{escape(title)}</text>',
            f'<path class="way" d="{"".join(dict.fromkeys(ways))}"/>',
            *(f'<path class="link" d="M{a[0]} {a[1]}L{b[0]} {b[1]}"/>' for a, b in links),
            *(f'<circle class="node" cx="{x}" cy="{y}" r="3"/>' for x, y in (place(*p) for p in here.values())),
            "</svg>",
            "",
        ]
    )


def main() -> int:
    for name, text in scenarios().items():
        (HERE / f"{name}.svg").write_text(svg(name, text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
