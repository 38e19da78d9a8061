"""`precede reproduce`: every unit runs once, even after kills; the same tables with and without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import msgspec
import pytest

from precede import __version__
from precede.cli import main
from precede.cli.evidence.exhibits import write_exhibits
from precede.cli.evidence.reproduce import describe
from precede.core.errors import BadInput
from precede.lake.layout import Lake
from precede.pipeline.reproduction import reproduce as reproducing
from precede.pipeline.reproduction.reproduce import is_finished, reproduce
from precede.reproduction.claims import read_claims
from precede.reproduction.prs1997 import points as prs1997
from precede.reproduction.request import Request
from precede.reproduction.results import changed_claims, read_results, write_results
from tests.pipeline.cluster import Cluster, kill_tree

EXPERIMENTS = """
more = 2
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
grid = { propagation = [0.1, 1, 3] }
set = { gap = 1 }
[experiment.beyond]
title = "no claim is about it"
place = "beyond the paper"
cases = [{ nodes = 5, to = [1, 4] }]
set = { gap = 1, propagation = 1 }
"""
CLAIMS = """
paper = "prs1997"
measure = "tuple_share"
[[claim]]
id = "grows"
place = "Figure 4"
says = "it grows"
experiment = "figure4"
kind = "rises"
along = "propagation"
[[claim]]
id = "bounded"
place = "Figure 4"
says = "never more than N squared"
experiment = "figure4"
kind = "at_most"
value = 1.0
[[claim]]
id = "wrong"
place = "Table 9"
says = "nothing is carried"
experiment = "figure4"
where = { propagation = 3 }
kind = "about"
value = 0.0
[[claim]]
id = "kept"
place = "Table 9"
says = "[withheld] are carried"
experiment = "figure4"
where = { propagation = 3 }
kind = "withheld"
"""
REASONS = """
[[reason]]
claims = ["wr*"]
why = "something is always carried"
supported_by = ["always"]
[[evidence]]
id = "always"
place = "p"
says = "some are carried"
experiment = "figure4"
where = { propagation = 3 }
measure = "tuple_share"
kind = "at_least"
value = 0.01
"""
FIGURES = """
[[figure]]
name = "figure4"
title = "Size"
experiment = "figure4"
x = "propagation"
y = "tuple_share"
curves = ["nodes"]
"""


@pytest.fixture
def papers(tmp_path):
    folder = tmp_path / "papers" / "prs1997"
    folder.mkdir(parents=True)
    for name, text in {
        "experiments.toml": EXPERIMENTS,
        "claims.toml": CLAIMS,
        "reasons.toml": REASONS,
        "figures.toml": FIGURES,
    }.items():
        (folder / name).write_text(text)
    return folder.parent


def request(papers, **more):
    return Request(key="prs1997", folder=papers / "prs1997", scale="quick", **more)


def table(lake, name, unit="prs1997-quick"):
    return lake.read(name, unit).to_pylist()


def same(lake, unit="prs1997-quick"):
    """What must not depend on where it ran, nor on how often it was broken off."""
    left_out = ("cpu_s", "worker", "finished_at", "attempt")
    return {
        name: [{k: v for k, v in row.items() if k not in left_out} for row in table(lake, name, unit)]
        for name in ("runs", "verdicts", "measures", "comparisons")
    }


def test_runs_are_verified_measured_compared_and_written(papers, tmp_path):
    lake = Lake(tmp_path / "lake")
    (result,) = reproduce(lake, [request(papers)], None)
    assert (result.units, result.finished_before, result.violations, result.unverified) == (6, 0, 0, 0)
    statuses = {one.claim.id: one.status for one in result.comparisons}
    assert statuses == {
        "grows": statuses["grows"],
        "bounded": "reproduced",
        "wrong": "not reproduced",
        "kept": "withheld",
    }
    rows = {row["claim"]: row for row in table(lake, "comparisons")}
    assert rows["wrong"]["reason"] == "something is always carried"
    assert rows["wrong"]["ours_low"] == rows["kept"]["ours_low"] > 0
    assert rows["kept"]["published_low"] is None
    assert rows["bounded"]["points"] == 3
    assert rows["bounded"]["interval_low"] < rows["bounded"]["ours_low"]
    assert len(table(lake, "runs")) == len(table(lake, "verdicts")) == 6
    assert {row["verdict"] for row in table(lake, "verdicts")} == {"holds"}
    shares = [row for row in table(lake, "measures") if row["measure"] == "tuple_share"]
    assert [row["scope"] for row in shares] == ["run"] * 6 + ["group"] * 3
    files = {path.name for path in write_exhibits(result, tmp_path / "out")}
    assert {"figure4.tex", "figure4.csv", "table9.md", "figure4-curves.svg", "figure4-curves.png"} <= files


def test_an_interrupted_reproduction_runs_only_missing_units(papers, tmp_path, monkeypatch):
    lake, done = Lake(tmp_path / "lake"), []
    carry_out = reproducing.carry_out_unit

    def breaks_off(unit):
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(unit.id)
        return carry_out(unit)

    monkeypatch.setattr(reproducing, "carry_out_unit", breaks_off)
    with pytest.raises(KeyboardInterrupt):
        reproduce(lake, [request(papers)], None)
    assert not lake.has("comparisons", "prs1997-quick")
    first, done[:] = list(done), []
    (result,) = reproduce(lake, [request(papers)], None)
    assert result.finished_before == 4
    assert len(done) == 2
    assert not set(first) & set(done)
    done[:] = []
    assert is_finished(lake, [request(papers)])
    assert not is_finished(lake, [request(papers), request(papers, exhibit="beyond")])
    (again,) = reproduce(lake, [request(papers)], None)
    assert (again.finished_before, done) == (6, [])
    whole = Lake(tmp_path / "whole")
    monkeypatch.setattr(reproducing, "carry_out_unit", carry_out)
    reproduce(whole, [request(papers)], None)
    assert same(lake) == same(whole)


def test_units_of_another_version_are_measured_again_and_units_of_other_code_are_counted(papers, tmp_path):
    lake = Lake(tmp_path / "lake")
    reproduce(lake, [request(papers)], None)
    first = same(lake)
    marks = reproducing.Marks(lake)
    ids = sorted(marks.facts)
    wrong = {"measures": {"tuple_share": 99.0}}
    job = lake.job("forging")
    for id, version in zip(ids, ("0.0.1", "0.0.1+0123456789ab", f"{__version__}+0"), strict=False):
        job.commit("units", id, facts={id: marks.read(id) | wrong | {"version": version}})
    assert not is_finished(lake, [request(papers)])
    (result,) = reproduce(lake, [request(papers)], None)
    assert (result.finished_before, result.by_other_code) == (4, 1)
    assert "1 of them by other code" in "\n".join(describe(result, tmp_path, lake.location))
    assert is_finished(lake, [request(papers)])
    assert not is_finished(lake, [request(papers, same_code=True)])
    (result,) = reproduce(lake, [request(papers, same_code=True)], None)
    assert (result.finished_before, result.by_other_code) == (5, 0)
    assert same(lake) == first


def test_an_exhibit_runs_its_experiments_and_a_named_experiment_needs_no_claims(papers, tmp_path):
    lake = Lake(tmp_path / "lake")
    (result,) = reproduce(lake, [request(papers, exhibit="beyond")], None)
    assert (result.units, result.comparisons) == (2, ())
    assert {path.name for path in write_exhibits(result, tmp_path / "out")} == {
        f"beyond.{suffix}" for suffix in ("md", "tex", "html", "csv")
    }
    (result,) = reproduce(lake, [request(papers, exhibit="table9")], None)
    assert {one.claim.id for one in result.comparisons} == {"wrong", "kept"}


def test_a_paper_runs_here_without_spark(papers, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    where = ["--papers", str(papers), "--lake", str(tmp_path / "lake"), "--scale", "quick", "--here"]
    assert main(["reproduce", "prs1997", *where]) == 1, "a claim is missed"
    assert "6 runs, 0 violations" in capsys.readouterr().out
    assert main(["reproduce", "prs1997", *where, "--master", "local[2]"]) == 2
    assert "--here is without Spark" in capsys.readouterr().err


def test_stored_results_are_shown_written_and_checked_without_the_lake(papers, tmp_path, capsys, monkeypatch):
    lake, page = Lake(tmp_path / "lake"), tmp_path / "pages" / "prs1997.md"
    page.parent.mkdir()
    where = ["prs1997", "--papers", str(papers)]
    assert main(["reproduce", *where]) == 2
    assert "no stored results of prs1997 (measure them" in capsys.readouterr().err
    (result,) = reproduce(lake, [request(papers)], None, store=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(prs1997, "measure_run", None)
    assert main(["reproduce", *where, "--json"]) == 1, "a claim is missed"
    (shown,) = json.loads(capsys.readouterr().out)
    assert {one["id"]: one["status"] for one in shown["claims"]} == {
        one.claim.id: one.status for one in result.comparisons
    }
    assert main(["reproduce", *where, "--pages", "pages"]) == 2
    assert "no such page" in capsys.readouterr().err
    page.write_text("# P\n<!-- results: begin -->\nold\n<!-- results: end -->\nafter\n")
    assert main(["reproduce", *where, "--pages", "pages"]) == 0
    text = page.read_text()
    assert "| `wrong` | Table 9 | nothing is carried |" in text
    assert "something is always carried (always)" in text
    assert "![Size](prs1997-figure4.svg)" in text
    assert "| `always` | p | some are carried | at least 0.01 |" in text
    assert text.startswith("# P\n")
    assert text.endswith("after\n")
    assert "old" not in text
    monkeypatch.undo()
    assert main(["reproduce", *where, "--check", "--minutes", "1"]) == 0
    assert "6 of 6 reruns gave all stored measures" in capsys.readouterr().out
    file = papers / "prs1997" / "results.json"
    stored = read_results(papers / "prs1997")
    first = stored.points[0]
    wrong = msgspec.structs.replace(first, measures=dict.fromkeys(first.measures, (9.0, 9.0)))
    write_results(papers / "prs1997", msgspec.structs.replace(stored, points=(wrong, *stored.points[1:])))
    assert main(["reproduce", *where, "--check", "--minutes", "1"]) == 1
    assert "differs: prs1997-figure4-s1-" in capsys.readouterr().out
    file.write_text('{"format": 1, "paper": 3}')
    assert main(["reproduce", *where]) == 2
    assert "results.json: Expected `str`, got `int`" in capsys.readouterr().err


def test_a_claim_that_was_judged_does_not_change_under_its_results(papers, tmp_path):
    lake, folder = Lake(tmp_path / "lake"), papers / "prs1997"
    reproduce(lake, [request(papers)], None, store=True)
    assert changed_claims(read_results(folder), read_claims(folder / "claims.toml")) == []
    reworded = CLAIMS.replace('says = "never more', 'says = "not more')
    (folder / "claims.toml").write_text(reworded)
    assert changed_claims(read_results(folder), read_claims(folder / "claims.toml")) == []
    (folder / "claims.toml").write_text(CLAIMS.replace("value = 1.0", "value = 1.5"))
    assert changed_claims(read_results(folder), read_claims(folder / "claims.toml")) == ["bounded"]
    with pytest.raises(BadInput, match="bounded was judged before with other fields"):
        reproduce(lake, [request(papers)], None, store=True)


def test_claims_that_stay_open_get_more_seeds_once(papers, tmp_path):
    lake = Lake(tmp_path / "lake")
    one = Request(key="prs1997", folder=papers / "prs1997", scale="paper")
    (result,) = reproduce(lake, [one], None)
    assert "grows" in [one.claim.id for one in result.comparisons]
    assert result.units == 12, "two seeds of three points leave a claim open: two more of each"
    (again,) = reproduce(lake, [one], None)
    assert (again.units, again.finished_before) == (12, 12)


def test_a_request_that_needs_fewer_seeds_stores_no_fewer(papers, tmp_path):
    folder = papers / "prs1997"
    whole = Request(key="prs1997", folder=folder, scale="paper")
    reproduce(Lake(tmp_path / "lake"), [whole], None, store=True)
    table = msgspec.structs.replace(whole, exhibit="table9")
    (result,) = reproduce(Lake(tmp_path / "another"), [table], None, store=True)
    assert result.units == 6, "its claim is decided by the first two seeds"
    stored = [point for point in read_results(folder).points if point.experiment == "figure4"]
    seeds = {str(point.varied["propagation"]): [] for point in stored}
    for point in stored:
        seeds[str(point.varied["propagation"])] += point.replicates
    assert list(seeds.values()) == [["1", "2", "3", "4"]] * 3


def test_a_failed_unit_is_reported_and_tried_again(papers, tmp_path, monkeypatch):
    lake = Lake(tmp_path / "lake")
    measure = prs1997.measure_run

    def fails(point, seed, precision):
        if point.propagation == 3 and seed == 2:
            raise RuntimeError("boom")
        return measure(point, seed, precision)

    monkeypatch.setattr(prs1997, "measure_run", fails)
    (result,) = reproduce(lake, [request(papers)], None)
    assert [line.partition(": ")[2] for line in result.failed] == ["RuntimeError: boom"]
    monkeypatch.setattr(prs1997, "measure_run", measure)
    (result,) = reproduce(lake, [request(papers)], None)
    assert (result.failed, result.finished_before) == ((), 5)


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (["nobody1999"], "no paper 'nobody1999'"),
        (["prs1997/figure77"], "no exhibit 'figure77'"),
        (["prs1997", "--scale", "huge"], "expected quick or paper, got 'huge'"),
        (["drift2006"], "no claims of drift2006"),
    ],
)
def test_bad_input_prints_one_line(papers, tmp_path, capsys, arguments, expected_text):
    scale = [] if "--scale" in arguments else ["--scale", "quick"]
    assert main(["reproduce", *arguments, *scale, "--papers", str(papers), "--lake", str(tmp_path / "l")]) == 2
    error = capsys.readouterr().err
    assert expected_text in error
    assert error.count("\n") == 1


@pytest.mark.spark
def test_spark_gives_the_same_tables_as_this_process(session, papers, tmp_path):
    here, there = Lake(tmp_path / "here"), Lake(tmp_path / "there")
    reproduce(here, [request(papers)], None)
    reproduce(there, [request(papers)], session)
    assert same(here) == same(there)


@pytest.mark.long
@pytest.mark.spark
def test_the_same_table_on_two_local_cores_and_on_a_standalone_cluster(papers, tmp_path):
    """Each in a process of its own: a process has one session."""
    with Cluster(tmp_path / "cluster") as cluster:
        for name, master in (("local", "local[2]"), ("standalone", cluster.url)):
            assert _typed(papers, tmp_path / name, master).returncode == 1, "a claim is missed"
    assert same(Lake(tmp_path / "local")) == same(Lake(tmp_path / "standalone"))


@pytest.mark.long
@pytest.mark.spark
def test_after_a_kill_no_finished_unit_is_run_again(papers, tmp_path):
    lake = Lake(tmp_path / "lake")
    process = subprocess.Popen(_command(papers, lake.root, "local[2]"), start_new_session=True)
    try:
        until = time.monotonic() + 300
        while len(lake.facts("units")) < 2:
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        kill_tree(process.pid)
        process.wait(60)
    before = {name: bytes(fact.raw) for name, fact in lake.facts("units").items()}
    assert len(before) >= 2
    found = _typed(papers, lake.root, "local[2]", "--json")
    printed = json.loads(found.stdout)[0]
    assert (printed["units"], printed["finished_before"]) == (6, len(before))
    after = lake.facts("units")
    assert {name: bytes(after[name].raw) for name in before} == before


def _command(papers, lake, master, *more):
    where = ["--papers", str(papers), "--lake", str(lake), "--master", master]
    return [sys.executable, "-m", "precede", "reproduce", "prs1997", "--scale", "quick", *where, *more]


def _typed(papers, lake, master, *more):
    return subprocess.run(
        _command(papers, lake, master, *more), capture_output=True, text=True, timeout=300, check=False
    )
