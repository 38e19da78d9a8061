"""Paired differences against values computed by hand and against chance."""

from __future__ import annotations

from random import Random

import pytest

from precede.measures.paired import FEWEST_SEEDS, holm, paired_difference


def test_a_difference_over_shared_seeds():
    a = dict(enumerate([5.0, 7.0, 6.0, 8.0, 9.0]))
    b = dict(enumerate([4.0, 5.0, 6.0, 5.0, 7.0])) | {77: 1000.0}
    one = paired_difference(a, b)
    assert one is not None
    # differences 1, 2, 0, 3, 2: mean 1.6, deviation 1.1402, t = 3.1379 with four degrees of freedom
    assert (one.seeds, one.mean_a, one.mean_b) == (5, 7.0, 5.4)
    assert one.difference == pytest.approx(1.6)
    assert one.effect == pytest.approx(1.6 / 1.140175)
    assert one.p == pytest.approx(0.03492, abs=1e-4)
    assert (one.low, one.high) == (pytest.approx(0.1843, abs=1e-3), pytest.approx(3.0157, abs=1e-3))


def test_settings_without_a_shared_seed_are_not_compared():
    assert paired_difference({1: 1.0}, {2: 1.0}) is None


def test_one_seed_and_equal_differences_have_no_interval_of_their_own():
    single = paired_difference({1: 3.0}, {1: 2.0})
    assert single is not None
    assert (single.difference, single.low, single.p) == (1.0, None, 1.0)
    seeds = range(FEWEST_SEEDS)
    same = paired_difference(dict.fromkeys(seeds, 0.3), dict.fromkeys(seeds, 0.3))
    assert same is not None
    assert (same.low, same.high, same.effect, same.p) == (0.0, 0.0, None, 1.0)
    constant = paired_difference({s: s + 0.1 for s in seeds}, {s: float(s) for s in seeds})
    assert constant is not None
    assert constant.p == 0.0
    assert constant.effect is None


def test_holm_keeps_the_order_and_never_shrinks_a_probability():
    assert holm([]) == []
    assert holm([0.04, 0.01, 0.04, 0.9]) == pytest.approx([0.12, 0.04, 0.12, 0.9])


def test_chance_alone_shows_a_difference_in_one_family_of_twenty():
    random = Random(5)
    families, false = 400, 0
    for _ in range(families):
        draws = [[random.gauss(0, 1) for _ in range(6)] for _ in range(8)]
        values = [dict(enumerate(one)) for one in draws]
        found = [paired_difference(values[k], values[k + 1]) for k in range(0, 8, 2)]
        false += min(holm([one.p for one in found if one is not None])) < 0.05
    assert 0.01 < false / families < 0.09


def test_the_test_is_that_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    random = Random(8)
    for count in (2, 3, 5, 30):
        a, b = ([random.gauss(mean, 1) for _ in range(count)] for mean in (0.4, 0.0))
        one = paired_difference(dict(enumerate(a)), dict(enumerate(b)))
        assert one is not None
        theirs = stats.ttest_rel(a, b)
        assert one.p == pytest.approx(theirs.pvalue, rel=1e-9)
        interval = theirs.confidence_interval(0.95)
        assert (one.low, one.high) == (pytest.approx(interval.low), pytest.approx(interval.high))
