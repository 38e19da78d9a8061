"""Distributions as written: what they draw has the mean they say, and what cannot be drawn is refused."""

from __future__ import annotations

from math import inf

import pytest

from precede.core.errors import BadInput
from precede.sim.randomness import Distribution, Generators


@pytest.mark.parametrize(
    "written",
    [
        3,
        "constant(2.5)",
        "exponential(4)",
        "uniform(1, 19)",
        "normal(100, 25)",
        "triangular(0, 600)",
        "triangular(1, 2, 12)",
        "triangular(5, 5)",
        "pareto(1, 3)",
        "pareto(2, 5)",
    ],
)
def test_the_mean_is_that_of_the_draws(written: str | int) -> None:
    distribution = Distribution(written)
    drawn = distribution.block(Generators(1).numpy("mean"), 400_000)
    assert distribution.mean() == pytest.approx(drawn.mean(), rel=0.01)


@pytest.mark.parametrize("written", ["pareto(1, 1)", "pareto(1, 0.5)"])
def test_a_tail_that_is_too_heavy_has_no_finite_mean(written: str) -> None:
    assert Distribution(written).mean() == inf


@pytest.mark.parametrize("written", ["constant(0.25)", "uniform(0, 1)", "pareto(1, 1.5)"])
def test_one_at_a_time_or_as_an_object_the_draws_are_the_same(written: str) -> None:
    distribution, generators = Distribution(written), Generators(7)
    draw = distribution.drawing(generators, "delay", 3, unit=1000)
    draws = distribution.draws(generators, "delay", 3, unit=1000)
    assert [draw() for _ in range(100)] == [draws.next() for _ in range(100)]


def test_what_does_not_vary_opens_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Generators, "numpy")
    assert Distribution("constant(0.5)").drawing(Generators(1), "delay")() == 500_000
    assert Distribution(2).draws(Generators(1), "delay").next() == 2_000_000


@pytest.mark.parametrize(
    ("written", "cause"),
    [
        ("normal(1, -2)", "deviation"),
        ("triangular(0, 900, 600)", "peak"),
        ("triangular(600, 0)", "wrong order"),
        ("uniform(2, 1)", "wrong order"),
        ("pareto(0, 2)", "greater than 0"),
        ("exponential(-1)", "negative"),
    ],
)
def test_what_cannot_be_drawn_is_refused(written: str, cause: str) -> None:
    with pytest.raises(BadInput, match=cause):
        Distribution(written)
