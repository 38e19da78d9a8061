"""Adding measured units to the stored results: no seed is lost, and none of another experiment stays."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from precede.reproduction.results import Results, read_results, write_results
from precede.reproduction.storing import add_results
from precede.reproduction.units import Unit, find_paper

EXPERIMENTS = """
more = 3
[measured]
warm_up_deliveries = 100
deliveries = 300
runs = 2
[quick]
runs = 2
[experiment.figure4]
title = "small"
place = "Figure 4"
cases = [{ nodes = 6, to = [1, 5] }]
grid = { propagation = [1, 3] }
set = { gap = 1 }
"""
CLAIMS = """
paper = "prs1997"
measure = "tuple_share"
[[claim]]
id = "bounded"
place = "Figure 4"
says = "never more than N squared"
experiment = "figure4"
kind = "at_most"
value = 1.0
"""
FIRST = {"1", "2"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "experiments.toml").write_text(EXPERIMENTS)
    (tmp_path / "claims.toml").write_text(CLAIMS)
    return tmp_path


def units(folder: Path, replicates: set[str] | None = None) -> list[Unit]:
    everything = find_paper("prs1997").units(folder, "paper", more=True)
    return [unit for unit in everything if replicates is None or unit.replicate in replicates]


def mark(unit: Unit, version: str = "1+a", scale: float = 0.01, violations: int | None = 0) -> dict:
    """What a run of the unit might have left; its measure tells its seed."""
    measures = {"tuple_share": scale * unit.seed, "cpu_s": 3.0, "not_needed": 1.0}
    return {"version": version, "cpu_s": 1.5, "violations": violations, "measures": measures}


def store(folder: Path, marks: list[tuple[Unit, dict]]) -> Results:
    write_results(folder, add_results(folder, "prs1997", "paper", marks))
    return read_results(folder)


def values(results: Results, propagation: float = 1) -> dict[str, float]:
    return {
        sample.replicate: sample.measures["tuple_share"]
        for point in results.points
        for sample in point.samples()
        if sample.varied["propagation"] == propagation
    }


def test_seeds_that_a_request_does_not_bring_stay(folder):
    store(folder, [(unit, mark(unit)) for unit in units(folder)])
    results = store(folder, [(unit, mark(unit, "1+b")) for unit in units(folder, FIRST)])
    assert values(results) == {"1": 0.01, "2": 0.02, "3": 0.03, "4": 0.04, "5": 0.05, "6": 0.06}
    assert values(results, 3) == values(results)
    assert sum(sum(point.cpu_s) for point in results.points) == 12 * 1.5


def test_each_version_of_the_code_has_the_seeds_that_it_measured(folder):
    store(folder, [(unit, mark(unit)) for unit in units(folder)])
    for version in ("1+b", "1+c"):
        results = store(folder, [(unit, mark(unit, version)) for unit in units(folder, FIRST)])
    points = [point for point in results.points if point.varied["propagation"] == 1]
    assert {point.code: point.replicates for point in points} == {
        "1+c": ("1", "2"),
        "1+a": ("3", "4", "5", "6"),
    }


def test_one_request_with_marks_of_two_versions_names_both(folder):
    results = store(
        folder, [(unit, mark(unit, "1+b" if unit.seed == 2 else "1+a")) for unit in units(folder, FIRST)]
    )
    assert [(point.code, point.replicates) for point in results.points] == [
        ("1+a", ("1",)),
        ("1+b", ("2",)),
        ("1+a", ("1",)),
        ("1+b", ("2",)),
    ]


def test_stored_seeds_go_if_a_seed_gives_another_measure_now(folder):
    """Then the point, or the code, is another one than that of the stored seeds."""
    store(folder, [(unit, mark(unit)) for unit in units(folder)])
    changed = [
        (unit, mark(unit, "1+b", 0.02 if unit.varied["propagation"] == 1 else 0.01))
        for unit in units(folder, FIRST)
    ]
    results = store(folder, changed)
    assert values(results) == {"1": 0.02, "2": 0.04}
    assert len(values(results, 3)) == 6


def test_stored_seeds_go_if_no_seed_shows_that_they_are_of_the_same_point(folder):
    store(folder, [(unit, mark(unit)) for unit in units(folder, {"3", "4"})])
    assert list(values(store(folder, [(unit, mark(unit)) for unit in units(folder, FIRST)]))) == ["1", "2"]


def test_stored_seeds_and_points_go_that_the_paper_no_longer_declares(folder):
    store(folder, [(unit, mark(unit)) for unit in units(folder)])
    fewer = EXPERIMENTS.replace("more = 3", "more = 2").replace("[1, 3]", "[1, 2]")
    (folder / "experiments.toml").write_text(fewer)
    results = store(folder, [(unit, mark(unit, "1+b")) for unit in units(folder, FIRST)])
    assert list(values(results)) == ["1", "2", "3", "4"]
    assert values(results, 3) == {}
    assert list(values(results, 2)) == ["1", "2"]


def test_other_experiments_and_scales_stay_as_they_are(folder):
    results = store(folder, [(unit, mark(unit)) for unit in units(folder)])
    other = msgspec.structs.replace(results.points[0], experiment="other")
    quick = msgspec.structs.replace(results.points[0], scale="quick", replicates=("9",) * 6)
    write_results(folder, msgspec.structs.replace(results, points=(*results.points, other, quick)))
    results = store(folder, [(unit, mark(unit, "1+b", 0.05)) for unit in units(folder, FIRST)])
    assert [point for point in results.points if point.experiment == "other"] == [other]
    assert [point for point in results.points if point.scale == "quick"] == [quick]


def test_violations_are_counted_once(folder):
    """Runs are determined, so a seed that is run again has the violations that it had."""
    bad = {"2": 3, "4": 5, "6": None}
    store(folder, [(unit, mark(unit, violations=bad.get(unit.replicate, 0))) for unit in units(folder)])
    results = store(
        folder,
        [
            (unit, mark(unit, "1+b", violations=bad.get(unit.replicate, 0)))
            for unit in units(folder, {"1", "2", "3"})
        ],
    )
    points = [point for point in results.points if point.varied["propagation"] == 1]
    assert [(point.code, point.violations, point.unverified) for point in points] == [
        ("1+b", 3, 0),
        ("1+a", 5, 1),
    ]


def test_kept_seeds_keep_their_clusters(folder):
    def clustered(replicates: set[str] | None) -> list[Unit]:
        return [
            msgspec.structs.replace(unit, cluster=f"town {unit.seed % 2}") for unit in units(folder, replicates)
        ]

    store(folder, [(unit, mark(unit)) for unit in clustered(None)])
    results = store(folder, [(unit, mark(unit, "1+b")) for unit in clustered(FIRST)])
    kept = [point for point in results.points if point.code == "1+a"]
    assert [point.clusters for point in kept] == [("town 1", "town 0", "town 1", "town 0")] * 2


def test_series_of_some_seeds_are_stored(folder):
    series = {"size": {"x": (1.0,)}}
    marks = [(u, mark(u) | ({"series": series} if u.replicate == "2" else {})) for u in units(folder, FIRST)]
    assert [point.series for point in store(folder, marks).points] == [({}, series)] * 2


@pytest.mark.parametrize(
    "form", ['statistic = "fives_apart"', 'compare = "apart"\nagainst = { propagation = 3 }']
)
def test_a_claim_about_a_measure_that_older_seeds_lack_is_judged_by_the_others(folder, form):
    store(folder, [(unit, mark(unit)) for unit in units(folder)])
    claim = CLAIMS.partition("[[claim]]")[2].replace("bounded", "later").replace("value = 1.0", "value = 9.0")
    (folder / "claims.toml").write_text(
        f'{CLAIMS}[[claim]]{claim}where = {{ propagation = 1 }}\nmeasure = "later"\n{form}\n'
    )
    marks = [(unit, mark(unit, "1+b")) for unit in units(folder, FIRST)]
    for _, one in marks:
        one["measures"]["later"] = 2.0
    assert len(values(store(folder, marks))) == 6
