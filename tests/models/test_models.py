"""The founding of a group and its view changes as Promela models, which Spin explores to the last state.

The models state the rules of src/precede/protocols/drift2006 a second time; the code itself is explored in
tests/protocols/drift2006/test_founding_explored.py. They need `spin` (Debian has it) and a C compiler.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MISSING = [tool for tool in ("spin", "gcc") if shutil.which(tool) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

FAULTS = {
    "founding": (
        "VOTES_IGNORED",
        "HALF_IS_ENOUGH",
        "PROMISE_NOT_WRITTEN",
        "PROMISE_BEFORE_WRITE",
        "ACCEPTANCE_NOT_WRITTEN",
        "ACCEPTANCE_BEFORE_WRITE",
    ),
    "views": (
        "FLOOR_NOT_FROZEN",
        "HALF_DELIVERS",
        "LAST_PROMISE_COUNTS",
        "ACCEPTED_ALTHOUGH_LACKING",
        "PROMISE_NOT_WRITTEN",
    ),
}


def explore(model: str, folder: Path, *defined: str) -> tuple[int, int]:
    """Explore every state of a model; returns the number of errors (0 or 1: it stops at one) and of states."""
    flags = [f"-D{name}" for name in defined]
    subprocess.run(["spin", *flags, "-a", HERE / f"{model}.pml"], cwd=folder, check=True, capture_output=True)
    subprocess.run(["gcc", "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"], cwd=folder, check=True)
    ended = subprocess.run(["./pan", "-m1000000"], cwd=folder, check=False, capture_output=True, text=True)
    assert "search not completed" not in ended.stdout.lower() or "errors: 1" in ended.stdout, ended.stdout
    errors = re.search(r"errors: (\d+)", ended.stdout)
    states = re.search(r"(\d+) states, stored", ended.stdout)
    assert errors is not None, ended.stdout
    assert states is not None, ended.stdout
    return int(errors[1]), int(states[1])


def test_founders_agree_on_one_view(tmp_path: Path) -> None:
    errors, states = explore("founding", tmp_path)
    assert errors == 0
    assert states > 50_000


@pytest.mark.parametrize("fault", FAULTS["founding"][:2])
def test_a_planted_fault_in_the_founding_is_found(fault: str, tmp_path: Path) -> None:
    assert explore("founding", tmp_path, fault)[0] == 1


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS["founding"][2:])
def test_a_founder_that_forgets_is_found(fault: str, tmp_path: Path) -> None:
    assert explore("founding", tmp_path, fault)[0] == 1


@pytest.mark.long
def test_what_a_view_keeps_is_held_and_what_was_delivered_is_kept(tmp_path: Path) -> None:
    errors, states = explore("views", tmp_path)
    assert errors == 0
    assert states > 100_000


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS["views"])
def test_a_planted_fault_in_a_view_change_is_found(fault: str, tmp_path: Path) -> None:
    assert explore("views", tmp_path, fault)[0] == 1
