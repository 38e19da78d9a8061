"""Percentiles are those of numpy to the last digit, whether values are sorted or counted in intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precede.measures import statistics
from precede.measures.messages import first_of_each
from precede.measures.statistics import PERCENTILES, percentiles

LIMIT = 2**61


@pytest.fixture(autouse=True)
def _few_intervals(monkeypatch):
    monkeypatch.setattr(statistics, "_FEW", 4)
    monkeypatch.setattr(statistics, "_INTERVAL_BITS", 3)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.one_of(st.integers(-20, 20), st.integers(0, 10**9), st.integers(-LIMIT, LIMIT)),
        min_size=1,
        max_size=60,
    ),
    st.sampled_from([np.int64, np.int32]),
)
def test_equal_to_numpy(values, dtype):
    if dtype is np.int32:
        values = [value % 2**29 * (-1) ** (value % 2) for value in values]
    array = np.array(values, dtype)
    assert percentiles(array, PERCENTILES) == np.percentile(array, PERCENTILES).tolist()


def test_many_values_of_few_and_of_large_ranges(monkeypatch):
    monkeypatch.undo()
    random = np.random.default_rng(5)
    for values in (
        random.integers(1, 12, 200_000).astype(np.int32),
        random.exponential(2e8, 200_000).astype(np.int64),
        np.append(np.zeros(150_000, np.int64), random.integers(0, 2**40, 9)),
    ):
        assert percentiles(values, PERCENTILES) == np.percentile(values, PERCENTILES).tolist()


@given(st.lists(st.integers(-5, 5)))
def test_where_each_value_stands_first(values):
    array = np.array(values, np.int64)
    expected = np.unique(array, return_index=True)[1]
    assert first_of_each(array).tolist() == expected.tolist()


def test_numbers_of_every_width():
    for kind in (np.int8, np.int16, np.int32, np.uint32, np.uint64):
        values = np.random.default_rng(1).integers(0, 127, 20_000).astype(kind)
        values[:2] = np.iinfo(kind).max if kind in (np.int8, np.int16) else 127
        assert percentiles(values, PERCENTILES) == np.percentile(values, PERCENTILES).tolist()
