"""Rows by pairs of a node and a message, compared with a dictionary."""

from __future__ import annotations

import numpy as np
import pytest

from precede.measures import pairs
from precede.measures.pairs import RowsByPair


@pytest.mark.parametrize("places_per_row", [0, 32])
@pytest.mark.parametrize("seed", range(6))
def test_the_first_row_of_each_pair_is_found(seed: int, places_per_row: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pairs, "_PLACES_PER_ROW", places_per_row)
    random = np.random.default_rng(seed)
    node, message = random.integers(0, 6, 40), random.integers(3, 30, 40)
    first: dict[tuple[int, int], int] = {}
    for row, pair in enumerate(zip(node.tolist(), message.tolist(), strict=True)):
        first.setdefault(pair, row)
    searched_node, searched_message = random.integers(-1, 9, 300), random.integers(0, 40, 300)
    searched_pairs = zip(searched_node.tolist(), searched_message.tolist(), strict=True)
    rows = RowsByPair(node, message)
    assert rows.find(searched_node, searched_message).tolist() == [
        first.get(pair, -1) for pair in searched_pairs
    ]
    assert rows.are_unique() == (len(first) == 40)
    firsts = np.array(list(first.values()))
    assert RowsByPair(node[firsts], message[firsts]).are_unique()


def test_no_row_has_any_pair():
    none = np.empty(0, np.int64)
    assert RowsByPair(none, none).find(np.array([0, 1]), np.array([0, 1])).tolist() == [-1, -1]
    assert RowsByPair(none, none).are_unique()
