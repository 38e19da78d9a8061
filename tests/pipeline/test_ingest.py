"""Trace files into the lake: every row is counted; a bad file leaves the lake unchanged."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from precede.cli import main
from precede.core.errors import BadInput
from precede.lake.layout import Lake
from precede.lake.schemas import TABLES
from precede.pipeline.mobility import ingest as module
from precede.pipeline.mobility.contacts import compute_contacts
from precede.pipeline.mobility.ingest import ingest, sources_of
from precede.pipeline.sessions.frames import read_frame

DATA = Path(os.environ.get("PRECEDE_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no real traces at {DATA} (set PRECEDE_DATA)")

POSITIONS = "node,time,x,y\n" + "".join(
    f"{node},{second},{10 * node + second},{node}\n" for node in (1, 2, 10) for second in range(8)
)
DIRTY = "a,b,start,end\n1,2,0,10\n1,2,5,20\n3,3,1,2\n2,1,40,30\n2,10,oops,4\n10,9,3,9\n"


def tree(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def rows(lake, table, unit):
    return lake.read(table, unit).to_pylist()


def test_a_contact_list_with_errors_is_merged_and_rejected_row_by_row(tmp_path, capsys):
    file = tmp_path / "some contacts.csv"
    file.write_text(DIRTY)
    assert main(["ingest", str(file), "--as", "contacts", "--lake", str(tmp_path / "lake")]) == 0
    output = capsys.readouterr().out
    assert "6 rows read = 3 kept + 3 rejected" in output
    lake = Lake(tmp_path / "lake")
    kept = [
        (row["a"], row["b"], row["start_us"], row["end_us"]) for row in rows(lake, "contacts", "some-contacts")
    ]
    assert kept == [("1", "2", 0, 20_000_000), ("9", "10", 3_000_000, 9_000_000)]
    rejects = rows(lake, "rejects", "some-contacts")
    assert [(row["file"], row["line"]) for row in rejects] == [("some contacts.csv", n) for n in (4, 5, 6)]
    assert all(row["reason"] for row in rejects)
    assert pq.read_schema(lake.path("rejects", "some-contacts")).names == TABLES["rejects"].names()


def test_an_unchanged_file_is_not_read_again_and_a_changed_one_replaces_all_tables(
    tmp_path, capsys, monkeypatch
):
    file = tmp_path / "p.csv"
    file.write_text(POSITIONS)
    call = ["ingest", str(file), "--as", "positions", "--lake", str(tmp_path / "lake")]
    lake = Lake(tmp_path / "lake")
    assert main(call) == 0
    compute_contacts(lake, "p", 30.0)
    before, state = tree(lake.root), lake.state("segments", "p")
    with monkeypatch.context() as patch:
        patch.setattr(module._Staging, "read", None)
        assert main(call) == 0
    assert "it was not read again" in capsys.readouterr().out
    assert tree(lake.root) == before
    file.write_text(POSITIONS.replace("10,7,", "10,7.5,"))
    assert main(call) == 0
    assert lake.units("contacts") == []
    assert lake.state("segments", "p") != state
    (tmp_path / "q.csv").write_text(DIRTY)
    assert main(["ingest", str(tmp_path / "q.csv"), "--as", "contacts", "--name", "p", *call[4:]]) == 0
    assert lake.units("segments") == []
    assert lake.units("contacts") == ["p"]


def test_segments_are_sorted_by_time_in_any_number_of_shares(tmp_path, monkeypatch):
    file = tmp_path / "p.csv"
    file.write_text(POSITIONS)
    whole = Lake(tmp_path / "whole")
    ingest(whole, sources_of([file], "positions"))
    monkeypatch.setattr(module, "_ROWS_IN_MEMORY", 5)
    shares = Lake(tmp_path / "shares")
    ingest(shares, sources_of([file], "positions"))
    assert shares.path("segments", "p").read_bytes() == whole.path("segments", "p").read_bytes()
    begins = [row["t0_us"] for row in rows(shares, "segments", "p")]
    assert begins == sorted(begins)
    assert len(begins) == 21


def test_messages_become_a_workload(tmp_path):
    file = tmp_path / "events.txt"
    file.write_text("0 CONN 1 2 up\n5 C M2 1 2 100\n4.5 C M1 2 1 70\n9 CONN 1 2 down\n")
    lake = Lake(tmp_path / "lake")
    (made,) = ingest(lake, sources_of([file], "one"))
    assert Path(made.tables["messages"]).read_text() == "id,src,dst,time,size\nM1,2,1,4.5,70\nM2,1,2,5,100\n"
    assert made.summary.rows_read == made.summary.rows_kept == 4


def zipped(**tables):
    """A zip of text files, as bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, text in tables.items():
            file.writestr(f"{name}.txt", text)
    return made.getvalue()


FORMATS = ("gps", "positions", "ns2", "walkers", "one", "tij", "contacts", "gtfs")
FEED = ("stops", "trips", "stop_times", "calendar", "routes")
BAD = {
    **{f"empty.{format}": (b"", format) for format in FORMATS},
    **{f"binary.{format}": (bytes(range(256)) * 40, format) for format in FORMATS},
    **{f"noise.{format}": (b"lorem ipsum, dolor; sit\namet\n", format) for format in FORMATS},
    "without-the-tables.zip": (zipped(readme="nothing here"), "gtfs"),
    "tables-without-rows.zip": (zipped(**dict.fromkeys(FEED, "trip_id,stop_id,service_id\n")), "gtfs"),
    "header-alone-contacts.csv": (b"a,b,start,end\n", "contacts"),
    "header-alone-positions.csv": (b"node,time,x,y\n", "positions"),
    "header-alone-gps.csv": (b"id,unix_time,latitude,longitude\n", "gps"),
    "positions-as-ns2.csv": (POSITIONS.encode(), "ns2"),
    "positions-as-gps.csv": (POSITIONS.encode(), "gps"),
    "ns2-as-positions.tcl": (b"$node_(0) set X_ 1.0\n$node_(0) set Y_ 1.0\n", "positions"),
    "positions-as-nothing-known.csv": (POSITIONS.encode(), "kml"),
    "cut.csv.gz": (gzip.compress(POSITIONS.encode() * 50)[:90], "positions"),
    "folder": (None, "positions"),
    "nowhere.csv": (None, "positions"),
}
"""File name, contents and format: no file has the format."""


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_prints_one_line_exits_with_2_and_leaves_the_lake_unchanged(tmp_path, capsys, name):
    content, format = BAD[name]
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    (tmp_path / "p.csv").write_text(POSITIONS)
    for lake in (tmp_path / "no lake yet", tmp_path / "a lake"):
        if lake.name == "a lake":
            assert main(["ingest", str(tmp_path / "p.csv"), "--as", "positions", "--lake", str(lake)]) == 0
        before = tree(lake)
        capsys.readouterr()
        code = main(["ingest", str(path), "--as", format, "--lake", str(lake), "--name", "p"])
        error = capsys.readouterr().err
        assert (code, error.count("\n")) == (2, 1), error
        assert tree(lake) == before
    assert not (tmp_path / "no lake yet").exists()


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (["p.csv", "--as", "positions", "--gap", "soon"], "--gap"),
        (["p.csv", "--as", "positions", "--date", "2016-01-01"], "--date: not an option"),
        (["p.csv", "--as", "positions", "--name", "a/b"], "not a name"),
        (["p.csv", "--as", "positions", "--name", "bus@home"], "an @ separates a trace"),
        (["p.csv", "p.csv", "--as", "positions"], "two files would both be the trace 'p'"),
        (["p.csv", "q.csv", "--as", "positions", "--name", "x"], "for one file"),
        (["p.csv"], "--as"),
    ],
)
def test_bad_calls_print_one_line(tmp_path, capsys, monkeypatch, arguments, expected_text):
    monkeypatch.chdir(tmp_path)
    for name in ("p.csv", "q.csv"):
        Path(name).write_text(POSITIONS)
    assert main(["ingest", *arguments]) == 2
    error = capsys.readouterr().err
    assert expected_text in error
    assert error.count("\n") == 1
    assert not Path("lake").exists()


@pytest.mark.long
@pytest.mark.spark
def test_several_files_are_read_on_spark_all_or_none_of_them(session, tmp_path):
    lake = Lake(tmp_path / "lake")
    good = [tmp_path / f"g{number}.csv" for number in range(3)]
    for number, file in enumerate(good):
        file.write_text(POSITIONS.replace("\n1,", f"\n{number + 20},"))
    bad = tmp_path / "bad.csv"
    bad.write_text("nothing\n")
    with pytest.raises(BadInput, match=r"bad\.csv"):
        ingest(lake, sources_of([*good, bad], "positions"), session)
    assert not lake.root.exists()
    made = ingest(lake, sources_of(good, "positions"), session)
    alone = Lake(tmp_path / "alone")
    assert [one.summary for one in ingest(alone, sources_of(good, "positions"))] == [
        one.summary for one in made
    ]
    for number in range(3):
        there, here = (place.path("segments", f"g{number}").read_bytes() for place in (lake, alone))
        assert there == here
    assert read_frame(session, lake, "segments").count() == 63


@needs_data
def test_the_real_files_give_the_published_figures(tmp_path):
    lake = Lake(tmp_path / "lake")

    def take(path, format, name, **options):
        source = sources_of([DATA / path], format, name, module.Options(**options))
        (made,) = ingest(lake, source)
        assert made.summary.rows_read == made.summary.rows_kept + made.summary.rows_rejected
        rejected = len(rows(lake, "rejects", name)) if lake.has("rejects", name) else 0
        assert rejected == made.summary.rows_rejected
        return made.summary

    hospital = take("sociopatterns_hospital/tij_hospital.dat.gz", "tij", "hospital")
    assert (hospital.nodes, hospital.contacts) == (75, 14_037)
    assert len(rows(lake, "contacts", "hospital")) == 14_037
    taxis = take("cabspotting_60cabs_1day/cabspotting_20080521_60cabs.csv.gz", "gps", "taxis")
    assert (taxis.nodes, taxis.rows_read) == (60, 53_441)
    bus = take("gtfs_wta_bellingham_2016/wta_gtfs_20160920.zip", "gtfs", "bus", date="2016-09-19")
    assert (bus.nodes, bus.facts["trips"]) == (63, "848")
    dirty = take("gtfs_wta_bellingham_2019_dirty/wta_gtfs_20191004.zip", "gtfs", "dirty")
    assert dirty.rows_rejected == 1
    (stop,) = rows(lake, "rejects", "dirty")
    assert stop["file"] == "wta_gtfs_20191004.zip/stops.txt"
    assert "far outside" in stop["reason"]
    assert dirty.nodes > 60
    corridor = {"framerate": 16.0, "scale": 0.01, "columns": "id,frame,x,y,z"}
    for name, path, options, people, points in [
        ("students", "ucy_students03/obsmat.txt.gz", {}, 428, 21_846),
        ("corridor", "pedpy_juelich/uo-050-180-180.txt.gz", corridor, 61, 9_712),
        ("bottleneck", "pedpy_juelich/040_c_56_h-.txt.gz", {}, 75, 63_110),
    ]:
        summary = take(path, "positions", name, **options)
        assert (summary.nodes, summary.rows_read) == (people, points)
        assert len({row["node"] for row in rows(lake, "segments", name)}) == people


def test_a_scenario_can_use_a_trace_in_the_lake(tmp_path):
    from precede.experiments.grid import read_grid
    from precede.experiments.run import build_world
    from precede.lake.stored_contacts import read_stored_contacts

    late = "node,time,x,y\n" + "".join(
        f"{node},{second + 1_000_000 + node},{node + second},0\n" for node in (1, 2, 30) for second in range(9)
    )
    (tmp_path / "p.csv").write_text(late)
    lake = Lake(tmp_path / "some lake")
    ingest(lake, sources_of([tmp_path / "p.csv"], "positions"))
    scenario, spec = tmp_path / "s.toml", tmp_path / "spec.toml"
    scenario.write_text(
        '[world]\nkind = "contacts"\ntrace = "p"\n[workload]\nevery = "3s"\n'
        '[run]\nprotocol = "causal_barrier"\n'
    )
    spec.write_text('[sweep]\nscenario = "s.toml"\nprotocol = "causal_barrier"\nseeds = 2\n')
    with pytest.raises(BadInput, match="precede contacts p --range"):
        read_grid(spec, lake.root)
    compute_contacts(lake, "p", 5.0)
    grid = read_grid(spec, lake.root)
    world = build_world(grid.points[0].run)
    assert world.names == ("1", "2", "30")
    assert [(stay.node, stay.enter, stay.leave) for stay in world.presence] == [
        (0, 0, 8_000_000), (1, 1_000_000, 9_000_000), (2, 29_000_000, 37_000_000),
    ]  # fmt: skip
    assert read_stored_contacts(lake, "p").rows().__next__()[:2] == ("1", "2")
    moved = Lake(tmp_path / "elsewhere")
    lake.root.rename(moved.root)
    assert read_grid(spec, moved.root).points[0].id == grid.points[0].id
    compute_contacts(moved, "p", 2.0)
    with pytest.raises(BadInput, match=r"several ranges: say which \(range = one of 2, 5\)"):
        read_grid(spec, moved.root)
    (spec).write_text((spec).read_text() + '[grid]\n"world.range" = [2, 5]\n')
    assert len(read_grid(spec, moved.root).points) == 4


def test_the_name_of_a_trace_in_the_lake_is_a_scenario(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text(POSITIONS)
    assert main(["ingest", "p.csv", "--as", "positions", "--name", "walk"]) == 0
    assert main(["simulate", "walk", "--protocol", "causal_barrier"]) == 2
    assert "precede contacts walk --range" in capsys.readouterr().err
    assert main(["contacts", "walk", "--range", "15"]) == 0
    call = ["simulate", "walk", "--protocol", "causal_barrier", "--set", "every=2s", "--set", "first=0s"]
    assert main([*call, "--out", "out", "--json"]) == 0
    measures = json.loads(capsys.readouterr().out.split("\n", 2)[2])
    assert (measures["nodes"], measures["end_us"]) == (3, 7_000_000)
    assert measures["deliveries"] > measures["own_deliveries"] > 0
    assert main(["simulate", "wolk", "--protocol", "causal_barrier"]) == 2
    assert "nor a trace in lake" in capsys.readouterr().err
