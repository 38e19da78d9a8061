"""At least and at most, against every order that a small log allows."""

from __future__ import annotations

import pytest

from precede.audit.bounds import ORDERS, bound, in_rings
from precede.audit.copies import encode
from precede.audit.witness_orders import judge
from tests.audit.brute_force import draw, late_counts


@pytest.mark.parametrize("margin", [0, 1])
@pytest.mark.parametrize("intervals", [False, True])
def test_bounds_hold_over_all_orders(margin: int, intervals: bool) -> None:
    reached = wide = checked = 0
    for seed in range(150):
        log = draw(seed, intervals)
        copies = encode(*log.columns())
        if not len(copies.node) or in_rings(copies, margin, certain=True):
            continue
        contradicts = in_rings(copies, margin, certain=False)
        for order in ORDERS:
            counts = late_counts(log, order, margin)
            bounds = bound(copies, order, margin)
            checked += 1
            assert bounds.at_least == min(counts), (seed, order)
            assert bounds.at_most >= max(counts), (seed, order)
            assert judge(copies, order, kindest=True, margin_us=margin).violations == bounds.at_least, (
                seed,
                order,
            )
            if not margin and not intervals and not contradicts:
                assert bounds.at_most == max(counts), (seed, order)
                assert judge(copies, order, kindest=False).violations == bounds.at_most, (seed, order)
            reached += bounds.at_most == max(counts)
            wide += bounds.at_least < bounds.at_most
    assert checked > 200
    assert reached > checked / 2
    assert wide > 20


def test_a_question_after_its_answer() -> None:
    copies = encode(["b", "c", "c"], ["q", "a", "q"], ["a", "b", "a"], [0, 9, 0], [5, 20, 21], [5, 20, 21])
    assert [bound(copies, order, 0).verdict for order in ORDERS] == ["holds", "violated"]
    assert bound(copies, "causal", 1).verdict == "unknown"
    assert bound(copies, "causal", 1).at_most == 1


def test_equal_instants_leave_the_order_open() -> None:
    copies = encode(["b", "b"], ["m1", "m2"], ["a", "a"], [0, 1], [7, 7], [7, 7])
    bounds = bound(copies, "fifo", 0)
    assert (bounds.at_least, bounds.at_most, bounds.verdict) == (0, 1, "unknown")
