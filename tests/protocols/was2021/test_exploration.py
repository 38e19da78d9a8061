"""Every interleaving of one host's handoffs among three stations: one token, and no state gets stuck."""

from __future__ import annotations

import pytest

from tests.protocols.was2021.exploration import Explorer
from tests.protocols.was2021.exploration_state import Bounds


@pytest.mark.parametrize(
    ("bounds", "joined"),
    [
        (Bounds(sessions=4, acks=1), True),
        (Bounds(sessions=3, messages=1, acks=1), True),
        (Bounds(sessions=3, crashes=1, acks=1), True),
        (Bounds(sessions=3, downs=1, acks=1), True),
        (Bounds(sessions=3), False),
        pytest.param(Bounds(sessions=4, downs=1, acks=1), True, marks=pytest.mark.long),
        pytest.param(Bounds(sessions=4, crashes=1, acks=1), True, marks=pytest.mark.long),
        pytest.param(Bounds(sessions=3, messages=2), True, marks=pytest.mark.long),
        pytest.param(Bounds(sessions=3, messages=1, downs=1, acks=1), True, marks=pytest.mark.long),
    ],
    ids=repr,
)
def test_no_reachable_state_has_two_tokens_or_gets_stuck(bounds: Bounds, joined: bool) -> None:
    report = Explorer(bounds, joined=joined).run()
    print(bounds, report.line())
    assert not report.broken
    assert report.stuck == 0, "from every state the newest connection can still get the record"
    assert report.states > 500


@pytest.mark.parametrize("fix", ["E3", "E4", "E11", "E12"])
def test_the_exploration_finds_a_doubled_or_lost_token(fix: str) -> None:
    assert Explorer(Bounds(sessions=4), without=fix).run().broken


@pytest.mark.parametrize(
    ("fix", "bounds"),
    [
        ("E5", Bounds(sessions=3, messages=1, acks=1)),
        ("E6", Bounds(sessions=3, messages=1, acks=1)),
        ("E13", Bounds(sessions=4)),
        ("E14", Bounds(sessions=3, downs=1, acks=1)),
    ],
)
def test_the_exploration_finds_a_host_that_waits_for_ever(fix: str, bounds: Bounds) -> None:
    report = Explorer(bounds, without=fix).run()
    assert not report.broken
    assert report.stuck > 0
