"""Figures of `figures.toml`: curves over an axis, and distributions over the bins of several measures."""

from precede.reproduction.claims import Claim
from precede.reproduction.exhibits import FigureSpec, curves_of, published_values
from precede.reproduction.judging import Sample

SAMPLES = [
    Sample(experiment, {"nodes": nodes}, str(seed), {"few": 10.0 * nodes + seed, "many": 5.0})
    for experiment in ("main", "other")
    for nodes in (8, 16)
    for seed in (1, 3)
]


def spec(**given):
    return FigureSpec(name="figure9", title="t", **given)


def claim(measure, **given):
    return Claim(id=measure, place="p", says="s", experiment="main", kind="about", measure=measure, **given)


def test_a_distribution_has_a_place_for_each_bin_and_a_curve_for_each_point():
    shown = curves_of(spec(experiment="main", bins={"1": "few", "over": "many"}, curves=("nodes",)), SAMPLES)
    assert {name: [(point.x, point.mean) for point in points] for name, points in shown.items()} == {
        "nodes 8": [(0.0, 82.0), (1.0, 5.0)],
        "nodes 16": [(0.0, 162.0), (1.0, 5.0)],
    }


def test_published_values_stand_in_the_bin_of_their_measure():
    figure = spec(experiment="main", bins={"1": "few", "over": "many"}, where={"nodes": 8})
    claims = [
        claim("many", value=4.0, where={"nodes": 8}),
        claim("few", value=3.0, where={"nodes": 16}),
        claim("else", value=1.0),
    ]
    assert [(value.x, value.value) for value in published_values(figure, claims)] == [(1.0, 4.0)]


def test_two_experiments_in_one_figure_have_their_own_curves():
    shown = curves_of(spec(experiment=("main", "other"), x="nodes", y="many"), SAMPLES)
    assert {name: [point.x for point in points] for name, points in shown.items()} == {
        "main": [8.0, 16.0],
        "other": [8.0, 16.0],
    }


def test_a_single_curve_is_named_by_its_measure():
    assert list(curves_of(spec(experiment="main", x="nodes", y="many"), SAMPLES)) == ["many"]
