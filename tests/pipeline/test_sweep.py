"""Sweeps: every run once, even after kills; failures are recorded; tables agree with the logs."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from precede import __version__
from precede.cli import main
from precede.cli.data.sweep import describe
from precede.core.errors import BadInput
from precede.eventlog.sinks import HeldSink
from precede.experiments.grid import read_grid
from precede.experiments.measuring import measure_folder
from precede.experiments.run import carry_out, carry_out_into
from precede.lake.integrity import find_damage
from precede.lake.layout import Lake
from precede.lake.schemas import TABLES
from precede.measures.statistics import confidence_interval
from precede.pipeline.sessions.frames import read_frame
from precede.pipeline.sweeps import simulate
from precede.pipeline.sweeps.marks import Marks, SweepOptions
from precede.pipeline.sweeps.packs import Pack
from precede.pipeline.sweeps.simulate import _without_seed, plan_tasks, run_sweep
from precede.pipeline.sweeps.sweep import summarise_sweep, sweep, swept_before
from precede.witness.verify import verify

SHORT = """
[world]
kind = "point_to_point"
nodes = 4
delay = "exponential(0.05)"
[workload]
poisson = "1s"
until = "5s"
[run]
protocol = "vector_clock"
gauges = "1s"
end = "20s"
"""


def write_spec(folder, text, scenario=SHORT):
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "short.toml").write_text(scenario)
    (folder / "spec.toml").write_text(text)
    return folder / "spec.toml"


def rows(lake, table, unit="spec"):
    return lake.read(table, unit).to_pylist()


def test_a_grid_has_every_combination_with_stable_ids(tmp_path):
    spec = write_spec(
        tmp_path / "a",
        '[sweep]\nscenario = "short.toml"\nprotocol = ["fifo", "vector_clock"]\nseeds = "3-5"\n'
        '[set]\n"run.log" = "messages"\n'
        '[grid]\n"workload.size" = [10, 20]\n[grid.vector_clock]\ndurable = [true, false]\n',
    )
    grid = read_grid(spec)
    assert grid.name == "spec"
    assert len(grid.points) == 2 * 3 + 2 * 2 * 3
    assert {point.run.log for point in grid.points} == {"messages"}
    assert {point.run.seed for point in grid.points} == {3, 4, 5}
    assert grid.points[-1].varied == {"workload.size": 20, "durable": False}
    moved = read_grid(write_spec(tmp_path / "b", spec.read_text()))
    assert [point.id for point in moved.points] == [point.id for point in grid.points]
    assert len({point.id for point in grid.points}) == len(grid.points)


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        ("", "[sweep] needs 'scenario'"),
        ('[sweep]\nprotocol="fifo"', "[sweep] needs 'scenario'"),
        ('[sweep]\nscenario="short.toml"', "[sweep] needs 'protocol'"),
        ('[sweep]\nprotocol="fifo"\nscenario="nowhere"', "no scenario 'nowhere'"),
        ('[sweep]\nprotocol="fifoo"\nscenario="short.toml"', "did you mean 'fifo'"),
        ('[sweep]\nprotocol="fifo"\nscenario="short.toml"\nseed=3', "spec.toml:4: seed: unknown key"),
        (
            '[sweep]\nprotocol="fifo"\nscenario="short.toml"\nseeds=0',
            'spec.toml:4: seeds: expected a count, a range "5-9" or a list of whole numbers, got 0',
        ),
        ('[sweep]\nprotocol="fifo"\nscenario="short.toml"\nseeds="9-3"', "spec.toml:4: seeds"),
        ('[sweep]\nprotocol="fifo"\nscenario="short.toml"\n[grid]\nlaugh=["1s"]', "--set laugh"),
        ('[sweep]\nprotocol="fifo"\nscenario="short.toml"\n[grid]\n"world.nodes"=4', "a list of values"),
        (
            '[sweep]\nprotocol="fifo"\nscenario="short.toml"\n[grid.tof]\nx=[1]',
            "no such protocol in this sweep",
        ),
        ('[sweep]\nprotocol="fifo"\nscenario="short.toml"\nname="../x"', "not a name"),
        (
            '[sweep]\nprotocol="fifo"\nscenario=[1]',
            "spec.toml:3: scenario: expected text or a list of texts, got [1]",
        ),
        ('[sweep]\nprotocol="fifo"\nscenario="short.toml"\nseeds=9000000', "9,000,000 runs are more than"),
        ("[swoop]\n", "unknown table [swoop]"),
        ("[sweep\n", "spec.toml:1: not TOML"),
    ],
)
def test_a_bad_specification_prints_one_line_and_creates_no_lake(tmp_path, capsys, text, expected_text):
    spec = write_spec(tmp_path, text)
    assert main(["sweep", str(spec), "--lake", str(tmp_path / "lake")]) == 2
    error = capsys.readouterr().err
    assert expected_text in error
    assert error.count("\n") == 1
    assert not (tmp_path / "lake").exists()


def test_tasks_are_sized_by_work_and_not_by_cores(tmp_path):
    text = '[sweep]\nscenario = "short.toml"\nprotocol = ["fifo", "unordered"]\nseeds = 500\n'
    points = read_grid(write_spec(tmp_path, text)).points
    pilot = plan_tasks(points, {})
    assert [[point.run.protocol for point in share] for share in pilot] == [["fifo"]] * 5 + [["unordered"]] * 5
    kinds = {point.run.protocol: _without_seed(point.run) for point in points}
    short = plan_tasks(points, {kinds["fifo"]: 0.02, kinds["unordered"]: 0.03})
    assert len(short) == 13
    assert sum(map(len, short)) == 1000
    assert {share[0].run.protocol for share in short} == {"unordered"}
    assert len(plan_tasks(points, {kinds["fifo"]: 60.0, kinds["unordered"]: 1.0})) == 1000
    assert len(plan_tasks(points[:30], {})) == 30


def test_a_worker_that_ends_with_its_executor_did_not_die_of_its_run(tmp_path):
    command = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from precede.lake.layout import Lake\n"
        "from precede.pipeline.sweeps.deaths import watched\n"
        "folder, both = Path(sys.argv[1]), sys.argv[2] == 'both'\n"
        "job = Lake(folder).job('sweep')\n"
        "worker = os.fork()\n"
        "if worker == 0:\n"
        "    with watched(job, folder) as watch:\n"
        "        watch.begin('run')\n"
        "        os._exit(9)\n"
        "os.waitpid(worker, 0)\n"
        "while not both and not list(folder.glob('_jobs/sweep/*/died/run/*')):\n"
        "    time.sleep(0.1)\n"
    )
    for both, deaths in (("both", 0), ("worker", 1)):
        folder = tmp_path / both
        folder.mkdir()
        subprocess.run([sys.executable, "-c", command, str(folder), both], check=True, timeout=60)
        assert len(list(folder.glob("_jobs/sweep/*/died/run/*"))) == deaths


@pytest.mark.spark
def test_a_sweep_with_failing_runs_finishes_and_records_each(session, tmp_path):
    spec = write_spec(
        tmp_path / "spéc ial",
        '[sweep]\nscenario = "short.toml"\nprotocol = ["saboteur", "unordered"]\nseeds = 2\n'
        '[grid.saboteur]\nexplode = ["no", "raise", "die"]\n',
    )
    lake = Lake(tmp_path / "l ake*")
    grid = read_grid(spec)
    seen = []
    summary = sweep(lake, grid, session, progress=lambda done, total: seen.append((done, total)))
    assert (summary.runs, summary.failed, summary.finished_before) == (8, 4, 0)
    assert summary.broken_promises == ()
    assert seen
    assert seen == sorted(seen)
    assert seen[-1][1] == 8
    runs = {row["run_id"]: row for row in rows(lake, "runs")}
    for point in grid.points:
        row = runs[point.id]
        how = point.varied.get("explode", "no")
        assert row["status"] == ("finished" if how == "no" else "failed")
        assert lake.has("events", point.id) == (how == "no")
        assert (row["seed"], json.loads(row["options"])) == (point.run.seed, dict(point.varied))
        if how == "raise":
            assert row["error"] == "RuntimeError: boom"
            assert "saboteur.py" in row["traceback"]
        if how == "die":
            assert "workers died" in row["error"]
    _agrees_with_the_logs(lake, grid, tmp_path / "alone")
    assert swept_before(lake, grid, SweepOptions()) is None
    assert not list(lake.root.glob("_jobs/sweep-*"))
    for table in ("runs", "events", "gauges", "verdicts", "violations", "measures"):
        assert read_frame(session, lake, table).columns == TABLES[table].names()
        assert read_frame(session, lake, table).count() > 0


def _agrees_with_the_logs(lake, grid, alone):
    """Compare the tables with runs that are carried out here, one by one."""
    verdicts = {row["run_id"]: row for row in rows(lake, "verdicts")}
    measures = {}
    for row in rows(lake, "measures"):
        measures.setdefault((row["run_id"], row["protocol"]), {})[row["measure"]] = row
    finished = [point for point in grid.points if point.varied.get("explode", "no") == "no"]
    assert set(verdicts) == {point.id for point in finished}
    by_protocol = {}
    for point in finished:
        folder = alone / point.id
        carry_out_into(point.run, folder)
        assert (folder / "events.parquet").read_bytes() == lake.path("events", point.id).read_bytes()
        assert (folder / "gauges.parquet").read_bytes() == lake.path("gauges", point.id).read_bytes()
        mine = measure_folder(folder)
        by_name = measures[point.id, point.run.protocol]
        for name, value in mine.items():
            assert (value is None) == (name not in by_name)
            assert value is None or by_name[name]["value"] == value
        by_protocol.setdefault(point.run.protocol, []).append(mine)
        verdict = verify(folder / "events.parquet", "causal")
        assert verdicts[point.id]["verdict"] == verdict.verdict
        assert verdicts[point.id]["violations"] == verdict.violations
        listed = [row for row in rows(lake, "violations") if row["run_id"] == point.id]
        assert len(listed) == min(verdict.violations, 100)
        if listed:
            assert listed[0]["explanation"] == verdict.first.story
    for protocol, several in by_protocol.items():
        for name in ("deliveries", "age_us_mean", "packets"):
            row = measures[None, protocol][name]
            low, high = confidence_interval([float(one[name]) for one in several])
            assert (row["runs"], row["low"], row["high"]) == (2, pytest.approx(low), pytest.approx(high))


@pytest.mark.long
@pytest.mark.spark
def test_a_run_whose_worker_dies_once_is_run_again_and_finished(session, tmp_path):
    spec = write_spec(
        tmp_path,
        '[sweep]\nscenario = "short.toml"\nprotocol = "saboteur"\nseeds = 3\n'
        f'[set]\nmark = "{tmp_path}/died"\nexplode = "die_once"\n',
    )
    lake = Lake(tmp_path / "lake")
    summary = sweep(lake, read_grid(spec), session, SweepOptions(verdicts=False, measures=False))
    assert summary.failed == 0
    assert sum(row["attempt"] for row in rows(lake, "runs")) >= 1
    assert rows(lake, "verdicts") == []


@pytest.mark.parametrize("setting", ["gauges = '2s'", "warmup = '1s'"])
def test_measures_of_a_sweep_are_those_of_the_stored_log(tmp_path, setting):
    """With a warm-up they are taken from the log after the run, else while its rows are written."""
    scenario = SHORT.replace('gauges = "1s"', setting)
    spec = write_spec(tmp_path, '[sweep]\nscenario = "short.toml"\nprotocol = "fifo"\nseeds = 2\n', scenario)
    lake, grid = Lake(tmp_path / "lake"), read_grid(spec)
    assert sweep(lake, grid, None).failed == 0
    for point in grid.points:
        outcome = carry_out_into(point.run, tmp_path / point.id)
        measured = {row["measure"]: row["value"] for row in rows(lake, "measures") if row["run_id"] == point.id}
        expected = outcome.counters | measure_folder(tmp_path / point.id)
        assert measured == {name: value for name, value in expected.items() if value is not None}


def test_finished_runs_are_not_run_again(tmp_path, monkeypatch):
    spec = write_spec(tmp_path, '[sweep]\nscenario = "short.toml"\nprotocol = "fifo"\nseeds = 5\n')
    lake, grid = Lake(tmp_path / "lake"), read_grid(spec)
    ran = []

    def killed_in_the_third(run, sink):
        ran.append(run.seed)
        outcome = carry_out(run, sink)
        if len(ran) == 3:
            raise KeyboardInterrupt
        return outcome

    monkeypatch.setattr(simulate, "carry_out", killed_in_the_third)
    with pytest.raises(KeyboardInterrupt), lake.job("sweep-spec").hold() as job:
        run_sweep(lake, grid, None, SweepOptions(), job)
    assert len(lake.units("events")) == 2
    assert not lake.units("runs")
    with lake.job("sweep-spec").hold() as job:
        swept = run_sweep(lake, grid, None, SweepOptions(), job)
    assert ran == [1, 2, 3, 3, 4, 5]
    assert swept.finished_before == 2
    assert swept.failed == ()
    lake.path("events", grid.points[1].id).unlink()
    (record,) = (lake.root / "_commits" / "runs").glob(f"{grid.points[0].id}~*")
    record.write_bytes(record.read_bytes()[:40])
    lake = Lake(lake.location)
    with lake.job("sweep-spec").hold() as job:
        run_sweep(lake, grid, None, SweepOptions(), job)
    assert sorted(ran[6:]) == [1, 2]


def test_a_truncated_log_is_detected_and_the_run_repeated(tmp_path):
    spec = write_spec(tmp_path, '[sweep]\nscenario = "short.toml"\nprotocol = "fifo"\nseeds = 2\n')
    lake, grid = Lake(tmp_path / "lake"), read_grid(spec)
    with lake.job("sweep-spec").hold() as job:
        run_sweep(lake, grid, None, SweepOptions(verdicts=False, measures=False), job)
    path = lake.path("events", grid.points[0].id)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with lake.job("sweep-spec").hold() as job:
        swept = run_sweep(lake, grid, None, SweepOptions(), job)
    assert swept.failed == ()
    assert path.read_bytes() == whole


def test_verdicts_can_be_added_later_and_sweeps_share_runs(tmp_path, monkeypatch):
    spec = write_spec(tmp_path, '[sweep]\nscenario = "short.toml"\nprotocol = "fifo"\nseeds = 2\n')
    lake, grid = Lake(tmp_path / "lake"), read_grid(spec)
    with lake.job("sweep-spec").hold() as job:
        run_sweep(lake, grid, None, SweepOptions(verdicts=False, measures=False), job)
    assert "verdicts" not in Marks(lake).read(grid.points[0].id)

    def never(run, sink):
        raise AssertionError("the run is already finished")

    monkeypatch.setattr(simulate, "carry_out", never)
    other = write_spec(tmp_path, spec.read_text() + 'name = "other"\n')
    with lake.job("sweep-other").hold() as job:
        swept = run_sweep(lake, read_grid(other), None, SweepOptions(), job)
    assert {mark["verdicts"]["verdict"] for mark in swept.marks.values()} == {"holds"}
    assert all(mark["measures"]["deliveries"] for mark in swept.marks.values())


def test_a_failed_run_is_tried_again_by_the_next_sweep(tmp_path, monkeypatch):
    spec = write_spec(tmp_path, '[sweep]\nscenario = "short.toml"\nprotocol = "fifo"\nseeds = 2\n')
    lake, grid = Lake(tmp_path / "lake"), read_grid(spec)

    def broken(run, sink):
        raise ValueError("no luck today")

    with monkeypatch.context() as patch:
        patch.setattr(simulate, "carry_out", broken)
        with lake.job("sweep-spec").hold() as job:
            swept = run_sweep(lake, grid, None, SweepOptions(), job)
    assert len(swept.failed) == 2
    summary = "\n".join(describe(summarise_sweep(swept), lake.location))
    assert f"2 failed; the first: {grid.points[0].id}: ValueError: no luck today\n" in summary
    assert f"tracebacks are in the table runs of {lake.location}\n" in summary
    with lake.job("sweep-spec").hold() as job:
        swept = run_sweep(lake, grid, None, SweepOptions(), job)
    assert swept.failed == ()


def test_runs_of_another_version_are_repeated_and_runs_of_other_code_are_counted(tmp_path, monkeypatch):
    spec = write_spec(tmp_path, '[sweep]\nscenario = "short.toml"\nprotocol = "fifo"\nseeds = 3\n')
    lake, grid = Lake(tmp_path / "lake"), read_grid(spec)
    ran = []

    def noted(run, sink):
        ran.append(run.seed)
        return carry_out(run, sink)

    def swept_again(options):
        ran.clear()
        with lake.job("sweep-spec").hold() as job:
            return summarise_sweep(run_sweep(lake, grid, None, options, job))

    monkeypatch.setattr(simulate, "carry_out", noted)
    swept_again(SweepOptions())
    with lake.job("sweep-spec").hold() as job:
        for point, version in zip(
            grid.points, ("0.0.1+0123456789ab", "0.0.1", f"{__version__}+0"), strict=True
        ):
            remark(lake, job, point.id, version=version)
    summary = swept_again(SweepOptions())
    assert (ran, summary.finished_before, summary.by_other_code) == ([1, 2], 1, 1)
    assert "1 of them by other code of this version (--same-code" in "\n".join(describe(summary, lake.location))
    summary = swept_again(SweepOptions(same_code=True))
    assert (ran, summary.finished_before, summary.by_other_code) == ([3], 2, 0)
    assert "other code" not in "\n".join(describe(summary, lake.location))
    swept_again(SweepOptions(same_code=True))
    assert ran == []


def test_long_runs_begin_first(tmp_path):
    spec = write_spec(
        tmp_path,
        '[sweep]\nscenario = "short.toml"\nprotocol = ["fifo", "vector_clock"]\nseeds = 1\n',
    )
    lake, grid = Lake(tmp_path / "lake"), read_grid(spec)
    with lake.job("sweep-spec").hold() as job:
        run_sweep(lake, grid, None, SweepOptions(), job)
        for point, seconds in zip(grid.points, (1.0, 9.0), strict=True):
            remark(lake, job, point.id, cpu_s=seconds, task_cpu_s=seconds)
    more = read_grid(write_spec(tmp_path, spec.read_text().replace("seeds = 1", "seeds = [7, 8]")))
    ordered = simulate._longest_first(more.points, simulate._known_cpu_s(Marks(lake)))
    assert [point.run.protocol for point in ordered] == ["vector_clock", "vector_clock", "fifo", "fifo"]


def remark(lake, job, run_id, **changes):
    """Replace parts of a run's mark, as another version would have left it."""
    mark = Marks(lake).read(run_id) | changes
    lake.job("forging").commit("runs", f"marks-{run_id}", facts={run_id: mark})


def test_two_drivers_at_once_leave_one_result(tmp_path):
    spec = write_spec(tmp_path, '[sweep]\nscenario = "short.toml"\nprotocol = "fifo"\nseeds = 3\n')
    alone, lake, grid = Lake(tmp_path / "alone"), Lake(tmp_path / "lake"), read_grid(spec)
    with alone.job("sweep-spec").hold() as job:
        run_sweep(alone, grid, None, SweepOptions(), job)
    with lake.job("sweep-spec").hold() as first, lake.job("sweep-spec").hold() as second:
        assert first.generation == second.generation
        for number, job in enumerate((first, second)):
            table = pa.Table.from_pylist([], schema=TABLES["verdicts"].arrow())
            for point in grid.points:
                mark = {"status": "finished", "version": f"{number}"}
                sink = HeldSink(tmp_path / f"{number}" / point.id)
                carry_out(point.run, sink)
                pack = Pack(job)
                pack.add(point.id, mark, sink)
                pack.commit()
            job.write_tables("sweeps", "spec", {"verdicts": table})
    assert len(list((lake.root / "_commits" / "runs").iterdir())) == 3
    assert len({Marks(lake).brief(point.id).version for point in grid.points} | {"0", "1"}) == 2
    for point in grid.points:
        for table in ("events", "gauges"):
            assert lake.read(table, point.id) == alone.read(table, point.id)
            assert len(list((lake.root / table).glob(f"{point.id}~*"))) == 1
    assert not list(find_damage(lake.storage))


def test_a_lake_that_cannot_be_written_is_bad_input(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(BadInput, match="cannot be written"), Lake(tmp_path / "file" / "x").job("j").hold():
        pass


def test_the_page_of_tables_is_up_to_date():
    page = Path(__file__).parents[2] / "docs" / "reference" / "tables.md"
    from precede.lake.schemas import describe_tables

    assert page.read_text(encoding="utf-8") == describe_tables()
    drawn = runpy.run_path(str(page.with_name("draw_tables.py")))["draw"]()
    assert page.with_name("tables.svg").read_text(encoding="utf-8") == drawn
    assert all(f">{name}</text>" in drawn for name in TABLES)


@pytest.mark.spark
def test_a_sweep_is_compared_with_a_claims_file(session, tmp_path):
    spec = write_spec(
        tmp_path,
        '[sweep]\nscenario = "short.toml"\nprotocol = "fifo"\nseeds = 5\nclaims = "claims.toml"\n',
    )
    claim = '[[claim]]\nid = "{0}"\nsays = "{0}"\nmeasure = "broadcasts"\nkind = "{1}"\nvalue = 1\n'
    where = 'where = { protocol = "fifo" }\n'
    text = claim.format("many", "at_least") + where + claim.format("few", "at_most") + where
    (tmp_path / "claims.toml").write_text(text)
    lake = Lake(tmp_path / "lake")
    summary = sweep(lake, read_grid(spec), session)
    assert summary.claims == {"reproduced": 1, "not reproduced": 1}
    assert summary.missed_claims == ("few",)
    assert [(row["claim"], row["points"], row["runs"]) for row in rows(lake, "comparisons")] == [
        ("many", 1, 5),
        ("few", 1, 5),
    ]
