"""The reference names every key of every table of a scenario file, and every scenario that is built in."""

from __future__ import annotations

from pathlib import Path

import pytest

from precede.experiments.run import RUN_KEYS
from precede.experiments.scenario import builtin_names
from precede.experiments.workload_and_faults import FAULT_KEYS, WORKLOAD_KEYS
from precede.experiments.worlds.kinds import KINDS, find_kind

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "scenario.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    start = PAGE.index(f"## {title}")
    end = PAGE.find("\n## ", start + 1)
    return PAGE[start : end if end > 0 else len(PAGE)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_of_a_world_kind_is_described(kind: str) -> None:
    text = section(f"`[world]` of kind `{kind}`")
    for key in find_kind(kind).keys:
        assert key == "kind" or f"| `{key}` |" in text, key


@pytest.mark.parametrize(
    ("title", "keys"), [("`[workload]`", WORKLOAD_KEYS), ("`[faults]`", FAULT_KEYS), ("`[run]`", RUN_KEYS)]
)
def test_every_key_of_the_other_tables_is_described(title: str, keys: dict[str, str]) -> None:
    for key in keys:
        assert f"| `{key}` |" in section(title), key


def test_every_built_in_scenario_is_named() -> None:
    for name in builtin_names():
        assert f"`{name}`" in PAGE
