"""The decisions are numbered without holes, and the index lists every one of them by its title."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
PAGES = sorted(FOLDER.glob("0*.md"))


def test_numbers_have_no_holes() -> None:
    assert [page.name[:4] for page in PAGES] == [f"{number:04}" for number in range(1, len(PAGES) + 1)]


def test_the_index_lists_every_decision_by_its_title() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    for page in PAGES:
        number, _, title = page.read_text(encoding="utf-8").split("\n")[0].removeprefix("# ").partition(": ")
        assert number == page.name[:4], page.name
        assert f"| {number} | [{title}]({page.name}) |" in index, page.name
