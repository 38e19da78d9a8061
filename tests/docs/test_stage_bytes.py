"""The bytes by stage of `benchmarks.profile`: growth belongs to the function that allocates."""

from __future__ import annotations

import time

from benchmarks.profile import stage_of
from benchmarks.stage_bytes import growth_by_stack

HELD = 40_000_000


def test_growth_belongs_to_the_function_that_allocates():
    kept = []

    def allocate() -> None:
        kept.append(b"x" * HELD)
        time.sleep(0.3)

    grown = growth_by_stack(allocate)
    inside = sum(count for stack, count in grown.items() if "allocate (" in stack)
    assert 0.8 * HELD < inside < 2 * HELD


def test_stacks_are_written_as_stages_are_read():
    assert stage_of("main (precede/cli/__init__.py);add (precede/measures/events.py)", {}) == "measures"
    assert stage_of("_find_and_load (<frozen importlib._bootstrap>);x (a.py)", {}) == "imports"
