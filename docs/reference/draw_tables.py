"""Draws `tables.svg`, the tables of the lake as a star: `python docs/reference/draw_tables.py`.

A box is a table with the columns that identify a row. A line is a column that two tables share: `run_id`,
`sweep` or `trace`. Everything comes from `precede.lake.schemas`.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Final

from precede.lake.schemas import TABLES, Table

CENTRE: Final = "runs"
_WIDTH: Final = 178
_LINE: Final = 15
_GAP: Final = 16
_COLUMNS: Final = {"trace": 20, "centre": 312, "run_id": 604}
_TOP: Final = 20


def links() -> dict[str, str]:
    """The column by which each table is joined with `runs`; empty for a table that stands alone."""
    found = {}
    for name, table in TABLES.items():
        shared = [key for key in ("run_id", "sweep", "trace") if key in table.names()]
        found[name] = shared[0] if shared and name != CENTRE else ""
    return found


def height(table: Table) -> int:
    return _LINE * (len(table.key) + 1) + 14


def places() -> dict[str, tuple[int, int]]:
    """The corner of every box: traces left, sweeps in the middle, rows of runs right."""
    joined = links()
    column = {"trace": _COLUMNS["trace"], "run_id": _COLUMNS["run_id"]}
    at: dict[str, tuple[int, int]] = {}
    bottom = dict.fromkeys(_COLUMNS.values(), _TOP)
    for name in [CENTRE, *(name for name in TABLES if name != CENTRE)]:
        x = column.get(joined[name], _COLUMNS["centre"])
        at[name] = (x, bottom[x])
        bottom[x] += height(TABLES[name]) + _GAP + (10 if x == _COLUMNS["centre"] else 0)
    return at


def draw() -> str:
    """The picture as SVG text."""
    at, joined = places(), links()
    bottom = max(y + height(TABLES[name]) for name, (_, y) in at.items()) + _TOP
    lines, boxes = [], []
    x0, y0 = at[CENTRE]
    for name, (x, y) in at.items():
        if joined[name]:
            lines.append(_line(name, joined[name], (x, y), (x0, y0)))
        boxes.append(_box(TABLES[name], x, y))
    style = (
        "text{font:12px sans-serif;fill:#222}.t{font-weight:bold}.k{fill:#555}.c{fill:#777;font-style:italic}"
        "rect{fill:#fff;stroke:#888}path{fill:none;stroke:#888}.d{stroke-dasharray:4 3}"
    )
    size = f'width="802" height="{bottom}" viewBox="0 0 802 {bottom}"'
    title = "<title>The tables of the lake and the columns that join them</title>"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            title,
            f"<style>{style}</style>",
            *lines,
            *boxes,
            "</svg>\n",
        ]
    )


def _line(name: str, column: str, place: tuple[int, int], centre: tuple[int, int]) -> str:
    """A line from a table to `runs`; dashed for a trace, which a run names in its description."""
    (x, y), (x0, y0) = place, centre
    middle, level = y + height(TABLES[name]) // 2, y0 + height(TABLES[CENTRE]) // 2
    if x < x0:
        path, at = f"M{x + _WIDTH} {middle}H{(x + _WIDTH + x0) // 2}V{level}H{x0}", (x + _WIDTH + 6, middle - 4)
    elif x > x0:
        path, at = f"M{x} {middle}H{(x0 + _WIDTH + x) // 2}V{level}H{x0 + _WIDTH}", (x - 42, middle - 4)
    else:
        path, at = f"M{x + 14} {y}V{y0 + height(TABLES[CENTRE])}", (x + 20, y - 5)
    dashed = ' class="d"' if column == "trace" else ""
    return f'<path{dashed} d="{path}"/><text class="c" x="{at[0]}" y="{at[1]}">{column}</text>'


def _box(table: Table, x: int, y: int) -> str:
    """A table: its name, then the columns that identify a row."""
    parts = [f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{height(table)}" rx="4"/>']
    parts.append(f'<text class="t" x="{x + 10}" y="{y + 18}">{escape(table.name)}</text>')
    for number, key in enumerate(table.key, start=1):
        parts.append(f'<text class="k" x="{x + 10}" y="{y + 18 + _LINE * number}">{escape(key)}</text>')
    return "".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("tables.svg").write_text(draw(), encoding="utf-8")
