"""The page of an audit: verdicts by group, margins, the story of one violation, replays, assumptions, clocks.

It is made from plain data, as `precede audit --json` prints them, and from figures that need nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from precede.report.figures import INK, Curve, Figure, Point, svg
from precede.report.site import fresh_folder, list_pages
from precede.report.tables import Cell, Table, html
from precede.report.writing import Section, with_numbers

LATE_FIGURE: Final = "late.svg"
STORY_FIGURE: Final = "story.svg"
_COLOURS: Final = ("#2563eb", "#d97706")
_WRONG: Final = "#dc2626"


def write_audit(out: Path, study: Mapping[str, Any], command: str) -> Path:
    """Write the page and its two figures into a folder; returns the path of the page."""
    pages = fresh_folder(out)
    pages.sections = ()
    late = late_figure(study)
    pages.file(LATE_FIGURE, svg(late))
    story = study["story"]
    if story is not None:
        pages.file(STORY_FIGURE, story_svg(story))
    sections = [
        Section("Verdicts by group", _GROUPS, tables=[html(_groups(study))]),
        Section("How much the clocks matter", _MARGINS, figures=[with_numbers(late)]),
        *([_story_section(story)] if story is not None else []),
        *_replays(study["replays"]),
        Section("Every assumption, and the counts without it", tables=[html(_assumptions(study))]),
        Section("The clocks", _CLOCKS, tables=[html(_clocks(study["clocks"]))]),
        Section("Run it again", command=command),
    ]
    page = pages.write(
        "index.html", "tables.html", title=f"Audit of {study['log']}", lead=_lead(study), sections=sections
    )
    list_pages(pages)
    return out / page


def late_figure(study: Mapping[str, Any]) -> Figure:
    """Draw late copies by margin: a point is *at least*, a line reaches up to *at most*."""
    rows = [row for row in study["margins"] if row["view"] == "received"]
    margins = list(dict.fromkeys(row["margin_s"] for row in rows))
    curves = [
        Curve(
            f"{order} order",
            [
                Point(margins.index(row["margin_s"]), row["at_least"], row["at_least"], row["at_most"])
                for row in rows
                if row["order"] == order
            ],
            joined=False,
        )
        for order in dict.fromkeys(row["order"] for row in rows)
    ]
    return Figure(
        f"Late of {rows[0]['copies']:,} first copies: at least (point), at most (line)",
        "two instants of one clock are ordered if they differ by more than",
        "late first copies",
        curves,
        categories=[_seconds(margin) for margin in margins],
        heights=[0.0],
    )


def story_svg(story: Mapping[str, Any]) -> Markup:
    """Draw three nodes as lines of time and two messages between them. Distances are not to scale."""
    lanes = {story["author"]: 70, story["replier"]: 130, story["receiver"]: 190}
    first, second = _COLOURS
    arrows = [
        (story["author"], 90, story["replier"], 190, first),
        (story["author"], 90, story["receiver"], 520, first),
        (story["replier"], 270, story["receiver"], 380, second),
    ]
    dots = [
        (story["author"], 90, first, f"writes {story['first']}"),
        (story["replier"], 190, first, f"has {story['first']}"),
        (story["replier"], 270, second, f"writes {story['second']}"),
        (story["receiver"], 380, second, f"has {story['second']}"),
        (story["receiver"], 520, first, f"has {story['first']}, too late"),
    ]
    title = f"Message {story['first']} came to phone {story['receiver']} after message {story['second']}"
    parts = [
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" class="figure" role="img" viewBox="0 0 680 230"'
            ' width="680" height="230" font-family="Source Sans Pro, system-ui, sans-serif"'
            ' font-size="13" fill="{}">'
            '<title>{}</title><text class="ink" x="16" y="26" font-size="15" font-weight="600">{}</text>'
        ).format(INK, title, title)
    ]
    for name, y in lanes.items():
        lane = (
            '<text class="ink" x="16" y="{}">phone {}</text><path d="M84 {}H664" stroke="#8a94a6" fill="none"/>'
        )
        parts.append(Markup(lane).format(y + 4, name, y))
    for sender, begin, receiver, end, colour in arrows:
        line = '<path d="M{} {}L{} {}" stroke="{}" stroke-width="2" fill="none"/>'
        parts.append(Markup(line).format(begin, lanes[sender], end, lanes[receiver], colour))
    for node, x, colour, text in dots:
        dot = (
            '<circle cx="{}" cy="{}" r="5" fill="{}"/><text class="ink" x="{}" y="{}" font-size="12">{}</text>'
        )
        parts.append(Markup(dot).format(x, lanes[node], colour, x + 4, lanes[node] - 10, text))
    ring = '<circle cx="520" cy="{}" r="10" stroke="{}" stroke-width="2.5" fill="none"/></svg>'
    parts.append(Markup(ring).format(lanes[story["receiver"]], _WRONG))
    return Markup("").join(parts)


def _lead(study: Mapping[str, Any]) -> str:
    by_order = {row["order"]: row for row in study["groups"] if row["group"] == "all"}
    causal, fifo = by_order["causal"], by_order["fifo"]
    return (
        f"{study['messages']:,} messages; {causal['copies']:,} first copies with a row. At least"
        f" {causal['at_least']:,} and at most {causal['at_most']:,} came after a message that depends on them,"
        f" at least {fifo['at_least']:,} and at most {fifo['at_most']:,} after a later message of their source."
        " These are verdicts about receptions: when something was shown is not in the log."
    )


_GROUPS: Final = Markup(
    "<p>A group counts only dependencies through its own messages. The last columns also count copies whose row"
    " is missing, at any instant that the log allows; the verdict uses them.</p>"
)
_MARGINS: Final = Markup(
    "<p>Clocks of different nodes are never compared. A margin also mistrusts the clock of one node: events"
    " that it puts no further apart may have happened in either order.</p>"
)
_CLOCKS: Final = Markup(
    "<p>The offset of a clock is the median difference to its neighbours', from hops that both ends wrote down."
    " The verdicts do not use it; the replay over links does.</p>"
)
_REPLAYS: Final = Markup(
    "<p>Mean over seeds, with the 95 % interval where seeds differ. The seed draws what is not in the log: the"
    " order of equal instants, and for links the ends of contacts and the order of exchange.</p>"
)


def _story_section(story: Mapping[str, Any]) -> Section:
    text = Markup("").join(Markup("<p>{}</p>").format(sentence) for sentence in story["sentences"])
    proof = Markup("<pre><code>{}</code></pre>").format(story["proof"])
    return Section("One violation", text + proof, figures=[{"svg": story_svg(story), "table": Markup("")}])


def _groups(study: Mapping[str, Any]) -> Table:
    names = (
        "copies",
        "at_least",
        "at_most",
        "copies_with_missing",
        "at_least_with_missing",
        "at_most_with_missing",
    )
    rows: list[Sequence[Cell]] = [
        (row["group"], row["order"], row["verdict"], *(row[name] for name in names)) for row in study["groups"]
    ]
    header = ("copies", "late, at least", "at most", "copies with missing rows", "late, at least", "at most")
    return Table(
        "Late first copies by group of receivers, margin 0", ("group", "order", "verdict", *header), rows
    )


def _assumptions(study: Mapping[str, Any]) -> Table:
    rows: list[Sequence[Cell]] = [
        (row["assumption"], row["without"], *(_range(row[order]["without"]) for order in ("fifo", "causal")))
        for row in study["assumptions"]
    ]
    return Table(
        "Late copies if one assumption is dropped", ("assumption", "without it", "FIFO", "causal"), rows
    )


def _clocks(clocks: Mapping[str, Any]) -> Table:
    largest = sorted(clocks["offset_s"].items(), key=lambda item: -abs(item[1]))
    rows: list[Sequence[Cell]] = [
        (node, offset, "jumped" if node in clocks["suspects"] else "") for node, offset in largest
    ]
    return Table("Offsets of clocks", ("node", "offset, s", ""), rows)


def _replays(rows: Sequence[Mapping[str, Any]]) -> list[Section]:
    display = ("answers_above", "revisions")
    measures = ("received", "delivered", "fifo", "causal", *display, "wait_s", "control_bytes")
    late = ("late FIFO", "late causal", "answer above", "revisions")
    header = ("received", "delivered", *late, "wait, s", "control bytes", "longest wait, s")
    tables = []
    for kind in dict.fromkeys(row["replay"] for row in rows):
        cells: list[Sequence[Cell]] = [
            (
                " ".join((row["protocol"], *map(str, row["options"].values()))),
                *(_mean(row[name]) for name in measures),
                round(row["longest_wait_s"]),
            )
            for row in rows
            if row["replay"] == kind
        ]
        tables.append(html(Table(f"Replay: {kind}", ("protocol", *header), cells)))
    return [Section("What protocols would have done", _REPLAYS, tables=tables)] if tables else []


def _mean(value: Mapping[str, float] | None) -> Cell:
    if value is None:
        return None
    mean, low, high = (round(value[name], 1) for name in ("mean", "low", "high"))
    return mean if low == high else f"{mean:,} [{low:,}, {high:,}]"


def _range(counts: Sequence[int]) -> str:
    least, most, copies = counts
    return f"{least:,} of {copies:,}" if least == most else f"{least:,} to {most:,} of {copies:,}"


def _seconds(margin_s: float) -> str:
    return f"{margin_s:g} s" if margin_s < 120 else f"{margin_s / 60:g} min"
