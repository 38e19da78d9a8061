"""Rows from a folder into which nodes write Parquet segments of the event log (docs/reference/formats.md)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from precede.core.errors import BadInput
from precede.pipeline.following.rows import ABSENT, WORDS
from precede.pipeline.sessions.frames import escape_path
from precede.witness.reading.column_names import BROADCAST, DELIVERED, OTHER, Layout
from precede.witness.reading.partitions import Piece, pieces_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES_AT_ONCE: Final = 1_000
_POLL_S: Final = 0.2


def first_segment(folder: Path, idle_s: float | None) -> Piece:
    """Wait for the first segment, whose columns are those of the log. Raises BadInput if none comes."""
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder")
    until = None if idle_s is None else time.monotonic() + idle_s
    while True:
        for piece in pieces_in(folder):
            _check_parquet(piece.path)
            return piece
        if until is not None and time.monotonic() > until:
            raise BadInput(f"{folder}: no Parquet segment came")
        time.sleep(_POLL_S)


def _check_parquet(path: Path) -> None:
    try:
        pq.read_schema(path)
    except pa.ArrowInvalid:
        raise BadInput(f"{path}: not a Parquet file (write segments under another name, then rename)") from None


def segment_rows(session: SparkSession, folder: Path, first: Path, layout: Layout) -> DataFrame:
    """Open the growing log as a streaming DataFrame with the columns of `following.rows`, without nulls."""
    from pyspark.sql import functions as sf
    from pyspark.sql.types import ArrayType, StructType

    fields = {field.name: field for field in session.read.parquet(escape_path(first)).schema.fields}
    stream = (
        session.readStream.schema(StructType([fields[name] for name in layout.names_to_read()]))
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", "*.parquet")
        .option("ignoreMissingFiles", "true")  # a longer segment may have replaced it
        .option("maxFilesPerTrigger", _FILES_AT_ONCE)
        .parquet(escape_path(folder))
    )

    def column(ours: str, kind: str, absent: Any) -> Any:
        if ours not in layout.columns:
            return sf.lit(absent).cast(kind)
        return sf.coalesce(sf.col(f"`{layout.columns[ours]}`").cast(kind), sf.lit(absent).cast(kind))

    words = {number: word for word, number in layout.kinds.items()}
    kind = column("kind", "string", "")
    number = sf.when(kind == words[BROADCAST], BROADCAST).when(kind == words[DELIVERED], DELIVERED)
    for word, meaning in WORDS.items():
        number = number.when(kind == word, meaning)
    to = column("destinations", "string", "")
    if "destinations" in layout.columns:
        theirs = layout.columns["destinations"]
        if isinstance(fields[theirs].dataType, ArrayType):
            to = sf.coalesce(sf.to_json(sf.col(f"`{theirs}`")), sf.lit(""))
    return stream.select(
        *(sf.col(f"`{name}`").cast("string").alias(f"by{index}") for index, name in enumerate(layout.by)),
        column("node", "string", "").alias("node"),
        column("incarnation", "int", 0).alias("incarnation"),
        column("step", "bigint", -1).alias("step"),
        number.otherwise(OTHER).alias("kind"),
        column("message_source", "string", "").alias("source"),
        column("message_incarnation", "int", -1).alias("source_incarnation"),
        column("message_number", "bigint", ABSENT).alias("number"),
        to.alias("to"),
        column("deadline_us", "bigint", ABSENT).alias("deadline"),
        column("clock_us", "bigint", ABSENT).alias("clock"),
        sf.col("_metadata.file_modification_time").cast("double").alias("written"),
        sf.lit(None).cast("string").alias("place"),
        sf.lit(None).cast("string").alias("cause"),
    )
