"""Packs and compaction: the rows of every run stay, files become few, damage in a pack is found."""

from __future__ import annotations

import os
import random
import shutil
import time

import pytest

from precede.cli import main
from precede.eventlog import sinks
from precede.experiments.grid import read_grid
from precede.experiments.run import carry_out_into
from precede.lake.commits import RUNS, Damaged
from precede.lake.compaction import compact
from precede.lake.integrity import find_damage
from precede.lake.layout import Lake
from precede.pipeline.sweeps import simulate
from precede.pipeline.sweeps.marks import Marks, SweepOptions
from precede.pipeline.sweeps.sweep import sweep
from tests.lake.test_integrity import SCENARIO, flip

SPEC = '[sweep]\nscenario = "short.toml"\nprotocol = ["vector_clock", "unordered"]\nseeds = {seeds}\n'


def make_grid(folder, seeds):
    (folder / "short.toml").write_text(SCENARIO)
    (folder / f"spec{seeds}.toml").write_text(SPEC.format(seeds=seeds))
    return read_grid(folder / f"spec{seeds}.toml")


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A lake whose first runs have files of their own, while later runs share files; and its grid."""
    folder = tmp_path_factory.mktemp("packed")
    lake, grid = Lake(folder / "lake"), make_grid(folder, 6)
    sweep(lake, make_grid(folder, 2), None)
    sweep(lake, grid, None)
    return lake, grid


def rows_of(lake, grid):
    lake = lake.snapshot()
    return {
        (table, point.id): lake.read(table, point.id).to_pylist()
        for table in ("events", "gauges")
        for point in grid.points
    }


def copy_of(lake, folder):
    shutil.copytree(lake.root, folder)
    return Lake(folder)


def test_short_runs_share_files_and_have_the_rows_of_single_ones(packed, tmp_path):
    lake, grid = packed
    assert len(lake.storage.entries("events")) == 5
    assert len(lake.units("events")) == len(grid.points) == 12
    found = rows_of(lake, grid)
    for point in grid.points[:1] + grid.points[-1:]:
        carry_out_into(point.run, tmp_path / point.id)
        alone = Lake(tmp_path / point.id)
        shutil.copytree(tmp_path / point.id, tmp_path / "foreign" / "events", dirs_exist_ok=True)
        rows = Lake(tmp_path / "foreign").read("events", "events").to_pylist()
        assert found["events", point.id] == rows
        assert alone.units("events") == []


def test_a_pack_has_the_same_rows_from_memory_and_from_files(packed, tmp_path, monkeypatch):
    lake, grid = packed
    mixed = Lake(tmp_path / "lake")
    with mixed.job("mixed").hold() as job:
        pack = simulate.Pack(job)
        for number, point in enumerate(grid.points):
            monkeypatch.setattr(sinks, "HELD_ROWS", 0 if number % 2 else 5_000)
            rows = sinks.HeldSink(tmp_path / point.id)
            simulate.carry_out(point.run, rows)
            rows.close()
            assert (tmp_path / point.id).is_dir() == bool(number % 2)
            pack.add(point.id, {"status": "finished"}, rows)
        pack.commit()
    assert rows_of(mixed, grid) == rows_of(lake, grid)
    assert not [point for point in grid.points if (tmp_path / point.id).exists()]


def test_compaction_keeps_every_row_and_mark_and_leaves_few_files(packed, tmp_path, capsys):
    lake, grid = copy_of(packed[0], tmp_path / "lake"), packed[1]
    before = rows_of(lake, grid)
    marks = {run_id: bytes(fact.raw) for run_id, fact in lake.facts(RUNS).items()}
    (lake.root / "events" / "left~0123.parquet").write_bytes(b"half of a file")
    attempt = lake.root / "_jobs" / "old" / "attempt-1"
    (attempt / "work").mkdir(parents=True)
    (attempt / "file").touch()
    reader = lake.snapshot()
    assert reader.units("events")
    assert main(["lake", "compact", "--lake", lake.location, "--json"]) == 0
    assert '"leftovers": 0' in capsys.readouterr().out
    os.utime(lake.root / "events" / "left~0123.parquet", (0, 0))
    os.utime(attempt / "file", (0, 0))
    assert main(["lake", "compact", "--lake", lake.location, "--older-than", "1h"]) == 0
    assert "2 leftovers removed" in capsys.readouterr().out
    assert not attempt.exists()
    assert len(lake.storage.entries("events")) == len(lake.storage.entries("_commits/runs")) == 2
    assert rows_of(lake, grid) == before
    assert rows_of(reader, grid) == before, "a reader that began before"
    assert {run_id: bytes(fact.raw) for run_id, fact in lake.facts(RUNS).items()} == marks
    assert not list(find_damage(lake.storage))
    assert main(["verify", f"{lake.location}/events", "--by", "run_id"]) == 1, "unordered violates causal order"
    assert sweep(lake, grid, None).finished_before == 12
    assert main(["lake", "compact", "--lake", lake.location, "--older-than", "soon"]) == 2
    assert main(["lake", "compact", "--lake", str(tmp_path / "nowhere")]) == 2


def test_a_repeated_run_replaces_its_rows_in_a_pack(packed, tmp_path, monkeypatch):
    lake, grid = copy_of(packed[0], tmp_path / "lake"), packed[1]
    before, run_id = rows_of(lake, grid), grid.points[-1].id
    mark = Marks(lake).read(run_id) | {"version": "0.0.1"}
    lake.job("forging").commit(RUNS, "forged", facts={run_id: mark})
    ran = []

    def noted(run, sink):
        ran.append(run.id)
        return carry_out(run, sink)

    carry_out = simulate.carry_out
    monkeypatch.setattr(simulate, "carry_out", noted)
    sweep(lake, grid, None, SweepOptions())
    assert ran == [run_id]
    assert rows_of(lake, grid) == before
    files = [file for key in lake.index(RUNS).keys for file in lake.commits.content(key).files]
    assert sum(run_id in file.units for file in files if file.table == "events") == 1
    assert main(["verify", f"{lake.location}/events", "--by", "run_id"]) == 1
    assert not list(find_damage(lake.storage))


def check_flips(packed, folder, count):
    """Flip one random bit of a random file or record: no reader takes a run from it."""
    lake, grid = copy_of(packed[0], folder), packed[1]
    with lake.job("compact").hold() as job:
        compact(job)
    generator = random.Random(5)
    files = sorted([*lake.root.glob("[eg]*/*.parquet"), *lake.root.glob("_commits/runs/*")])
    for _ in range(count):
        path = generator.choice(files)
        content = path.read_bytes()
        flip(path, generator.randrange(8 * len(content)))
        assert next(finding.path for finding in find_damage(lake.storage)) == str(path.relative_to(lake.root))
        fresh = Lake(lake.location)
        if path.parent.name != "runs":
            point = next(p for p in grid.points if fresh.path(path.parent.name, p.id) == path)
            with pytest.raises(Damaged, match=path.stem):
                fresh.read(path.parent.name, point.id)
        if path.parent.name != "gauges":
            assert main(["verify", f"{lake.location}/events", "--by", "run_id"]) == 2
        path.write_bytes(content)
        time.sleep(0.001)  # a file that was compared is compared again when its time of change differs
    assert not list(find_damage(lake.storage))


def test_no_flipped_bit_in_a_pack_gives_a_verdict(packed, tmp_path, capsys):
    check_flips(packed, tmp_path / "lake", 12)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_none_of_500_flipped_bits_in_packs_gives_a_verdict(packed, tmp_path, capsys):
    check_flips(packed, tmp_path / "lake", 500)
