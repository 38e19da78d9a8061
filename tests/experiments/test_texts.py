"""Scenario texts: every page in `scenarios/` holds; errors in a page name file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from precede.core.errors import BadInput
from precede.experiments.stories.player import mismatches, play
from precede.experiments.stories.text import parse_text, read_text, write_text

PAGES = sorted((Path(__file__).parents[2] / "scenarios").glob("**/*.txt"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_what_the_protocol_does(page: Path) -> None:
    text = read_text(page)
    shown = play(text)
    assert not mismatches(text, shown)
    assert write_text(text, shown).rstrip() == page.read_text(encoding="utf-8").rstrip()


def test_a_wrong_expectation_is_reported_with_its_line() -> None:
    text = parse_text(
        [
            "protocol: unordered",
            "nodes: A B",
            "A broadcasts m",
            "  A delivers m",
            "B receives m",
            "  B holds m",
        ],
        "page",
    )
    wrong = mismatches(text, play(text))
    assert [(item.line, item.shown) for item in wrong] == [(5, ("B delivers m",))]


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (["protocol: unordered", "nodes: A", "A sings"], "page:3: unknown sentence"),
        (["protocol: unordered", "nodes: A", "B crashes"], "page:3: no node 'B'"),
        (["nodes: A"], "no line `protocol"),
        (["protocol: unordered", "nodes: A", "  A delivers m"], "page:3: an indented line"),
        (["protocol: unordered", "nodes: A B", "B receives m"], "page:3: no packet with m"),
        (["protocol: unordered", "nodes: A B", "B misses m"], "page:3: no packet with m"),
        (["protocol: unordered", "nodes: A B", "A enters B"], "page:3: there are no cells"),
        (["protocol: ck", "stations: s", "nodes: A B", "A enters B"], "page:4: a host enters the cell"),
        (["protocol: unordered", "nodes: A B", "A broadcasts m for ever"], "page:3: not a duration"),
    ],
)
def test_a_page_with_an_error_is_refused_with_its_line(lines: list[str], cause: str) -> None:
    with pytest.raises(BadInput, match=cause):
        play(parse_text(lines, "page"))
