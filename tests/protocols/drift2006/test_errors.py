"""D1 to D5 and four misreadings: each schedule fails in Figure 3 as printed, and succeeds in the protocol.

The protocol's schedules are the pages in scenarios/drift2006 (`tests/experiments/test_texts.py` checks every
line of them). The schedules of Figure 3 as printed are the pages in `printed`, played by `literal.py`.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.experiments.stories.player import mismatches, play
from precede.experiments.stories.text import ScenarioText, read_text, write_text
from precede.protocols.registry import Entry
from tests.protocols.drift2006.literal import ENTRY as PRINTED

PAGES = Path(__file__).parents[3] / "scenarios" / "drift2006"
PRINTED_PAGES = Path(__file__).parent / "printed"
ALL_REPAIRS = "D1 D2 D3 D4"
PAIRS = [
    ("d1", "d1-as-printed"),
    ("d2", "d2-as-printed"),
    ("d3", "d3-as-printed"),
    ("d4", "d4-as-printed"),
    ("d4", "d4-fifo-alone"),
    ("d5", "d5-as-printed"),
    ("two-nodes-echo", "two-nodes-echo-misread"),
    ("two-nodes-overtaking", "two-nodes-overtaking-misread"),
    ("two-nodes-unheard", "two-nodes-unheard-misread"),
    ("two-nodes-own", "two-nodes-own-misread"),
]


def by_protocol(page: str) -> dict[str, list[str]]:
    """What each node of a page delivers when it runs the protocol."""
    return deliveries_of(read_text(PAGES / f"{page}.txt"))


def by_figure_3(page: str) -> dict[str, list[str]]:
    """What each node of a protocol's page delivers when it runs Figure 3 with all repairs."""
    text = read_text(PAGES / f"{page}.txt")
    options = {key: value for key, value in text.options.items() if key in ("sources", "destinations")}
    return deliveries_of(msgspec.structs.replace(text, options={**options, "repairs": ALL_REPAIRS}), PRINTED)


def deliveries_of(text: ScenarioText, entry: Entry | None = None) -> dict[str, list[str]]:
    """What each node of a page delivers, in order."""
    sequences: dict[str, list[str]] = {}
    for line in (line for lines in play(text, entry) for line in lines):
        node, _, message = line.partition(" delivers ")
        if message:
            sequences.setdefault(node, []).append(message)
    return sequences


def agree(sequences: dict[str, list[str]]) -> bool:
    """Is there no duplicate, and is each node's sequence a beginning of the longest one?"""
    longest = max(sequences.values(), key=len, default=[])
    once = all(len(set(sequence)) == len(sequence) for sequence in sequences.values())
    return once and all(sequence == longest[: len(sequence)] for sequence in sequences.values())


@pytest.mark.parametrize("page", sorted(PRINTED_PAGES.glob("*.txt")), ids=lambda page: page.stem)
def test_a_printed_page_shows_what_figure_3_does(page: Path) -> None:
    text = read_text(page)
    shown = play(text, PRINTED)
    assert not mismatches(text, shown)
    assert write_text(text, shown).rstrip() == page.read_text(encoding="utf-8").rstrip()


@pytest.mark.parametrize(("right", "wrong"), PAIRS)
def test_the_schedule_fails_only_without_the_repair(right: str, wrong: str) -> None:
    repaired = by_protocol(right)
    printed = deliveries_of(read_text(PRINTED_PAGES / f"{wrong}.txt"), PRINTED)
    assert agree(repaired)
    lacks_some = any(set(printed.get(node, ())) < set(sequence) for node, sequence in repaired.items())
    assert not agree(printed) or lacks_some


@pytest.mark.parametrize("page", ["d1", "d2", "d3", "d4"])
def test_figure_3_with_all_repairs_delivers_what_the_protocol_delivers(page: str) -> None:
    assert by_figure_3(page) == by_protocol(page)


@pytest.mark.parametrize("page", [right for right, _ in PAIRS if right.startswith("two-nodes")])
def test_figure_3_read_correctly_delivers_what_the_protocol_delivers(page: str) -> None:
    assert by_figure_3(page) == by_protocol(page)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_in_a_network_without_loss_the_protocol_is_figure_3_with_its_repairs(seed: int) -> None:
    """Both deliver the same messages at the same nodes at the same instants in a network that only reorders."""
    random = Random(seed)
    nodes = random.randint(2, 12)
    run = Run(
        world={"kind": "flood", "nodes": nodes, "field": [200, 200], "delay": "exponential(0.05)"},
        workload={"every": "exponential(0.2)", "until": "10s", "size": 10},
        protocol="drift",
        options={"beacon": "0s", "quiet": "0s", "ask_after": "0s"},
        seed=seed,
        end="20s",
        gauges="none",
    )
    literal = msgspec.structs.replace(run, options={"repairs": "D1 D2 D3"})
    assert delivered_rows(run) == delivered_rows(literal, PRINTED)
    assert len(delivered_rows(run)) > 10 * nodes


def delivered_rows(run: Run, entry: Entry | None = None) -> list[tuple[Any, ...]]:
    """The delivered rows of a run: instant, node and message."""
    sink = TableSink()
    carry_out(run, sink, entry)
    rows = sink.events().select(["kind", "at_us", "node", "message_source", "message_number"]).to_pylist()
    return [tuple(row.values()) for row in rows if row["kind"] == "delivered"]
