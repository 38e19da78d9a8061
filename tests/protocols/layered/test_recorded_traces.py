"""`gossip` on recorded contacts: the same messages reach the same nodes as over `epidemic`, in fewer bytes."""

from __future__ import annotations

import pytest

from benchmarks.recorded import TRACES, compared
from tests.traces.real_data import ROOT, real


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", list(TRACES))
def test_the_same_pairs_without_limits_and_no_fewer_with_a_bandwidth(name: str) -> None:
    real(TRACES[name].file)
    unlimited, limited = (compared(name, ROOT, limited=each) for each in (False, True))
    assert unlimited["same_pairs"]
    assert unlimited["bytes"]["gossip"] < unlimited["bytes"]["epidemic"]
    assert limited["pairs"]["gossip"] >= limited["pairs"]["epidemic"]
    assert limited["bytes"]["gossip"] < limited["bytes"]["epidemic"]
