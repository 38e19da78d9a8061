"""The table of paired differences of a sweep: which pairs are compared, and what is concluded where."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pyarrow as pa

from precede.lake.schemas import DIFFERENCES, MEASURES
from precede.pipeline.sweeps.differences import differences
from precede.report.difference_pages import difference_figure, difference_sections


def swept(
    groups: list[tuple[str, str, dict[str, Any], float]], seeds: int, measure: str = "delivery_ratio"
) -> Any:
    """Measures of a sweep: each group's mean, plus what its seed adds in every group, plus a little noise."""
    random = Random(3)
    rows, seed_of = [], {}
    for scenario, protocol, options, mean in groups:
        for seed in range(seeds):
            run_id = f"{scenario}-{protocol}-{json.dumps(options)}-{seed}"
            seed_of[run_id] = seed
            value = mean + 0.1 * seed + random.gauss(0, 0.01)
            row = {"sweep": "s", "scope": "run", "run_id": run_id, "scenario": scenario, "protocol": protocol}
            rows.append(row | {"options": json.dumps(options), "measure": measure, "value": value, "runs": 1})
    table = pa.Table.from_pylist(rows, MEASURES.arrow())
    return differences(table, seed_of, "s").to_pylist()


def test_a_difference_is_found_where_it_is_and_seeds_cancel_out():
    rows = swept(
        [("bus", "x", {}, 0.6), ("bus", "y", {}, 0.5), ("walk", "x", {}, 0.5), ("walk", "y", {}, 0.5)], 6
    )
    by_scenario = {row["scenario"]: row for row in rows}
    bus = by_scenario["bus"]
    assert (bus["a"], bus["b"], bus["factor"], bus["options"], bus["seeds"]) == ("x", "y", "protocol", "{}", 6)
    assert bus["conclusion"] == "a is better"
    assert bus["low"] < 0.1 < bus["high"]
    assert by_scenario["walk"]["conclusion"] == "no difference shown"
    assert [row["tests"] for row in rows] == [2, 2], "both scenarios are one family"
    assert bus["p_holm"] >= bus["p"]


def test_lower_is_better_for_an_age():
    (row,) = swept([("bus", "x", {}, 0.6), ("bus", "y", {}, 0.5)], 6, "age_us_mean")
    assert row["conclusion"] == "b is better"


def test_few_seeds_conclude_nothing():
    (row,) = swept([("bus", "x", {}, 0.9), ("bus", "y", {}, 0.1)], 4)
    assert (row["conclusion"], row["p_holm"], row["tests"]) == ("too few seeds", None, None)


def test_only_groups_that_differ_in_one_setting_are_compared():
    groups = [
        ("bus", "x", {"range": 50, "life": "5min"}, 0.5),
        ("bus", "x", {"range": 100, "life": "5min"}, 0.5),
        ("bus", "x", {"range": 100, "life": "9min"}, 0.5),
        ("bus", "y", {"range": 100}, 0.5),
    ]
    found = {(row["factor"], row["a"], row["b"], row["options"]) for row in swept(groups, 5)}
    assert found == {
        ("range", "50", "100", '{"life":"5min","protocol":"x"}'),
        ("life", "5min", "9min", '{"protocol":"x","range":100}'),
        ("protocol", "x, life 5min", "y", '{"range":100}'),
        ("protocol", "x, life 9min", "y", '{"range":100}'),
    }


def test_the_page_shows_every_pair_and_the_figure_the_clearest_ones():
    groups = [("bus", name, {}, 0.5 + 0.1 * k) for k, name in enumerate("stuvwxyz")]
    rows = swept(groups, 5)
    assert len(rows) == 28
    (section,) = difference_sections(rows)
    assert str(section.tables[0]).count("is better") == sum("better" in row["conclusion"] for row in rows) > 0
    figure = difference_figure(rows, "delivery_ratio")
    assert figure is not None
    assert len(figure.categories) == 16
    assert difference_figure(rows, "energy_j") is None
    assert difference_sections([]) == []
    assert set(rows[0]) == set(DIFFERENCES.names())
