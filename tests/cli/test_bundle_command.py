"""`precede bundle`: a folder that stands alone and gives the same log, to the byte."""

from __future__ import annotations

import json

import pytest

from precede.cli import main
from precede.experiments.bundle import digest, read_run, scenario_text
from precede.experiments.scenario import read_scenario
from precede.lake.layout import Lake
from precede.pipeline.reproduction.reproduce import reproduce
from precede.reproduction.request import Request
from precede.reproduction.units import PAPERS, find_paper

CONTACTS = "a,b,start,end\nx,y,1,9\ny,z,5,20\n"
SCENARIO = """
[world]
kind = "contacts"
contacts = "meetings.csv"
overhead = "100ms"
[workload]
every = "2s"
until = "15s"
[run]
protocol = "delta_causal"
options = { lifetime = "10s" }
seed = 4
"""


def test_a_bundle_is_run_again_from_its_folder_alone(tmp_path, monkeypatch, capsys):
    (tmp_path / "meetings.csv").write_text(CONTACTS)
    (tmp_path / "three.toml").write_text(SCENARIO)
    out, bundle = tmp_path / "out", tmp_path / "bundle"
    assert main(["simulate", str(tmp_path / "three.toml"), "--out", str(out)]) == 0
    assert main(["bundle", str(out), "--out", str(bundle), "--lake", str(tmp_path / "lake"), "--json"]) == 0
    told = json.loads((bundle / "bundle.json").read_text())
    assert told["verdict"]["verdict"] == "holds"
    assert told["versions"]["precede"]
    (tmp_path / "meetings.csv").unlink()
    monkeypatch.chdir(bundle)
    assert main(["simulate", "scenario.toml", "--out", "again"]) == 0
    assert digest(bundle / "again" / "events.parquet") == told["sha256"]["events.parquet"]
    assert read_run(bundle / "again" / "run.json").id == told["run_id"]
    assert "sha256sum" in (bundle / "README.md").read_text()
    capsys.readouterr()
    assert main(["bundle", str(out), "--out", str(bundle)]) == 2
    assert main(["bundle", "nothing", "--out", str(tmp_path / "b"), "--lake", str(tmp_path / "lake")]) == 2
    assert "no run 'nothing'" in capsys.readouterr().err


@pytest.mark.parametrize("key", PAPERS)
def test_the_run_of_any_experiment_written_as_a_scenario_is_the_same_run(key, tmp_path):
    from tests.reproduction.test_claims import FOLDER

    paper = find_paper(key)
    for unit in {unit.experiment: unit for unit in paper.units(FOLDER / key, "quick", ())}.values():
        for run in paper.runs(unit):
            (tmp_path / "scenario.toml").write_text(scenario_text(run))
            assert read_scenario(str(tmp_path / "scenario.toml")).id == run.id


def test_a_reproduction_is_bundled_with_its_claims(tmp_path, monkeypatch):
    from tests.pipeline.test_reproduce import CLAIMS, EXPERIMENTS
    from tests.reproduction.test_claims import FOLDER

    folder = tmp_path / "papers" / "prs1997"
    folder.mkdir(parents=True)
    (folder / "claims.toml").write_text(CLAIMS)
    (folder / "experiments.toml").write_text(EXPERIMENTS)
    lake = Lake(tmp_path / "lake")
    reproduce(lake, [Request(key="prs1997", folder=folder, scale="quick")], None)
    monkeypatch.chdir(tmp_path)
    assert FOLDER.is_dir()
    assert main(["bundle", "prs1997-quick", "--lake", str(lake.root)]) == 0
    bundle = tmp_path / "bundle" / "prs1997-quick"
    assert (bundle / "papers" / "prs1997" / "claims.toml").read_text() == CLAIMS
    assert "precede reproduce prs1997 --scale quick" in (bundle / "README.md").read_text()
    assert (bundle / "comparisons.csv").read_text().count("\n") == 5
