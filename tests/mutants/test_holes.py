"""The list of faults that survived once can be planted: its texts and its tests are still there."""

from __future__ import annotations

import pytest

from tests.mutants.holes import ROOT, Hole, read


@pytest.mark.parametrize("hole", read(), ids=lambda hole: hole.fault)
def test_a_fault_can_be_planted_and_its_test_exists(hole: Hole) -> None:
    text = (ROOT / hole.file).read_text()
    assert hole.planted(text) != text
    file, _, name = hole.test.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text()
