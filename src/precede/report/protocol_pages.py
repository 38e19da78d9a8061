"""The pages of protocols: order, network, options, costs measured in this lake, notes on the paper."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from precede.lake.results import Results
from precede.report.tables import Cell, Link, Table, html
from precede.report.units import readable
from precede.report.writing import Pages, Section, options_text, page_name, rendered

_COSTS: Final = (
    *("deliveries", "delivery_ratio", "age_us_mean", "wait_us_mean", "packets", "packet_bytes_mean"),
    *("control_bytes_mean", "control_entries_mean"),
)


class Card(NamedTuple):
    """The registry's description of a protocol; `options` are (name, default, help)."""

    name: str
    title: str
    paper: str
    order: str
    worlds: Sequence[str]
    options: Sequence[tuple[str, str, str]]
    key: str = ""
    """The key of the paper's folder, if the protocol is from a reproduced paper."""


def write_protocols(pages: Pages, results: Results, cards: Sequence[Card], papers: Path | None) -> Table:
    """Write a page for each protocol that is registered or was run. Returns their table for the index."""
    by_name = {card.name: card for card in cards}
    for run in results.runs:
        name = run["protocol"]
        by_name.setdefault(name, Card(name, "", "", run["order"] or "", (), ()))
    rows: list[list[Cell]] = []
    for card in by_name.values():
        rows.append(
            [
                Link(card.name, _write(pages, results, card, papers)),
                card.order,
                ", ".join(card.worlds),
                card.title,
            ]
        )
    return Table("Protocols", ("protocol", "order", "networks", "description"), rows)


def _write(pages: Pages, results: Results, card: Card, papers: Path | None) -> str:
    sections = [Section("Order and network", tables=[html(_facts(card))])]
    cost = _cost(results, card.name)
    if cost.rows:
        sections.append(Section("Measured costs", tables=[html(cost)]))
    if card.options:
        options: list[list[Cell]] = [list(option) for option in card.options]
        table = Table("Options", ("option", "default", "meaning"), options)
        line = f"precede simulate SCENARIO --protocol {card.name} --set KEY=VALUE"
        sections.append(Section("Options", tables=[html(table)], command=line))
    reading = papers / card.key / "reading.md" if papers is not None and card.key else None
    if reading is not None and reading.is_file():
        text = rendered(reading.read_text(encoding="utf-8"))
        sections.append(Section("Errors and gaps in the paper", text))
    return pages.write(
        page_name("protocol", card.name), "tables.html", title=card.name, lead=card.title, sections=sections
    )


def _facts(card: Card) -> Table:
    rows: list[list[Cell]] = [
        ["order", card.order],
        ["networks", ", ".join(card.worlds)],
        ["paper", card.paper],
    ]
    return Table(f"{card.name} in the registry", ("", "value"), rows)


def _cost(results: Results, protocol: str) -> Table:
    """Return the table with the mean measures of every group of runs of a protocol."""
    groups: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in results.measures:
        if row["scope"] == "group" and row["protocol"] == protocol:
            key = (row["sweep"], row["scenario"], row["options"])
            groups.setdefault(key, {})[row["measure"]] = row["value"]
    shown = [name for name in _COSTS if any(name in measures for measures in groups.values())]
    rows: list[list[Cell]] = [
        [sweep, scenario, options_text(options), *(readable(name, measures.get(name)) for name in shown)]
        for (sweep, scenario, options), measures in groups.items()
    ]
    return Table("Means over the runs of each group", ("sweep", "scenario", "options", *shown), rows)
