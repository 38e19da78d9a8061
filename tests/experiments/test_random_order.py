"""Ranks drawn as one number put messages in the order that as many calls of `random` would."""

from __future__ import annotations

from random import Random

import pytest

from precede.experiments.instant_contacts.random_order import by_rank, drawn


@pytest.mark.parametrize("count", [1, 2, 3, 64, 65, 550, 5_000])
def test_the_order_and_the_next_draw_are_those_of_random(count: int) -> None:
    one_by_one, at_once = Random(count), Random(count)
    ranks = [one_by_one.random() for _ in range(count)]
    places = by_rank(drawn(at_once, count), count)
    assert places == sorted(range(count), key=ranks.__getitem__)
    assert at_once.random() == one_by_one.random()
