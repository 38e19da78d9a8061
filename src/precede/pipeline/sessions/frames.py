"""Tables of the lake as Spark DataFrames."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from precede.lake.layout import Lake
from precede.lake.schemas import TABLES, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_TASKS: Final = 256
_GLOB: Final = re.compile(r"([\[\]{}*?\\])")


def read_frame(session: SparkSession, lake: Lake, table: str, units: Sequence[str] | None = None) -> DataFrame:
    """Return a table of the lake, or some of its units, as a DataFrame with the declared schema.

    Units that do not exist have no rows. Tasks read the files with Arrow, so Spark needs no jar for the
    storage. A task raises Damaged if a file is not what its commit record says.
    """
    schema = spark_schema(TABLES[table])
    existing = [unit for unit in lake.units(table) if units is None or unit in units]
    if not existing:
        return session.createDataFrame([], schema)
    shares = min(len(existing), _TASKS)
    frame = session.range(0, shares, 1, shares)
    return frame.mapInArrow(_Units(lake, table, [existing[n::shares] for n in range(shares)]), schema)


class _Units:
    """Reads units of a table; a task gets the numbers of its shares."""

    def __init__(self, lake: Lake, table: str, shares: Sequence[Sequence[str]]) -> None:
        self.lake, self.table, self.shares = lake, table, shares

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema, lake = TABLES[self.table].arrow(), self.lake.snapshot()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for unit in self.shares[number]:
                    for rows in lake.batches(self.table, unit, schema.names):
                        yield from pa.Table.from_batches([rows]).cast(schema).to_batches()


def spark_schema(table: Table) -> StructType:
    """Return the declared schema as a Spark type, with comments; it needs no session."""
    from pyspark.sql.types import (
        ArrayType,
        DoubleType,
        IntegerType,
        LongType,
        StringType,
        StructField,
        StructType,
    )

    types = {
        "string": StringType(),
        "int": IntegerType(),
        "bigint": LongType(),
        "double": DoubleType(),
        "array<string>": ArrayType(StringType()),
    }
    return StructType([StructField(c.name, types[c.kind], True, {"comment": c.meaning}) for c in table.columns])


def escape_path(path: Path) -> str:
    """Return a path for Spark's readers, with the characters escaped that they would take for patterns."""
    return _GLOB.sub(r"\\\1", str(path))
