"""A lake in an object store has the rows of a lake in a folder; damage is found there too."""

from __future__ import annotations

import os
import pickle

import pytest

from precede.cli import main
from precede.core.errors import BadInput, Unavailable
from precede.experiments.grid import read_grid
from precede.lake.commits import Damaged
from precede.lake.compaction import compact
from precede.lake.integrity import find_damage, forget_copies
from precede.lake.layout import Lake
from precede.lake.storage import Storage
from precede.pipeline.sweeps.sweep import sweep
from tests.lake.object_store import BUCKET, object_store

WALK = "node,time,x,y\n" + "".join(
    f"{node},{second},{10 * node + second * (node - 2)},{node}\n" for node in (1, 2, 3) for second in range(30)
)
SCENARIO = """
[world]
kind = "contacts"
trace = "walk"
[workload]
every = "3s"
[run]
protocol = "causal_barrier"
"""
SPEC = '[sweep]\nscenario = "walk.toml"\nprotocol = ["causal_barrier", "unordered"]\nseeds = 2\n'
TABLES = ("segments", "contacts", "runs", "events", "gauges", "verdicts", "measures", "differences")
TIMES = {"cpu_s", "attempt", "worker", "finished_at"}


@pytest.fixture(scope="module")
def store():
    with object_store() as endpoint:
        yield endpoint


def write_inputs(folder):
    (folder / "walk.csv").write_text(WALK)
    (folder / "walk.toml").write_text(SCENARIO)
    (folder / "spec.toml").write_text(SPEC)


def rows_of(location):
    """Every row of a lake but for times and workers, by table and unit."""
    lake = Lake(location).snapshot()
    found = {}
    for table in TABLES:
        for unit in lake.units(table):
            rows = lake.read(table, unit).to_pylist()
            found[table, unit] = [{k: v for k, v in row.items() if k not in TIMES} for row in rows]
    for row in found["runs", "spec"]:
        del row["description"]  # it has the location of the lake
    return found


def pipeline(folder, location, capsys):
    """Ingest, contacts, sweep in this process, verify and report; returns what verify printed."""
    lake = ["--lake", location]
    assert main(["ingest", str(folder / "walk.csv"), "--as", "positions", *lake]) == 0
    assert main(["contacts", "walk", "--range", "12", *lake]) == 0
    summary = sweep(Lake(location), read_grid(folder / "spec.toml", location), None)
    assert (summary.runs, summary.failed) == (4, 0)
    capsys.readouterr()
    code = main(["verify", f"{location}/events", "--by", "run_id"])
    verdict = capsys.readouterr().out.replace(location, "LAKE")
    assert main(["report", *lake, "--out", str(folder / "site"), "--events", "50"]) == 0
    pages = {path.name for path in (folder / "site").rglob("*.html")}
    return code, verdict, pages


def test_the_pipeline_gives_the_rows_of_a_folder(store, tmp_path, capsys):
    write_inputs(tmp_path)
    folder, url = str(tmp_path / "lake"), f"{BUCKET}/pipeline"
    here = pipeline(tmp_path, folder, capsys)
    there = pipeline(tmp_path, url, capsys)
    assert there == here
    assert "holds" in here[1]
    before = rows_of(folder)
    assert {table for table, _ in before} == {*TABLES}
    assert rows_of(url) == before
    assert Storage(url).walk("_jobs") == []
    assert main(["ingest", str(tmp_path / "walk.csv"), "--as", "positions", "--lake", url]) == 0
    assert "not read again" in capsys.readouterr().out
    again = sweep(Lake(url), read_grid(tmp_path / "spec.toml", url), None)
    assert again.finished_before == 4
    with Lake(url).job("compact").hold() as job:
        compacted = compact(job)
    assert compacted.files < compacted.files_before
    assert rows_of(url) == before
    assert main(["lake", "check", "--lake", url]) == 0


def test_a_damaged_object_is_named_and_never_read(store):
    lake = Lake(f"{BUCKET}/damaged")
    from precede.lake.schemas import SEGMENTS

    with lake.job("make").hold() as job:
        job.write("segments", "walk", SEGMENTS.arrow().empty_table())
    assert lake.read("segments", "walk").num_rows == 0
    (entry,) = lake.storage.entries("segments")
    content = bytearray(lake.storage.read(f"segments/{entry.name}"))
    content[30] ^= 1
    lake.storage.put(f"segments/{entry.name}", bytes(content))
    forget_copies()
    with pytest.raises(Damaged, match="walk~"):
        Lake(lake.location).read("segments", "walk")
    assert [finding.path for finding in find_damage(lake.storage)] == [f"segments/{entry.name}"]
    lake.storage.delete(f"segments/{entry.name}")
    forget_copies()
    with pytest.raises(Damaged, match="missing"):
        Lake(lake.location).read("segments", "walk")


def test_credentials_are_not_pickled_and_errors_are_one_line(store, monkeypatch, capsys):
    lake = Lake(f"{BUCKET}/some")
    assert os.environ["AWS_SECRET_ACCESS_KEY"].encode() not in pickle.dumps(lake)
    assert main(["report", "--lake", f"{BUCKET}/nothing", "--out", "site"]) == 2
    assert main(["verify", f"{BUCKET}/nothing/events"]) == 2
    assert capsys.readouterr().err.count("\n") == 2
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(Unavailable):
        Lake(f"{BUCKET}/some").units("runs")
    with pytest.raises(BadInput, match="expected s3://BUCKET/PATH"):
        Lake("s3://")
