"""Tables of the lake as Spark DataFrames."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from precede.lake.layout import Lake
from precede.lake.schemas import TABLES, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_GLOB: Final = re.compile(r"([\[\]{}*?\\])")


def read_frame(session: SparkSession, lake: Lake, table: str, units: Sequence[str] | None = None) -> DataFrame:
    """Return a table of the lake, or some of its units, as a DataFrame with the declared schema.

    Units that do not exist have no rows. Raises Damaged if a file is not what its commit record says.
    """
    schema = spark_schema(TABLES[table])
    existing = [unit for unit in lake.units(table) if units is None or unit in units]
    if not existing:
        return session.createDataFrame([], schema)
    reader = session.read.schema(schema)
    files = [lake.checked(table, unit) for unit in existing]
    if units is None:
        return reader.parquet(escape_path(files[0].parent))
    return reader.parquet(*map(escape_path, files))


def spark_schema(table: Table) -> StructType:
    """Return the declared schema as a Spark type; the comment of a column is its meaning.

    It needs no session, so it also works in a Connect client.
    """
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
