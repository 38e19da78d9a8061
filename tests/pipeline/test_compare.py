"""Claims compared with measures: each kind of claim confirmed and missed."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from precede.core.errors import BadInput
from precede.lake.schemas import COMPARISONS, MEASURES
from precede.measures.statistics import confidence_interval
from precede.pipeline.sweeps.compare import compare, missed
from precede.reproduction.claims import read_claims

POINTS = [
    ("delta", {"lifetime": "5min", "n": 1}, 10.0),
    ("delta", {"lifetime": "5min", "n": 2}, 20.0),
    ("delta", {"lifetime": "5min", "n": 10}, 30.0),
    ("delta", {"lifetime": "20min", "n": 1}, 15.0),
    ("delta", {"lifetime": "20min", "n": 2}, 14.8),
    ("plain", {}, 40.0),
    ("old", {"age": "5d"}, 39.0),
    ("old", {"age": "20h"}, 38.0),
    ("old", {"age": "90min"}, 37.0),
]
OFF = {1: -1e-5, 2: 1e-5}
"""Two runs of each point, and how far each is from the mean."""

CLAIMS = {
    "about": ('kind = "about"\nvalue = 39.0\ntolerance = 1.5\nwhere = { protocol = "plain" }', "reproduced", 1),
    "about-not": (
        'kind = "about"\nvalue = 30.0\ntolerance = 1.5\nwhere = { protocol = "plain" }',
        "not reproduced",
        1,
    ),
    "between": ('kind = "between"\nlow = 9.9\nhigh = 40.1', "reproduced", 9),
    "between-close": ('kind = "between"\nlow = 10.9\nhigh = 40.1\nslack = 1.0', "close", 9),
    "between-not": ('kind = "between"\nlow = 12\nhigh = 40.1\nslack = 1.0', "not reproduced", 9),
    "about-open": (
        'kind = "about"\nvalue = 40.0\ntolerance = 1e-6\nwhere = { protocol = "plain" }',
        "open",
        1,
    ),
    "at-most": ('kind = "at_most"\nvalue = 30.1\nwhere = { protocol = "delta" }', "reproduced", 5),
    "at-most-not": ('kind = "at_most"\nvalue = 29\nwhere = { protocol = "delta" }', "not reproduced", 5),
    "at-least": (
        'kind = "at_least"\nvalue = 39.9\nwhere = { protocol = "plain" }\nexperiment = "s"',
        "reproduced",
        1,
    ),
    "where": ('kind = "at_most"\nvalue = 15.1\nwhere = { lifetime = "20min", n = 1 }', "reproduced", 1),
    "rises": ('kind = "rises"\nalong = "n"\nwhere = { lifetime = "5min" }', "reproduced", 3),
    "rises-close": (
        'kind = "rises"\nalong = "n"\nwhere = { protocol = "delta" }\nslack_relative = 0.02',
        "close",
        5,
    ),
    "rises-not": ('kind = "rises"\nalong = "n"\nwhere = { protocol = "delta" }', "not reproduced", 5),
    "rises-by-duration": ('kind = "rises"\nalong = "lifetime"\nwhere = { n = 1 }', "reproduced", 2),
    "rises-by-days": ('kind = "rises"\nalong = "age"\nwhere = { protocol = "old" }', "reproduced", 3),
    "rises-along-nothing": (
        'kind = "rises"\nalong = "lifetme"\nwhere = { protocol = "delta" }',
        "no points",
        5,
    ),
    "falls-from-one-point": ('kind = "falls"\nalong = "n"\nwhere = { protocol = "plain" }', "no points", 1),
    "falls": ('kind = "falls"\nalong = "n"\nwhere = { lifetime = "20min" }', "reproduced", 2),
    "withheld": ('kind = "withheld"\nwhere = { protocol = "plain" }', "withheld", 1),
    "nowhere": ('kind = "about"\nvalue = 1\nwhere = { protocol = "other" }', "no points", 0),
}


def write(folder, claims):
    body = 'paper = "p"\n' + "".join(
        f'[[claim]]\nid = "{name}"\nsays = "{name}"\nmeasure = "wait"\n{text}\n'
        for name, text in claims.items()
    )
    (folder / "claims.toml").write_text(body)
    return folder / "claims.toml"


def test_every_kind_of_claim_is_confirmed_and_missed(tmp_path):
    claims = read_claims(write(tmp_path, {name: text for name, (text, _, _) in CLAIMS.items()}))
    rows = [
        {"sweep": "w", "scope": "run", "run_id": f"r{place}-{seed}", "scenario": "s", "protocol": protocol,
         "options": json.dumps(options), "measure": measure, "value": value + OFF[seed], "runs": 1}
        for place, (protocol, options, value) in enumerate(POINTS)
        for seed in OFF
        for measure in ("nodes", "wait", "age")
    ]  # fmt: skip
    rows += [{**rows[0], "scope": "group", "run_id": None, "measure": "wait", "value": 1e9}]
    measures = pa.Table.from_pylist(rows, MEASURES.arrow())
    seeds = {row["run_id"]: int(row["run_id"][-1]) for row in rows[:-1]}
    table = compare(measures, seeds, claims, "w")
    assert table.column_names == COMPARISONS.names()
    found = table.to_pylist()
    assert [row["claim"] for row in found] == list(CLAIMS)
    assert {row["claim"]: (row["status"], row["points"]) for row in found} == {
        name: (status, points) for name, (_, status, points) in CLAIMS.items()
    }
    assert missed(found) == [
        *("about-not", "between-not", "at-most-not", "rises-not"),
        *("rises-along-nothing", "falls-from-one-point", "nowhere"),
    ]
    by_id = {row["claim"]: row for row in found}
    assert (by_id["between"]["ours_low"], by_id["between"]["ours_high"]) == (10.0, 40.0)
    interval = confidence_interval([40.0 + off for off in OFF.values()])
    assert (by_id["about"]["interval_low"], by_id["about"]["interval_high"]) == pytest.approx(interval)
    assert (by_id["at-most"]["published_low"], by_id["at-most"]["published_high"]) == (None, 30.1)


def test_a_run_without_a_row_for_a_count_counts_as_zero(tmp_path):
    text = 'measure = "discarded_late"\nkind = "about"\nvalue = 2.0'
    path = tmp_path / "claims.toml"
    path.write_text(f'[[claim]]\nid = "c"\nsays = "s"\n{text}\n')
    about = {"sweep": "w", "scope": "run", "scenario": "s", "protocol": "p", "options": "{}", "runs": 1}
    rows = [about | {"run_id": run, "measure": "nodes", "value": 3.0} for run in ("a", "b")]
    rows += [about | {"run_id": "a", "measure": "discarded_late", "value": 4.0}]
    table = compare(pa.Table.from_pylist(rows, MEASURES.arrow()), {"a": 1, "b": 2}, read_claims(path), "w")
    (row,) = table.to_pylist()
    assert (row["status"], row["ours_low"], row["runs"]) == ("open", 2.0, 2)  # 4 and 0: a wide interval


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        ('kind = "about"', "needs 'value'"),
        ('kind = "rises"', "needs 'along'"),
        ('kind = "between"\nlow = 1', "needs 'high'"),
        ('kind = "perhaps"', "perhaps"),
        ('kind = "withheld"\nvolume = 11', "volume"),
    ],
)
def test_an_incomplete_claim_is_bad_input(tmp_path, text, expected_text):
    with pytest.raises(BadInput, match=expected_text):
        read_claims(write(tmp_path, {"one": text}))
