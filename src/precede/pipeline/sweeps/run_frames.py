"""Runs in a DataFrame to their rows in a DataFrame: simulation on the caller's session, without a lake."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from precede.core.errors import BadInput
from precede.experiments.run import carry_out_into
from precede.experiments.scenario import read_scenario
from precede.lake.layout import ROWS_A_GROUP
from precede.lake.schemas import TABLES
from precede.pipeline.sessions.frames import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Rows = Literal["events", "gauges"]
_COLUMNS: Final = ("scenario", "protocol", "seed", "options")


def simulate(runs: DataFrame, rows: Rows, tasks: int) -> DataFrame:
    """Return the rows of every run as a DataFrame; `tasks` tasks simulate them when an action needs them."""
    if rows not in ("events", "gauges"):
        raise BadInput(f"rows: expected events or gauges, got {rows!r}")
    if "scenario" not in runs.columns:
        raise BadInput(f"runs: no column 'scenario' (columns: {', '.join(runs.columns)})")
    known = [name for name in _COLUMNS if name in runs.columns]
    divided = runs.select(*known).repartition(tasks, *known)
    return divided.mapInArrow(_Simulate(rows), spark_schema(TABLES[rows]))


class _Simulate:
    """Carries out one run after the other. Rows go to a file first, so that memory is bounded."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = TABLES[self.rows].arrow()
        for batch in batches:
            for row in batch.to_pylist():
                run = _run_of(row)
                with tempfile.TemporaryDirectory(prefix="precede-simulate-") as folder:
                    carry_out_into(run, Path(folder) / "run")
                    with pq.ParquetFile(Path(folder) / "run" / f"{self.rows}.parquet") as file:
                        for part in file.iter_batches(ROWS_A_GROUP, columns=schema.names):
                            yield from pa.Table.from_batches([part]).cast(schema).to_batches()


def _run_of(row: dict[str, Any]) -> Any:
    options = msgspec.json.decode(row.get("options") or "{}", type=dict[str, Any])
    return read_scenario(row["scenario"], row.get("protocol"), row.get("seed"), options)
