"""What a sweep costs beside its runs: commit records that a task reads, rows that the driver holds."""

from __future__ import annotations

import pickle

from precede.experiments.grid import read_grid
from precede.lake.commits import Commits
from precede.lake.layout import Lake
from precede.pipeline.sweeps import differences, results, simulate
from precede.pipeline.sweeps.marks import Marks
from precede.pipeline.sweeps.simulate import RUNS
from precede.pipeline.sweeps.sweep import sweep
from precede.pipeline.sweeps.tables import SweepTables
from tests.pipeline.test_sweep import write_spec

RUN_COUNT = 12


def spread_elsewhere(session, what, function, count, watch=None):
    """Calls the function as Spark does: each task has its own copy, with an empty cache."""
    return [pickle.loads(pickle.dumps(function))(number) for number in range(count)]


def records_read(tmp_path, monkeypatch, spread):
    """How many commit records a sweep reads, and the lake."""
    spec = write_spec(tmp_path, f'[sweep]\nscenario = "short.toml"\nprotocol = "fifo"\nseeds = {RUN_COUNT}\n')
    read, original = [], Commits._read
    monkeypatch.setattr(Commits, "_read", lambda self, key: read.append(key) or original(self, key))
    monkeypatch.setattr(simulate, "spread", spread)
    lake = Lake(tmp_path / "lake")
    assert sweep(lake, read_grid(spec), None).failed == 0
    return len(read), lake


def test_a_task_of_a_new_sweep_reads_no_records(tmp_path, monkeypatch):
    count, lake = records_read(tmp_path, monkeypatch, spread_elsewhere)
    assert len(lake.facts(RUNS)) == RUN_COUNT
    assert count <= 2 * RUN_COUNT  # the driver's; 66 more if every task read those of the tasks before it


def test_a_task_that_another_driver_finished_is_not_repeated(tmp_path, monkeypatch):
    def twice(session, what, function, count, watch=None):
        spread_elsewhere(session, what, function, count)
        return spread_elsewhere(session, what, function, count)

    carried_out, original = [], simulate.carry_out
    monkeypatch.setattr(simulate, "carry_out", lambda run, sink: carried_out.append(run) or original(run, sink))
    records_read(tmp_path, monkeypatch, twice)
    assert len(carried_out) == RUN_COUNT


def tables_of(grid, marks):
    """All tables of a sweep as rows, and the most rows of measures that were in one batch."""
    tables = SweepTables(grid, marks, None)
    batches = list(tables.measures())
    rows = {"measures": [row for batch in batches for row in batch.to_pylist()]}
    rows |= {name: table.to_pylist() for name, table in tables.others().items()}
    return rows, max(batch.num_rows for batch in batches)


def test_tables_made_of_few_runs_at_a_time_are_the_same(tmp_path, monkeypatch):
    spec = write_spec(
        tmp_path, '[sweep]\nscenario = "short.toml"\nprotocol = ["fifo", "unordered"]\nseeds = 5\n'
    )
    lake, grid = Lake(tmp_path / "lake"), read_grid(spec)
    sweep(lake, grid, None)
    marks = Marks(lake).of([point.id for point in grid.points])
    (whole, most), decoded, original = tables_of(grid, marks), [], type(marks).__getitem__
    monkeypatch.setattr(type(marks), "__getitem__", lambda self, id: decoded.append(id) or original(self, id))
    monkeypatch.setattr(results, "_RUNS_AT_ONCE", 3)
    monkeypatch.setattr(differences, "_ROWS_AT_ONCE", 7)
    tables, fewer = tables_of(grid, marks)
    assert tables == whole
    assert fewer < most
    assert len(tables["differences"]) > 0
    for name, rows in whole.items():
        assert lake.read(name, grid.name).to_pylist() == rows
    assert decoded == [point.id for point in grid.points]  # the mark of each run once
