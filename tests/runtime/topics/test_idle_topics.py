"""A quiet topic costs nothing on the wire: the group sends the same bytes with one topic and with many."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.topics import measure
from precede.runtime.topics.lane_plan import TopicOrder


@pytest.mark.parametrize("order", ["causal", "total"])
def test_many_quiet_topics_cost_as_much_as_one(order: TopicOrder) -> None:
    """Beacons and digests are counted for some seconds; 10 digests of a member are in that time."""
    options = {"digest_longest": "300ms"}
    result = asyncio.run(measure(200, 10, order, settle=1.0, seconds=3.0, options=options))
    assert 0.75 < result["ratio_many_to_one"] < 1.3, result


@pytest.mark.long
@pytest.mark.parametrize("order", ["fifo", "causal", "total"])
def test_a_thousand_quiet_topics_cost_as_much_as_one(order: TopicOrder) -> None:
    result = asyncio.run(measure(1_000, 10, order, settle=20.0, seconds=60.0))
    assert 0.9 < result["ratio_many_to_one"] < 1.1, result
