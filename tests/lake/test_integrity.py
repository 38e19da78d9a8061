"""A damaged file (truncated, emptied, exchanged, one bit flipped) is named and never gives a verdict."""

from __future__ import annotations

import random
import shutil

import pytest

from precede.cli import main
from precede.core.errors import BadInput
from precede.experiments.grid import read_grid
from precede.lake.integrity import Damaged, commit_path, find_damage
from precede.lake.layout import Lake
from precede.pipeline.sweeps.results import result_tables
from precede.pipeline.sweeps.simulate import SweepOptions, run_sweep
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
        for name, table in result_tables(grid, runs.marks).items():
            job.write(name, "spec", table)
        job.forget()
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
            lake.read(path.parent.name, path.stem)
        assert [finding.path for finding in find_damage(lake.root)] == [path]
        if path.parent.name == "events":
            code, printed = verdict_about(path, capsys)
            assert code == 2
            assert path.name in printed
        path.write_bytes(content)
    assert not list(find_damage(lake.root))


def check_other_damage(swept, folder, count, capsys):
    lake = copy_of(swept, folder)
    generator = random.Random(8)
    whole = {path: path.read_bytes() for path in sorted((lake.root / "events").glob("*.parquet"))}
    for number in range(count):
        path, other = generator.sample(list(whole), 2)
        how = ("truncate", "empty", "exchange")[number % 3]
        damage(path, other, how, generator)
        damaged = sorted({path, other}) if how == "exchange" else [path]
        assert [finding.path for finding in find_damage(lake.root)] == damaged
        code, printed = verdict_about(lake.root / "events", capsys)
        assert code == 2
        assert any(one.name in printed for one in damaged)
        for one in damaged:
            one.write_bytes(whole[one])


def test_no_flipped_bit_gives_a_verdict(swept, tmp_path, capsys):
    check_flips(swept, tmp_path / "lake", 30, capsys)


def test_no_truncated_emptied_or_exchanged_file_gives_a_verdict(swept, tmp_path, capsys):
    check_other_damage(swept, tmp_path / "lake", 9, capsys)


@pytest.mark.long
def test_none_of_500_flips_and_50_truncations_or_exchanges_gives_a_verdict(swept, tmp_path, capsys):
    check_flips(swept, tmp_path / "flips", 500, capsys)
    check_other_damage(swept, tmp_path / "others", 50, capsys)


def test_a_sweep_repeats_runs_whose_files_or_marks_are_damaged(swept, tmp_path):
    lake, grid = copy_of(swept, tmp_path / "lake"), swept[1]
    expected = sweep(lake, grid)
    bytes_before = {path: path.read_bytes() for path in sorted((lake.root / "events").glob("*.parquet"))}
    generator = random.Random(9)
    first, second, third = (grid.points[number].id for number in (0, 3, 2))
    damage(lake.path("events", first), lake.path("events", second), "exchange", generator)
    mark = lake.job("runs").done / f"{third}.json"
    flip(mark, 8 * mark.read_bytes().index(b"holds") + 1)
    assert not lake.job("runs").is_marked(third)
    assert sweep(lake, grid) == expected
    assert {path: path.read_bytes() for path in bytes_before} == bytes_before
    assert not list(find_damage(lake.root))


def test_lake_check_lists_damaged_missing_and_stray_files(swept, tmp_path, capsys):
    lake = copy_of(swept, tmp_path / "lake")
    assert main(["lake", "check", "--lake", str(lake.root)]) == 0
    assert "every file is as it was written" in capsys.readouterr().out
    runs = lake.units("events")
    flip(lake.path("events", runs[0]), 800)
    lake.path("events", runs[1]).unlink()
    (lake.root / "events" / "mine.parquet").write_bytes(lake.path("events", runs[2]).read_bytes())
    record = commit_path(lake.path("gauges", runs[3]))
    flip(record, 300)
    assert main(["lake", "check", "--lake", str(lake.root)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert f"events/{runs[0]}.parquet: is damaged" in lines[1] + lines[0]
    assert any(line.startswith(f"events/{runs[1]}.parquet: missing") for line in lines)
    assert any(line.startswith("events/mine.parquet: stray") for line in lines)
    assert any(line.startswith(f"gauges/{runs[3]}.parquet") for line in lines)
    assert lines[-1].endswith("4 findings")
    assert main(["verify", str(lake.root / "events")]) == 2
    assert main(["lake", "check", "--lake", str(tmp_path / "nowhere")]) == 2


def test_a_kill_while_a_unit_is_replaced_leaves_the_old_unit_or_the_new_one(swept, tmp_path, monkeypatch):
    from precede.lake import jobs

    lake = copy_of(swept, tmp_path / "lake")
    old = lake.read("verdicts", "spec")
    replace, calls = jobs._replace, []

    def killed(temporary, path):
        calls.append(path)
        if len(calls) == allowed + 1:
            raise KeyboardInterrupt
        replace(temporary, path)

    for allowed in range(3):
        calls.clear()
        monkeypatch.setattr(jobs, "_replace", killed)
        job = lake.job("again")
        job.scratch.mkdir(parents=True)
        with pytest.raises(KeyboardInterrupt):
            job.write("verdicts", "spec", old.slice(0, 3 - allowed))
        rows = lake.read("verdicts", "spec").num_rows
        assert rows == (3 - allowed if allowed == 2 else [8, 8, None][allowed])
        monkeypatch.setattr(jobs, "_replace", replace)
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
