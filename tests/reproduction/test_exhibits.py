"""Figures of `figures.toml`: curves over an axis, distributions, and series of one run."""

import pytest

from precede.cli.evidence.paper_text import _needed
from precede.core.errors import BadInput
from precede.reproduction.claims import Claim
from precede.reproduction.exhibits import FigureSpec, PublishedSpec, curves_of, published_values
from precede.reproduction.judging import Comparison, Sample

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


def test_a_cumulated_distribution_has_a_measure_for_each_place_and_other_names_for_curves():
    samples = [
        Sample("main", {"nodes": 8}, str(seed), {"within_60s": 10.0 + seed, "within_0.5s": 1.0})
        for seed in (1, 3)
    ]
    cumulated = spec(
        experiment="main",
        at=(0.5, 60),
        y="within_{at}s",
        x_per=60,
        curves=("nodes", "lifetime"),  # an axis that this experiment does not have
        names={"nodes 8": "eight"},
    )
    assert cumulated.measures == ("within_0.5s", "within_60s")
    (curve,) = curves_of(cumulated, samples).items()
    assert curve[0] == "eight"
    assert [(point.x, point.mean) for point in curve[1]] == [(0.5 / 60, 1.0), (1.0, 12.0)]
    (published,) = published_values(cumulated, [claim("within_60s", value=13.0, where={"nodes": 8})])
    assert (published.x, published.value) == (1.0, 13.0)


def test_intervals_are_over_groups_of_runs_that_are_independent():
    samples = [
        Sample("main", {"nodes": 8}, f"{town}{day}", {"few": value + day}, town)
        for town, value in (("a", 10.0), ("b", 20.0))
        for day in (0, 2)
    ]
    ((point,),) = curves_of(spec(experiment="main", x="nodes", y="few"), samples).values()
    (other,) = curves_of(
        spec(experiment="main", x="nodes", y="few"),
        [Sample("main", {"nodes": 8}, town, {"few": mean}) for town, mean in (("a", 11.0), ("b", 21.0))],
    )["few"]
    assert point == other


def series(shape, **given):
    columns = {"at": [0.0, 30.0], "few": [1.0, 2.0], "many": [4.0, 8.0]}
    samples = [
        Sample("main", {"nodes": 4}, "1", {}, "", {"day": {"at": [9.0], "few": [9.0], "many": [9.0]}}),
        Sample("main", {"nodes": 8}, "1", {}),
        Sample("main", {"nodes": 8}, "2", {}, "", {"day": columns}),
    ]
    figure = spec(experiment="main", where={"nodes": 8}, series="day", shape=shape, x_per=60, **given)
    assert figure.measures == ()
    shown = curves_of(figure, samples)
    return {name: [(point.x, point.mean) for point in points] for name, points in shown.items()}


def test_a_series_is_that_of_the_first_run_that_has_it():
    assert series("line", x="at", y=("few", "many"), y_per=2, names={"few": "a few"}) == {
        "a few": [(0.0, 0.5), (0.5, 1.0)],
        "many": [(0.0, 2.0), (0.5, 4.0)],
    }


def test_segments_lie_one_above_the_other():
    assert series("segments", y=("few", "many")) == {
        "day": [(1 / 60, 1), (4 / 60, 1), (2 / 60, 2), (8 / 60, 2)]
    }


def test_values_are_published_by_the_claims_that_have_them():
    stated = (
        PublishedSpec(x="p90", y=90),
        PublishedSpec(y="most"),
        PublishedSpec(x=20, high="most"),
    )
    figure = spec(experiment="main", series="day", x_per=60, y_per=10, published=stated)
    claims = [claim("p90", value=30.0), claim("most", value=5.0)]
    shown = [(one.x, one.value, one.low, one.high) for one in published_values(figure, claims)]
    assert shown == [(0.5, 90, None, None), (None, 0.5, None, None), (20, None, None, 0.5)]
    with pytest.raises(BadInput, match="no claim 'most' with a published value"):
        published_values(figure, claims[:1])
    withheld = Claim(id="most", place="p", says="s", experiment="main", kind="withheld", measure="m")
    with pytest.raises(BadInput, match="no claim 'most' with a published value"):
        published_values(figure, [claims[0], withheld])


@pytest.mark.parametrize(
    ("mean", "half", "expected"),
    [
        (108.0, 4.0, ("reproduced", 4)),
        (114.0, 6.0, ("not reproduced", 3)),
        (109.9, 5.0, ("reproduced", "over 100")),
    ],
)
def test_an_open_claim_is_decided_when_its_interval_is_on_one_side_of_the_nearest_limit(mean, half, expected):
    about = claim("few", value=100.0, tolerance=10.0)
    interval = (mean - half, mean + half)
    assert _needed(Comparison(claim=about, status="open", ours=(mean, mean), interval=interval)) == expected
