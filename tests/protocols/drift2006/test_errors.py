"""D1 to D5 and the traps for two nodes: wrong with the repair off, right with it on, and right in the protocol.

The schedules are the pages in scenarios/drift2006 (`tests/experiments/test_texts.py` checks their every line).
Here pairs of them are held against each other: what goes wrong in one and not in the other.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.experiments.stories.player import play
from precede.experiments.stories.text import read_text

PAGES = Path(__file__).parents[3] / "scenarios" / "drift2006"
ALL = {"literal": "true", "repairs": "D1 D2 D3 D4"}
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


def delivered(page: str, options: dict[str, Any] | None = None) -> dict[str, list[str]]:
    """What each node of a page delivers, in order."""
    text = read_text(PAGES / f"{page}.txt")
    if options is not None:
        kept = {key: value for key, value in text.options.items() if key in ("sources", "destinations")}
        text = msgspec.structs.replace(text, options={**kept, **options})
    found: dict[str, list[str]] = {}
    for line in (line for lines in play(text) for line in lines):
        node, _, message = line.partition(" delivers ")
        if message:
            found.setdefault(node, []).append(message)
    return found


def agree(sequences: dict[str, list[str]]) -> bool:
    """Nothing twice, and of any two nodes one has delivered what the other has, and then perhaps more."""
    longest = max(sequences.values(), key=len, default=[])
    once = all(len(set(mine)) == len(mine) for mine in sequences.values())
    return once and all(mine == longest[: len(mine)] for mine in sequences.values())


@pytest.mark.parametrize(("right", "wrong"), PAIRS)
def test_the_schedule_goes_wrong_without_the_repair_only(right: str, wrong: str) -> None:
    good, bad = delivered(right), delivered(wrong)
    assert agree(good)
    stays = any(set(bad.get(node, ())) < set(mine) for node, mine in good.items())
    assert not agree(bad) or stays


@pytest.mark.parametrize("page", ["d1", "d2", "d3", "d4"])
def test_figure_3_with_all_repairs_delivers_what_the_protocol_does(page: str) -> None:
    assert delivered(page, ALL) == delivered(page)


@pytest.mark.parametrize("page", [right for right, _ in PAIRS if right.startswith("two-nodes")])
def test_figure_3_well_read_does_not_fall_into_the_traps(page: str) -> None:
    assert delivered(page, ALL) == delivered(page)


@pytest.mark.parametrize("seed", range(12))
def test_in_a_whole_network_the_protocol_is_figure_3_with_its_repairs(seed: int) -> None:
    """The same messages at the same nodes at the same instants, in a network that only reorders."""
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
    literal = msgspec.structs.replace(run, options={**run.options, "literal": "true", "repairs": "D1 D2 D3"})
    assert deliveries(run) == deliveries(literal)
    assert len(deliveries(run)) > 10 * nodes


def deliveries(run: Run) -> list[tuple[Any, ...]]:
    sink = TableSink()
    carry_out(run, sink)
    rows = sink.events().select(["kind", "at_us", "node", "message_source", "message_number"]).to_pylist()
    return [tuple(row.values()) for row in rows if row["kind"] == "delivered"]
