"""The two ways drawn in ARCHITECTURE.md: each hop is a name that exists, and no way has too many."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
MOST_HOPS = 20
HOP = re.compile(r"^\d+\. `([\w.]+):([\w.]+)`", re.M)


def ways() -> dict[str, list[tuple[str, str]]]:
    """The numbered hops below each heading that begins with "The way of"."""
    sections = re.split(r"^## ", PAGE, flags=re.M)
    return {
        section.partition("\n")[0]: HOP.findall(section)
        for section in sections
        if section.startswith("The way of")
    }


WAYS = ways()


def test_both_ways_are_drawn() -> None:
    assert len(WAYS) == 2
    for title, hops in WAYS.items():
        assert 5 <= len(hops) <= MOST_HOPS, title


@pytest.mark.parametrize("hop", [hop for hops in WAYS.values() for hop in hops], ids=":".join)
def test_every_hop_is_a_name_that_exists(hop: tuple[str, str]) -> None:
    module, name = hop
    value: object = import_module(f"precede.{module}")
    for part in name.split("."):
        value = getattr(value, part)
    assert callable(value)
