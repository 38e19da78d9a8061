"""A small world as a picture: nodes are lines of time, messages lines between them, and below them the screens.

A message in a wrong place is red. Panels side by side show the same world under two protocols.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

_WIDTH, _LEFT, _TOP, _LANE, _LINE = 470, 84, 78, 46, 18
_STYLE: Final = (
    ".bg{fill:#fff}.line{stroke:#8a94a6;stroke-width:1.5}.sent{stroke:#2563eb;stroke-width:1.6;fill:none}"
    ".dot{fill:#2563eb}.bad{stroke:#dc2626}.badf{fill:#dc2626}.t{fill:#1f2937}.s{fill:#6b7280;font-size:12px}"
    ".screen{fill:none;stroke:#8a94a6}\n"
    "@media (prefers-color-scheme: dark){.bg{fill:#0f172a}.t{fill:#e5e7eb}.s{fill:#9ca3af}}"
)


class Event(NamedTuple):
    """A message at a node: written or shown there, at world time, by the node's clock."""

    node: str
    message: str
    at_s: float
    clock_s: float


class Panel(NamedTuple):
    """One run of the world. `wrong` are a question and its answer that are misordered at `reader`."""

    title: str
    nodes: Sequence[str]
    written: Sequence[Event]
    shown: Sequence[Event]
    screens: Mapping[str, Sequence[str]]
    reader: str = ""
    wrong: Sequence[str] = ()


def picture(title: str, panels: Sequence[Panel]) -> str:
    """Return panels side by side as one self-contained SVG."""
    height = max(_height(panel) for panel in panels)
    width = _WIDTH * len(panels)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-labelledby="t" font-family="system-ui, sans-serif" font-size="14">',
        f'<title id="t">{escape(title)}</title>',
        f"<style>\n{_STYLE}\n</style>",
        f'<rect class="bg" width="{width}" height="{height}" rx="8"/>',
        f'<text class="t" x="16" y="26" font-weight="600">{escape(title)}</text>',
    ]
    for number, panel in enumerate(panels):
        lines += [f'<g transform="translate({number * _WIDTH} 0)">', *_panel(panel), "</g>"]
    return "\n".join([*lines, "</svg>", ""])


def _height(panel: Panel) -> int:
    longest = max((len(screen) for screen in panel.screens.values()), default=0)
    return _TOP + _LANE * len(panel.nodes) + 40 + _LINE * longest + 20


def _panel(panel: Panel) -> Iterator[str]:
    times = [event.at_s for event in (*panel.written, *panel.shown)]
    begin, span = min(times), max(max(times) - min(times), 1.0)
    lane = {node: _TOP + _LANE * number for number, node in enumerate(panel.nodes)}
    origin = {event.message: event for event in panel.written}

    def x(event: Event) -> float:
        return round(_LEFT + 24 + (event.at_s - begin) / span * (_WIDTH - _LEFT - 70), 1)

    yield f'<text class="t" x="16" y="50">{escape(panel.title)}</text>'
    for node, y in lane.items():
        ahead = next((e.clock_s - e.at_s for e in (*panel.written, *panel.shown) if e.node == node), 0.0)
        clock = f" ({ahead:+.0f} s)" if ahead else ""
        yield f'<text class="s" x="16" y="{y + 5}">{escape(node)}{clock}</text>'
        yield f'<path class="line" d="M{_LEFT} {y}H{_WIDTH - 16}"/>'
    for event in panel.shown:
        sent = origin[event.message]
        if event.node != sent.node:
            yield f'<path class="sent" d="M{x(sent)} {lane[sent.node]}L{x(event)} {lane[event.node]}"/>'
    for event in (*panel.written, *panel.shown):
        bad = " badf" if event.node == panel.reader and event.message in panel.wrong else ""
        y = lane[event.node]
        yield f'<circle class="dot{bad}" cx="{x(event)}" cy="{y}" r="5"/>'
        if event.node == origin[event.message].node:
            yield f'<text class="s" x="{x(event) - 9}" y="{y - 10}">{escape(event.message)}</text>'
    yield from _screens(panel, _TOP + _LANE * len(panel.nodes))


def _screens(panel: Panel, top: int) -> Iterator[str]:
    """Draw the final screen of every node, from the top down."""
    step = (_WIDTH - 32) // len(panel.nodes)
    for number, node in enumerate(panel.nodes):
        left, screen = 16 + step * number, panel.screens[node]
        yield f'<text class="s" x="{left}" y="{top + 4}">screen of {escape(node)}</text>'
        box = f'x="{left}" y="{top + 12}" width="{step - 12}" height="{_LINE * max(len(screen), 1) + 8}"'
        yield f'<rect class="screen" {box} rx="4"/>'
        for line, message in enumerate(screen):
            bad = "badf" if node == panel.reader and message in panel.wrong else "t"
            place = f'x="{left + 10}" y="{top + 29 + _LINE * line}"'
            yield f'<text class="{bad}" {place} font-size="13">{escape(message)}</text>'
