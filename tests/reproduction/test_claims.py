"""Claims: every one can be answered at the paper's scale, and each kind gets the status it deserves."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from precede.core.errors import BadInput
from precede.reproduction.choices import Candidate, Choice, choose_setting, read_choices
from precede.reproduction.claims import Claim, Claims, Reason, read_claims
from precede.reproduction.judging import Sample, judge
from precede.reproduction.results import PointResult, Results
from precede.reproduction.units import PAPERS, find_paper

FOLDER = Path(__file__).parents[2] / "papers"


class _Anything(dict):
    """A run that has every measure."""

    def __contains__(self, key):
        return True

    def __missing__(self, key):
        return 1.5


@pytest.mark.parametrize("key", PAPERS)
def test_every_claim_has_points_at_the_papers_scale_and_withheld_values_stay_withheld(key):
    paper = find_paper(key)
    claims = read_claims(FOLDER / key / "claims.toml")
    assert claims.paper == key
    units = paper.units(FOLDER / key, "paper")
    assert len({unit.id for unit in units}) == len(units)
    samples = [
        Sample(unit.experiment, unit.varied, unit.replicate, _Anything(), unit.cluster) for unit in units
    ]
    for result in judge(claims, samples, "paper"):
        assert result.points > 0, result.claim.id
        assert (result.status == "withheld") == (result.claim.kind == "withheld"), result.claim.id
        assert result.status != "paper scale only", result.claim.id
    for claim in claims.claim:
        if "[withheld]" in claim.says or "not shown in our text" in claim.says:
            assert claim.kind == "withheld", claim.id
        if claim.kind == "withheld":
            assert claim.value is None, claim.id


@pytest.mark.parametrize("key", PAPERS)
def test_a_unit_is_plain_data_that_describes_its_runs(key):
    paper = find_paper(key)
    units = paper.units(FOLDER / key, "quick")
    first = {unit.experiment: unit for unit in reversed(units)}
    for unit in first.values():
        again = msgspec.json.decode(msgspec.json.encode(unit), type=type(unit))
        assert again.id == unit.id
        assert [run.id for run in paper.runs(again)] == [run.id for run in paper.runs(unit)]
        assert all(run.seed == unit.seed for run in paper.runs(unit))


def samples(spread=1e-6, **means):
    """Two replicates at each place of `gap`; half the width of their interval is 12.7 times the spread."""
    return [
        Sample("e", {"gap": float(place.removeprefix("at_"))}, str(seed), {"m": mean + spread * seed * mean})
        for place, mean in means.items()
        for seed in (-1, 1)
    ]


def status(result, **written):
    claim = msgspec.convert(
        {"id": "c", "place": "p", "says": "s", "experiment": "e", "measure": "m", **written}, Claim
    )
    close = written.pop("close", 1.0)
    (one,) = judge(Claims("x", (claim,), close=close), result, "paper")
    return one.status


@pytest.mark.parametrize(
    ("claim", "means", "expected"),
    [
        ({"kind": "between", "low": 0.2, "high": 0.4}, (0.25, 0.35), "reproduced"),
        ({"kind": "between", "low": 0.2, "high": 0.4, "slack": 0.01}, (0.195, 0.35), "close"),
        ({"kind": "between", "low": 0.2, "high": 0.4}, (0.1, 0.3), "not reproduced"),
        ({"kind": "between", "low": 10, "high": 20, "relative": 0.1}, (9.1, 21.9), "reproduced"),
        ({"kind": "between", "low": 10, "high": 20, "relative": 0.1}, (8.9, 15), "not reproduced"),
        ({"kind": "about", "value": 0.9, "tolerance": 0.05}, (0.88, 0.93), "reproduced"),
        ({"kind": "about", "value": 0.9, "tolerance": 0.05}, (0.88, 0.96), "not reproduced"),
        ({"kind": "at_most", "value": 0.7}, (0.1, 0.69), "reproduced"),
        ({"kind": "at_most", "value": 0.7}, (0.1, 0.71), "not reproduced"),
        ({"kind": "at_least", "value": 1.0, "strict": True}, (0.99, 2.0), "not reproduced"),
        ({"kind": "at_least", "value": 1.0, "strict": True, "slack": 0.1}, (0.95, 2.0), "close"),
        ({"kind": "greatest", "value": 2.0, "tolerance": 0.1}, (0.1, 2.05), "reproduced"),
        ({"kind": "greatest_at_least", "value": 20, "slack": 10}, (1, 12), "close"),
        ({"kind": "falls", "along": "gap"}, (0.5, 0.4), "reproduced"),
        ({"kind": "falls", "along": "gap", "slack_relative": 0.03}, (0.5, 0.51), "close"),
        ({"kind": "falls", "along": "gap", "slack_relative": 0.03}, (0.5, 0.6), "not reproduced"),
        ({"kind": "rises", "along": "gap"}, (0.5, 0.6), "reproduced"),
        ({"kind": "flat", "along": "gap", "tolerance": 0.2}, (1.0, 1.1), "reproduced"),
        ({"kind": "flat", "along": "gap", "tolerance": 0.2}, (1.0, 1.4), "close"),
        ({"kind": "sublinear", "along": "gap"}, (1.0, 5.0), "reproduced"),
        ({"kind": "sublinear", "along": "gap"}, (1.0, 11.0), "not reproduced"),
        ({"kind": "withheld"}, (0.5, 0.6), "withheld"),
        ({"kind": "at_most", "value": 9.0, "where": {"gap": 77.0}}, (0.5, 0.6), "paper scale only"),
    ],
)  # fmt: skip
def test_statuses(claim, means, expected):
    assert status(samples(at_1=means[0], at_10=means[1]), **claim) == expected


@pytest.mark.parametrize(
    ("claim", "means", "spread"),
    [
        ({"kind": "about", "value": 1.0, "tolerance": 0.05}, (1.0, 1.0), 0.01),
        ({"kind": "about", "value": 1.0, "tolerance": 0.05}, (1.06, 1.0), 0.01),
        ({"kind": "at_least", "value": 20}, (60.0, 30.0), 0.1),
        ({"kind": "greatest_at_least", "value": 20}, (60.0, 1.0), 0.1),
        ({"kind": "rises", "along": "gap"}, (1.0, 1.1), 0.02),
        ({"kind": "flat", "along": "gap", "tolerance": 0.2}, (1.0, 1.1), 0.2),
        ({"kind": "sublinear", "along": "gap"}, (1.0, 9.0), 0.05),
    ],
)
def test_an_interval_that_crosses_the_bound_leaves_a_claim_open(claim, means, spread):
    result = samples(spread, at_1=means[0], at_10=means[1])
    if claim["kind"] in ("rises", "flat", "sublinear"):  # the second point varies the other way
        result[2], result[3] = (
            msgspec.structs.replace(result[2], measures=result[3].measures),
            msgspec.structs.replace(result[3], measures=result[2].measures),
        )
    assert status(result, **claim) == "open"


def test_one_run_decides_nothing_but_an_identity():
    one = samples(at_1=1.0)[:1]
    exactly = {"kind": "about", "value": one[0].measures["m"]}
    assert status(one, **exactly) == "open"
    assert status(one, **exactly, automatic=True) == "reproduced"
    assert status(one, kind="about", value=2.0, automatic=True) == "not reproduced"


def test_days_of_one_town_count_as_one():
    days = [
        Sample("e", {}, f"{town}{day}", {"m": mean + 0.001 * day}, town)
        for town, mean in (("a", 1.0), ("b", 1.1), ("c", 1.2))
        for day in (1, 2, 3)
    ]
    claim = Claim(
        id="c", place="p", says="s", experiment="e", measure="m", kind="about", value=1.1, tolerance=0.1
    )
    (by_town,) = judge(Claims("x", (claim,)), days, "paper")
    (by_day,) = judge(
        Claims("x", (claim,)), [msgspec.structs.replace(day, cluster="") for day in days], "paper"
    )
    assert (by_town.status, by_town.runs) == ("open", 9)
    assert by_day.status == "reproduced"
    assert by_town.interval[0] < by_day.interval[0] < by_day.interval[1] < by_town.interval[1]


def test_sublinear_is_judged_at_every_step():
    claim = {"kind": "sublinear", "along": "gap"}
    assert status(samples(at_1=1.0, at_2=1.5, at_10=5.0), **claim) == "reproduced"
    assert status(samples(at_1=1.0, at_2=3.0, at_10=5.0), **claim) == "not reproduced"


def test_means_of_two_points_are_apart_by_an_interval():
    result = [
        Sample("e", {"side": side}, str(seed), {"m": value + spread * seed})
        for side, value, spread in (("a", 1.0, 0.04), ("b", 1.02, 0.0))
        for seed in (-1, 0, 1)
    ]
    about = {"where": {"side": "a"}, "against": {"side": "b"}, "compare": "apart", "kind": "at_most"}
    assert status(result, value=0.5, **about) == "reproduced"
    assert status(result, value=0.05, **about) == "open"


def test_twice_the_tolerance_is_close_where_the_file_says_so():
    claim = Claim(
        id="c", place="p", says="s", experiment="e", measure="m", kind="about", value=1.0, tolerance=0.1
    )
    result = samples(at_1=1.15)
    assert judge(Claims("x", (claim,)), result, "quick")[0].status == "not reproduced"
    assert judge(Claims("x", (claim,), close=2.0), result, "quick")[0].status == "close"
    (comparison,) = judge(
        Claims("x", (claim,)), result, "quick", [Reason(claims=("c*",), why="w", supported_by=("t", "u"))]
    )
    assert (comparison.reason, comparison.shown_by) == ("w", "t, u")
    left_open = Reason(claims=("c*",), why="w", supported_by=("t",), undecided=("v",))
    (comparison,) = judge(Claims("x", (claim,)), result, "quick", [left_open])
    assert comparison.shown_by == "t; undecided: v"
    assert comparison.off == pytest.approx(15.0)
    assert comparison.interval[0] < 1.15 < comparison.interval[1]


def test_a_claim_is_judged_once_for_each_reading_and_not_at_a_scale_that_cannot_answer_it():
    claim = Claim(id="c", place="p", says="s", experiment="e", measure="m", kind="at_most", value=1.0)
    result = [
        Sample("e", {"start": start}, seed, {"m": value})
        for start, value in (("even", 0.5), ("bursts", 2.0))
        for seed in "12"
    ]
    judged = judge(Claims("x", (claim,), readings="start"), result, "quick")
    assert [(one.reading, one.status) for one in judged] == [
        ("even", "reproduced"),
        ("bursts", "not reproduced"),
    ]
    late = msgspec.structs.replace(claim, scale="paper")
    assert {one.status for one in judge(Claims("x", (late,)), result[:2], "quick")} == {"paper scale only"}
    assert {one.status for one in judge(Claims("x", (late,)), result[:2], "paper")} == {"reproduced"}


def test_comparisons_are_made_replicate_by_replicate():
    result = [
        Sample("e", {"side": side, "gap": gap}, str(seed), {"m": value * seed, "n": 2.0 * value * seed})
        for side, value in (("a", 3.0), ("b", 2.0))
        for gap in (1.0, 2.0)
        for seed in (1, 10)
    ]
    about = {"where": {"side": "a"}, "against": {"side": "b"}, "pair_by": ("gap",), "compare": "ratio"}
    assert status(result, kind="about", value=1.5, **about) == "reproduced"
    assert status(result, kind="about", value=50.0, **about | {"compare": "change"}) == "reproduced"
    assert status(result, kind="about", value=0.5, **about | {"compare": "apart"}) == "reproduced"
    other = about | {"against": {"side": "b", "measure": "n"}}
    assert status(result, kind="about", value=0.75, **other) == "reproduced"
    with pytest.raises(BadInput, match="fits 2 points"):
        status(result, kind="about", value=1.5, **about | {"pair_by": ()})


def test_ranges_of_curves_are_compared_along_a_second_axis():
    sets = {(1, 5): (0.5, 0.4), (3, 7): (0.5, 0.3), (5, 9): (0.5, 0.1)}
    result = [
        Sample("e", {"to": list(to), "gap": gap}, seed, {"m": mean})
        for to, means in sets.items()
        for gap, mean in zip((1.0, 10.0), means, strict=True)
        for seed in "12"
    ]
    wider = {"kind": "range_rises", "along": "to", "over": "gap"}
    assert status(result, **wider) == "reproduced"
    for at in (2, 3):
        result[at] = msgspec.structs.replace(result[at], measures={"m": 0.05})
    assert status(result, **wider) == "not reproduced"
    steep = {"kind": "steeper_last", "along": "gap", "at": (1.0, 2.0, 3.0)}
    assert status(samples(at_1=0.5, at_2=0.45, at_3=0.1), **steep) == "reproduced"
    assert status(samples(at_1=0.5, at_2=0.2, at_3=0.1), **steep) == "not reproduced"


SHAPES = [
    {"kind": "rises", "along": "gap"},
    {"kind": "falls", "along": "gap"},
    {"kind": "range_rises", "along": "gap", "over": "nodes"},
    {"kind": "steeper_last", "along": "gap", "at": (1.0, 2.0, 3.0)},
    {"kind": "flat", "along": "gap", "tolerance": 9.0},
    {"kind": "linear", "along": "gap", "tolerance": 9.0},
    {"kind": "sublinear", "along": "gap"},
]


@pytest.mark.parametrize("claim", SHAPES, ids=lambda claim: claim["kind"])
def test_points_of_different_curves_are_no_trend(claim):
    single = [Sample("e", {"gap": 1.0, "nodes": n}, "1", {"m": float(n)}) for n in (2, 3, 5, 8)]
    assert status(single, **claim) == "paper scale only"
    assert status(samples(at_1=1.0, at_2=2.0, at_3=3.0), **claim | {"along": "gab"}) == "paper scale only"


def test_a_curve_of_one_point_is_ignored_if_another_has_a_shape():
    rises = {"kind": "rises", "along": "gap"}
    result = [Sample("e", {"gap": gap, "nodes": 2}, seed, {"m": gap}) for gap in (1.0, 10.0) for seed in "12"]
    alone = Sample("e", {"gap": 1.0, "nodes": 5}, "1", {"m": 7.0})
    assert status([*result, alone], **rises) == "reproduced"
    assert status([*result, alone], **rises | {"kind": "falls"}) == "not reproduced"


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        ('kind = "about"', "needs 'value'"),
        ('kind = "rises"', "needs 'along'"),
        ('kind = "perhaps"', "perhaps"),
        ('kind = "withheld"\nvolume = 11', "volume"),
    ],
)
def test_an_incomplete_claim_is_bad_input(tmp_path, text, expected_text):
    claim = (
        f'paper = "x"\n[[claim]]\nid = "c"\nplace = "p"\nsays = "s"\nexperiment = "e"\nmeasure = "m"\n{text}\n'
    )
    (tmp_path / "claims.toml").write_text(claim)
    with pytest.raises(BadInput, match=expected_text):
        read_claims(tmp_path / "claims.toml")


def test_a_claim_with_readings_is_one_claim_for_each_of_them(tmp_path):
    (tmp_path / "claims.toml").write_text(
        'paper = "x"\n[[claim]]\nid = "c"\nsays = "s"\nmeasure = "m"\nkind = "at_least"\nvalue = 2\n'
        'where = { n = 1, protocol = "{reading}" }\nagainst = { protocol = "b" }\nreadings = ["a", "c"]\n'
    )
    first, second = read_claims(tmp_path / "claims.toml").claim
    assert (first.id, first.reading, first.where) == ("c", "a", {"n": 1, "protocol": "a"})
    assert (second.id, second.reading, second.where) == ("c", "c", {"n": 1, "protocol": "c"})
    assert first.against == second.against == {"protocol": "b"}


def test_two_claims_with_one_id_are_bad_input(tmp_path):
    claim = '[[claim]]\nid = "c"\nsays = "s"\nmeasure = "m"\nkind = "withheld"\n'
    (tmp_path / "claims.toml").write_text(claim + claim)
    with pytest.raises(BadInput, match="two claims have the id 'c'"):
        read_claims(tmp_path / "claims.toml")


@pytest.mark.parametrize(
    ("place", "exhibit"),
    [
        ("section 5.1, Table 2 (its headings are swapped)", "table2"),
        ("Table III", "table3"),
        ("Figure 5, section VI-A", "figure5"),
        ("section 5.3, Figures 6(c) and 6(d)", "figure6"),
        ("section 8.2", "section8.2"),
        ("abstract", "text"),
    ],
)
def test_the_exhibit_of_a_claim_is_read_from_its_place(place, exhibit):
    claim = Claim(id="c", place=place, says="s", experiment="e", measure="m", kind="withheld")
    assert claim.exhibit == exhibit


def test_an_unstated_setting_is_chosen_by_some_cells_and_judged_by_others():
    published = {"a": 1.0, "b": 2.0}
    claims = Claims(
        "x",
        tuple(
            Claim(id=name, says="s", where={"cell": name}, measure="m", kind="about", value=v, tolerance=0.1)
            for name, v in published.items()
        ),
    )  # fmt: skip
    measured = {("near", "a"): 1.05, ("near", "b"): 3.0, ("far", "a"): 1.5, ("far", "b"): 2.0}
    points = tuple(
        PointResult(
            scale="paper",
            experiment="model",
            varied={"cell": cell, "model": model},
            code="1",
            replicates=("1", "2"),
            cpu_s=(0.0, 0.0),
            measures={"m": (value, value)},
        )
        for (model, cell), value in measured.items()
    )
    choice = Choice(
        name="c",
        says="s",
        experiment="model",
        cells=("a",),
        judged=("b",),
        candidate=tuple(Candidate(name, {"model": name}) for name in ("near", "far", "never run")),
    )
    chosen = choose_setting(choice, claims, Results(paper="x", points=points))
    assert chosen.best == "near", "the cell that judges does not choose"
    assert set(chosen.deviations) == {"near", "far"}
    assert [one.status for one in chosen.comparisons] == ["not reproduced"]
    assert choose_setting(choice, claims, Results(paper="x")) is None


@pytest.mark.parametrize("key", PAPERS)
def test_choices_name_claims_and_points_of_the_papers_scale(key):
    claims = read_claims(FOLDER / key / "claims.toml")
    units = find_paper(key).units(FOLDER / key, "paper")
    points = tuple(
        PointResult(
            scale="paper",
            experiment=unit.experiment,
            varied=unit.varied,
            code="1",
            replicates=(unit.replicate,),
            cpu_s=(0.0,),
            measures={c.measure: (1.5,) for c in claims.claim},
        )
        for unit in units
    )
    for choice in read_choices(FOLDER / key):
        assert not set(choice.cells) & set(choice.judged)
        chosen = choose_setting(choice, claims, Results(paper=key, points=points))
        assert set(chosen.deviations) == {one.name for one in choice.candidate}
        assert all(one.points for one in chosen.comparisons)
