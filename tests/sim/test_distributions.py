"""Written distributions: the mean of their draws, and errors for wrong ones."""

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
def test_the_mean_is_the_mean_of_the_draws(written: str | int) -> None:
    distribution = Distribution(written)
    drawn = distribution.block(Generators(1).numpy("mean"), 400_000)
    assert distribution.mean() == pytest.approx(drawn.mean(), rel=0.01)


@pytest.mark.parametrize("written", ["pareto(1, 1)", "pareto(1, 0.5)"])
def test_a_heavy_tail_has_no_finite_mean(written: str) -> None:
    assert Distribution(written).mean() == inf


@pytest.mark.parametrize("written", ["constant(0.25)", "uniform(0, 1)", "pareto(1, 1.5)"])
def test_the_function_and_the_object_draw_the_same_values(written: str) -> None:
    distribution, generators = Distribution(written), Generators(7)
    draw = distribution.drawing(generators, "delay", 3, unit=1000)
    draws = distribution.draws(generators, "delay", 3, unit=1000)
    assert [draw() for _ in range(100)] == [draws.next() for _ in range(100)]


def test_a_constant_makes_no_generator(monkeypatch: pytest.MonkeyPatch) -> None:
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
        ("uniform(0, 1e300)", "cannot be simulated"),
    ],
)
def test_a_wrong_distribution_is_refused_with_its_cause(written: str, cause: str) -> None:
    with pytest.raises(BadInput, match=cause):
        Distribution(written)


def test_a_triangular_distribution_may_name_its_peak() -> None:
    assert Distribution("triangular(0, 6, 9)").arguments == (0.0, 6.0, 9.0)
