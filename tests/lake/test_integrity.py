"""A damaged file (truncated, emptied, exchanged, one bit flipped) is named and never gives a verdict."""

from __future__ import annotations

import random
import shutil

import pytest

from precede.cli import main
from precede.core.errors import BadInput
from precede.experiments.grid import read_grid
from precede.lake.commits import Damaged
from precede.lake.compaction import compact
from precede.lake.integrity import find_damage
from precede.lake.layout import Lake
from precede.pipeline.sweeps.marks import SweepOptions
from precede.pipeline.sweeps.results import result_blocks
from precede.pipeline.sweeps.simulate import run_sweep
from precede.witness.verify import verify

SCENARIO = """
[world]
kind = "point_to_point"
nodes = 4
delay = "exponential(0.05)"
[workload]
poisson = "1s"
until = "5s"
[run]
protocol = "vector_clock"
end = "20s"
"""
SPEC = '[sweep]\nscenario = "short.toml"\nprotocol = ["vector_clock", "unordered"]\nseeds = 4\n'


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A lake with eight runs, and its grid."""
    folder = tmp_path_factory.mktemp("swept")
    (folder / "short.toml").write_text(SCENARIO)
    (folder / "spec.toml").write_text(SPEC)
    lake, grid = Lake(folder / "lake"), read_grid(folder / "spec.toml")
    sweep(lake, grid)
    return lake, grid


def sweep(lake, grid):
    with lake.job("sweep-spec").hold() as job:
        runs = run_sweep(lake, grid, None, SweepOptions(), job)
        (tables,) = result_blocks(grid, runs.marks)
        for name, table in tables.items():
            job.write(name, "spec", table)
    return {run_id: mark["verdicts"]["verdict"] for run_id, mark in runs.marks.items()}


def copy_of(swept, folder):
    shutil.copytree(swept[0].root, folder)
    return Lake(folder)


def verdict_about(path, capsys):
    """The exit code of `precede verify` on a file of the lake, and what it printed."""
    code = main(["verify", str(path)])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at // 8] ^= 1 << at % 8
    path.write_bytes(content)


def damage(path, other, how, generator):
    """Truncate, empty or exchange a file."""
    content = path.read_bytes()
    if how == "exchange":
        path.write_bytes(other.read_bytes())
        other.write_bytes(content)
    else:
        path.write_bytes(content[: 0 if how == "empty" else generator.randrange(1, len(content))])


def check_flips(swept, folder, count, capsys):
    """Flip one random bit of one random file, `count` times: every reader refuses the file by its name."""
    lake = copy_of(swept, folder)
    generator = random.Random(7)
    files = sorted(path for path in lake.root.glob("*/*.parquet"))
    for _ in range(count):
        path = generator.choice(files)
        content = path.read_bytes()
        flip(path, generator.randrange(8 * len(content)))
        with pytest.raises(Damaged, match=path.stem):
            lake.read(path.parent.name, path.stem.partition("~")[0])
        assert damaged_files(lake) == [path]
        if path.parent.name == "events":
            code, printed = verdict_about(path, capsys)
            assert code == 2
            assert path.name in printed
        path.write_bytes(content)
    assert not damaged_files(lake)


def damaged_files(lake):
    return [lake.root / finding.path for finding in find_damage(lake.storage)]


def check_other_damage(swept, folder, count, capsys):
    lake = copy_of(swept, folder)
    generator = random.Random(8)
    whole = {path: path.read_bytes() for path in sorted((lake.root / "events").glob("*.parquet"))}
    for number in range(count):
        path, other = generator.sample(list(whole), 2)
        how = ("truncate", "empty", "exchange")[number % 3]
        damage(path, other, how, generator)
        damaged = sorted({path, other}) if how == "exchange" else [path]
        assert sorted(damaged_files(lake)) == damaged
        code, printed = verdict_about(lake.root / "events", capsys)
        assert code == 2
        assert any(one.name in printed for one in damaged)
        for one in damaged:
            one.write_bytes(whole[one])


def check_any_file(swept, folder, count, capsys):
    """Flip one random bit of any file of the lake, commit records included: no verdict is wrong."""
    lake = copy_of(swept, folder)
    generator = random.Random(10)
    files = sorted(path for path in lake.root.rglob("*") if path.is_file())
    assert any("_commits" in path.parts for path in files)
    right = verdicts_of(lake, capsys)
    assert right[0] == 1  # the protocol without order violates it
    refused = 0
    for _ in range(count):
        path = generator.choice(files)
        content = path.read_bytes()
        flip(path, generator.randrange(8 * len(content)))
        assert damaged_files(lake)
        found = verdicts_of(lake, capsys)
        refused += found[0] == 2
        assert found[0] == 2 or found == right
        path.write_bytes(content)
    assert refused
    assert verdicts_of(lake, capsys) == right


def verdicts_of(lake, capsys):
    """The exit code and the verdicts of all runs of a lake."""
    code = main(["verify", str(lake.root / "events"), "--by", "run", "--json"])
    return code, capsys.readouterr().out


def test_no_flipped_bit_in_any_file_gives_a_wrong_verdict(swept, tmp_path, capsys):
    check_any_file(swept, tmp_path / "lake", 30, capsys)


def test_no_flipped_bit_gives_a_verdict(swept, tmp_path, capsys):
    check_flips(swept, tmp_path / "lake", 30, capsys)


def test_no_truncated_emptied_or_exchanged_file_gives_a_verdict(swept, tmp_path, capsys):
    check_other_damage(swept, tmp_path / "lake", 9, capsys)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_none_of_500_flips_and_50_truncations_or_exchanges_gives_a_verdict(swept, tmp_path, capsys):
    check_flips(swept, tmp_path / "flips", 500, capsys)
    check_any_file(swept, tmp_path / "any", 500, capsys)
    check_other_damage(swept, tmp_path / "others", 50, capsys)


def test_a_sweep_repeats_runs_whose_files_or_marks_are_damaged(swept, tmp_path):
    lake, grid = copy_of(swept, tmp_path / "lake"), swept[1]
    expected = sweep(lake, grid)
    before = {point.id: lake.read("events", point.id) for point in grid.points}
    generator = random.Random(9)
    first, second, third = (grid.points[number].id for number in (0, 3, 2))
    damage(lake.path("events", first), lake.path("events", second), "exchange", generator)
    (record,) = (lake.root / "_commits" / "runs").glob(f"{third}~*")
    flip(record, 800)
    lake = Lake(lake.location)
    assert third not in lake.facts("runs")
    assert sweep(lake, grid) == expected
    for run_id, rows in before.items():
        assert lake.read("events", run_id).to_pylist() == rows.to_pylist()
    left = {lake.root / f"{table}/{third}" for table in ("events", "gauges")}
    assert {path.with_name(path.name.partition("~")[0]) for path in damaged_files(lake)} == left
    with lake.job("compact").hold() as job:
        assert compact(job, older_than_s=0).leftovers == 2
    assert not damaged_files(lake)
    for run_id, rows in before.items():
        assert lake.read("events", run_id).to_pylist() == rows.to_pylist()


def test_lake_check_lists_damaged_missing_and_stray_files(swept, tmp_path, capsys):
    lake = copy_of(swept, tmp_path / "lake")
    assert main(["lake", "check", "--lake", str(lake.root)]) == 0
    assert "every file is as it was written" in capsys.readouterr().out
    runs = lake.units("events")
    flip(lake.path("events", runs[0]), 800)
    lake.path("events", runs[1]).unlink()
    (lake.root / "events" / "mine.parquet").write_bytes(lake.path("events", runs[2]).read_bytes())
    (record,) = (lake.root / "_commits" / "runs").glob(f"{runs[3]}~*")
    files = [lake.path(table, runs[3]) for table in ("events", "gauges")]
    flip(record, 300)
    assert main(["lake", "check", "--lake", str(lake.root)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"events/{runs[0]}~") and "is damaged" in line for line in lines)
    assert any(line.startswith(f"events/{runs[1]}~") and "missing" in line for line in lines)
    assert any(line.startswith("events/mine.parquet: stray") for line in lines)
    assert any(line.startswith(f"_commits/runs/{runs[3]}~") and "is damaged" in line for line in lines)
    for file in files:
        assert any(line.startswith(f"{file.relative_to(lake.root)}: stray") for line in lines)
    assert lines[-1].endswith("6 findings")
    assert main(["verify", str(lake.root / "events")]) == 2
    assert main(["lake", "check", "--lake", str(tmp_path / "nowhere")]) == 2


def test_a_kill_while_a_unit_is_replaced_leaves_the_old_unit_or_the_new_one(swept, tmp_path, monkeypatch):
    from precede.lake.storage import Storage

    lake = copy_of(swept, tmp_path / "lake")
    old = lake.read("verdicts", "spec")
    calls = []

    def killed(name):
        original = getattr(Storage, name)

        def call(self, path, *arguments):
            calls.append(path)
            if len(calls) == allowed + 1:
                raise KeyboardInterrupt
            return original(self, path, *arguments)

        return call

    for allowed in range(5):
        new = old.slice(0, 6 - allowed)
        calls.clear()
        with monkeypatch.context() as patch, lake.job("again").hold() as job:
            for name in ("put", "put_file", "delete"):
                patch.setattr(Storage, name, killed(name))
            with pytest.raises(KeyboardInterrupt):
                job.write("verdicts", "spec", new)
        found = Lake(lake.location).read("verdicts", "spec")
        assert found.equals(old if allowed < 2 else new), allowed
        with lake.job("heal").hold() as healing:
            healing.write("verdicts", "spec", old)


def test_an_intact_file_gives_the_verdict_of_the_verifier(swept, capsys):
    lake, grid = swept
    for point in grid.points:
        path = lake.path("events", point.id)
        code, _ = verdict_about(path, capsys)
        assert code == (0 if verify(path).holds else 1)
    assert main(["verify", lake.path("events", grid.points[0].id).as_uri()]) == 0
    with pytest.raises((BadInput, FileNotFoundError)):
        lake.read("events", "nothing")
