"""The contacts job: the same file for any number of slices and workers, resumable, never partial."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precede.cli import main
from precede.core.natural_order import natural
from precede.lake.layout import Lake
from precede.lake.schemas import SEGMENTS
from precede.pipeline.mobility import contacts as job
from precede.pipeline.mobility.contacts import compute_contacts, segments_of
from precede.pipeline.sessions.frames import read_frame
from precede.traces.kernel import find_contacts


def walk(lake, trace="walk", nodes=30, legs=40, seed=3):
    """Write a random walk of `nodes` nodes in a square to the lake's `segments`."""
    random = np.random.default_rng(seed)
    rows = []
    for node in range(nodes):
        instants = np.cumsum(random.integers(1_000_000, 20_000_000, legs + 1))
        x, y = random.uniform(0, 300, (2, legs + 1))
        for leg in range(legs):
            rows.append(
                {
                    "trace": trace,
                    "node": f"n{node}",
                    "t0_us": int(instants[leg]),
                    "x0": x[leg],
                    "y0": y[leg],
                    "t1_us": int(instants[leg + 1]),
                    "x1": x[leg + 1],
                    "y1": y[leg + 1],
                }
            )
    rows.sort(key=lambda row: row["t0_us"])
    table = pa.Table.from_pylist(rows, schema=SEGMENTS.arrow())
    with lake.job("make").hold() as made:
        made.write("segments", trace, table)
    return table


def expected(table, range_m):
    names = sorted(set(table["node"].to_pylist()), key=natural)
    found = find_contacts(segments_of(table, names), range_m)
    return [(names[a], names[b], int(s), int(e)) for a, b, s, e in zip(*found, strict=True)]


def rows_of(path):
    table = pq.read_table(path)
    return list(zip(*(table[name].to_pylist() for name in ("a", "b", "start_us", "end_us")), strict=True))


@pytest.mark.spark
def test_any_number_of_slices_and_workers_gives_the_same_bytes(session, tmp_path):
    files = []
    for number, (slices, spark) in enumerate([(1, None), (7, None), (9, session)]):
        lake = Lake(tmp_path / f"a läke [{number}]")
        table = walk(lake)
        found = compute_contacts(lake, "walk", 25.0, spark, slices)
        files.append(lake.path("contacts", "walk@25m").read_bytes())
        assert rows_of(found.file) == expected(table, 25.0)
        assert (found.nodes, found.segments, found.contacts) == (30, 1200, len(expected(table, 25.0)))
        assert found.contacts > 500
    assert len(set(files)) == 1


@pytest.mark.spark
def test_the_table_is_read_by_spark_pandas_and_duckdb(session, tmp_path):
    lake = Lake(tmp_path / "some lake")
    walk(lake)
    compute_contacts(lake, "walk", 25.0)
    compute_contacts(lake, "walk", 12.5)
    rows = len(rows_of(lake.path("contacts", "walk@25m"))) + len(rows_of(lake.path("contacts", "walk@12.5m")))
    assert read_frame(session, lake, "contacts").count() == rows
    assert read_frame(session, lake, "contacts").columns == ["trace", "a", "b", "start_us", "end_us", "range_m"]
    assert read_frame(session, lake, "contacts", ["walk@12.5m"]).where("range_m = 12.5").count() < rows
    assert read_frame(session, lake, "runs").count() == 0
    import duckdb
    import pandas

    assert len(pandas.read_parquet(tmp_path / "some lake" / "contacts")) == rows
    found = duckdb.sql(f"select count(*) from '{tmp_path}/some lake/contacts/*.parquet'").fetchall()
    assert found == [(rows,)]


def test_a_finished_slice_is_not_computed_again_after_a_kill(tmp_path, monkeypatch):
    lake = Lake(tmp_path)
    table = walk(lake)
    swept = []

    def until_killed(segments, range_m, begin, end):
        if len(swept) == 4:
            raise KeyboardInterrupt
        swept.append(begin)
        return find_contacts(segments, range_m, begin, end)

    monkeypatch.setattr(job, "find_contacts", until_killed)
    with pytest.raises(KeyboardInterrupt):
        compute_contacts(lake, "walk", 25.0, slices=10)
    assert not lake.has("contacts", "walk@25m")
    monkeypatch.setattr(
        job, "find_contacts", lambda *arguments: swept.append(arguments[2]) or find_contacts(*arguments)
    )
    found = compute_contacts(lake, "walk", 25.0, slices=10)
    assert len(swept) == len(set(swept)) == 10
    assert rows_of(found.file) == expected(table, 25.0)
    assert compute_contacts(lake, "walk", 25.0, slices=10) == found
    assert len(swept) == 10
    table = walk(lake, seed=4)
    assert rows_of(compute_contacts(lake, "walk", 25.0, slices=3).file) == expected(table, 25.0)
    assert len(swept) == 13


def test_many_pieces_are_merged_share_by_share(tmp_path, monkeypatch):
    lake = Lake(tmp_path)
    table = walk(lake)
    monkeypatch.setattr(job, "_PIECES_A_MERGE", 50)
    assert rows_of(compute_contacts(lake, "walk", 25.0, slices=10).file) == expected(table, 25.0)


def test_a_single_node_and_an_empty_trace_have_no_contacts(tmp_path):
    lake = Lake(tmp_path)
    walk(lake, nodes=1)
    assert compute_contacts(lake, "walk", 25.0).contacts == 0
    with lake.job("make").hold() as made:
        made.write("segments", "nobody", SEGMENTS.arrow().empty_table())
    assert compute_contacts(lake, "nobody", 25.0).contacts == 0


def test_bad_calls_print_one_line_and_leave_the_lake_unchanged(tmp_path, capsys):
    lake = tmp_path / "lake"
    assert main(["contacts", "ghost", "--range", "10", "--lake", str(lake)]) == 2
    assert "no trace 'ghost'" in capsys.readouterr().err
    assert not lake.exists()
    walk(Lake(lake))
    before = sorted(lake.rglob("*"))
    for arguments, expected_error in [
        (["walk", "--range", "-1"], "positive number of metres"),
        (["walk", "--range", "nan"], "positive number of metres"),
        (["walk", "--range", "many"], "--range"),
        (["walk"], "--range"),
        (["wolk", "--range", "10"], "traces with movement: walk"),
        (["../walk", "--range", "10"], "not a name"),
        (["walk", "--range", "10", "--master", "sparky"], "no such master"),
        (["walk", "--range", "10", "--master", "local[1]", "--conf", "x"], "--conf 'x'"),
    ]:
        assert main(["contacts", *arguments, "--lake", str(lake)]) == 2
        error = capsys.readouterr().err
        assert expected_error in error
        assert error.count("\n") == 1
    assert sorted(lake.rglob("*")) == before
    assert main(["contacts", "walk", "--range", "10", "--lake", "s3://"]) == 2
    assert main(["contacts", "walk", "--range", "10", "--lake", "nowhere://bucket/lake"]) == 2


def test_the_command_prints_its_result_and_the_file(tmp_path, capsys):
    walk(Lake(tmp_path))
    assert main(["contacts", "walk", "--range", "25", "--lake", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "30 nodes in 1,200 segments" in printed
    assert str(Lake(tmp_path).path("contacts", "walk@25m")) in printed


def crowd(lake, trace, segments, nodes, side):
    """Write a trace in which `nodes` nodes stand still in a square, each in pieces of one second."""
    random = np.random.default_rng(1)
    node, second = np.divmod(np.arange(segments), segments // nodes)
    x, y = random.uniform(0, side, (2, nodes))
    columns = {
        "trace": pa.repeat(trace, segments),
        "node": pa.array([f"n{number}" for number in range(nodes)]).take(pa.array(node)),
        **{"t0_us": second * 1_000_000, "x0": x[node], "y0": y[node]},
        **{"t1_us": (second + 1) * 1_000_000, "x1": x[node], "y1": y[node]},
    }
    with lake.job("make").hold() as made:
        made.write("segments", trace, pa.table(columns, schema=SEGMENTS.arrow()))


def test_work_decides_for_spark_and_not_the_number_of_segments(tmp_path):
    lake = Lake(tmp_path / "lake")
    crowd(lake, "scattered", 400_000, 200, side=20_000.0)
    crowd(lake, "dense", 400_000, 2_000, side=100.0)
    assert job.estimate_cpu_s(lake, "scattered", 50.0) < 1 < job.SPARK_PAYS_S
    assert job.estimate_cpu_s(lake, "dense", 50.0) > job.SPARK_PAYS_S
