"""Virtual flooding as a piece of its own: what is known, what is attached under a limit, nodes as carriers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import get_args

import pytest

from precede.protocols.floods.virtual_flooding import Datum, Policy, VirtualFlooding

ROOT = Path(__file__).parents[3]


def test_of_two_versions_the_later_one_is_kept_whatever_comes_first() -> None:
    here: VirtualFlooding[str, str] = VirtualFlooding(Random(1))
    here.put("a", 2, "new")
    assert here.merge([Datum("a", 1, "old"), Datum("b", 1, "other")]) == [Datum("b", 1, "other")]
    assert here.attach() == (Datum("a", 2, "new"), Datum("b", 1, "other"))
    assert here.merge(here.attach()) == []


@pytest.mark.parametrize("policy", get_args(Policy))
def test_under_a_limit_everything_is_sent_sooner_or_later(policy: str) -> None:
    here: VirtualFlooding[int, int] = VirtualFlooding(Random(1), limit=3, policy=policy)
    for key in range(10):
        here.put(key, 1, key)
    sent = [datum.key for _ in range(40) for datum in here.attach()]
    assert len(sent) == 120
    assert set(sent) == set(range(10))
    if policy in ("least_sent", "round_robin"):
        assert max(map(sent.count, range(10))) - min(map(sent.count, range(10))) <= 1


@pytest.mark.parametrize(
    ("policy", "next_up"), [("least_sent", True), ("freshest", True), ("round_robin", False)]
)
def test_what_has_changed_goes_first_where_the_policy_says_so(policy: str, next_up: bool) -> None:
    here: VirtualFlooding[int, int] = VirtualFlooding(Random(1), limit=2, policy=policy)
    for key in range(6):
        here.put(key, 1, key)
    for _ in range(3):
        here.attach()
    here.put(4, 2, 99)
    assert (Datum(4, 2, 99) in here.attach()) == next_up


def test_readings_travel_on_the_time_and_nothing_is_sent_for_them() -> None:
    """The example: a grid of 25 with the clock in a corner is 8 hops across, so 8 floods bring all to all."""
    shown = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "readings_on_the_side.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert shown[0] == "minute 1:   25 packets, readings known:  3 to 17"
    assert shown[6].endswith("24 to 25")
    assert shown[7] == "minute 8:  200 packets, readings known: 25 to 25"
