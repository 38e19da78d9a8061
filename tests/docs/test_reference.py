"""The scenario reference is current: its tables are those that the code declares."""

from __future__ import annotations

from pathlib import Path

from precede.experiments.reference import scenario_page
from precede.experiments.scenario import builtin_names

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "scenario.md").read_text(encoding="utf-8")


def test_the_page_is_as_the_structs_declare_it() -> None:
    command = "python -m precede.experiments.reference docs/reference/scenario.md"
    assert scenario_page(PAGE) == PAGE, f"the page is out of date: run {command}"


def test_every_built_in_scenario_is_named() -> None:
    for name in builtin_names():
        assert f"`{name}`" in PAGE
