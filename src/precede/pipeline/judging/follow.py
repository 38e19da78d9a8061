"""`precede verify --follow`: a log that grows, watched by Structured Streaming.

Nodes put Parquet segments of the event log into a folder, whole files or none (docs/reference/formats.md). The
state of a run is the live witness itself (`verify.live`), kept in Spark's state store under the run's name;
a batch brings rows, the witness says what they prove. What was said is in the ledger beside the checkpoint, so
the job can be killed at any time and typed again: no row is counted twice, no violation forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from precede.core.errors import BadInput
from precede.lake.jobs import for_spark
from precede.pipeline.judging.ledger import Heard, Ledger, Standing
from precede.pipeline.judging.verify_files import gather, plain_error
from precede.pipeline.judging.witness import Asked, settle_question
from precede.pipeline.sessions.tasks import cores
from precede.witness.live.live import STARTED, LiveRow, LiveRun
from precede.witness.reading.column_names import BROADCAST, DELIVERED, OTHER, Layout
from precede.witness.reading.logs import read_promise
from precede.witness.reading.partitions import Piece, pieces_in
from precede.witness.reading.plain import destinations
from precede.witness.verdict import ORDERS, Verdict

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.state import GroupState

CHECKPOINT: Final = "_follow"
"""The folder inside the log's that remembers how far we are; readers of Parquet pass it by."""

_FILES_AT_ONCE: Final = 1_000
_POLL_S: Final = 0.2
_ABSENT: Final = -(1 << 63)
_IDLE: Final = ("Waiting", "Getting offsets")
"""How Spark's status of a query begins while there is nothing to do; else it starts up or works."""

_TOLD: Final = "standing string"
_KEPT: Final = "version bigint, run binary"
_SETTINGS: Final = {"spark.sql.streaming.minBatchesToRetain": "5"}


def follow(
    session: SparkSession,
    folder: str | Path,
    order: str | None = None,
    *,
    columns: str | Mapping[str, str] | None = None,
    by: str | Sequence[str] | None = None,
    kinds: str | Mapping[str, str] | None = None,
    duplicates: str = "forbid",
    checkpoint: str | Path | None = None,
    idle_s: float | None = None,
    hear: Callable[[list[Heard]], None] | None = None,
) -> Verdict:
    """Watch a folder of segments until nothing came for `idle_s` seconds, or until KeyboardInterrupt.

    `hear` is called with what each batch brought: how every run stands, and violations with their stories. The
    verdict is of all that came since the checkpoint was begun; it is unknown while rows wait for others.
    """
    folder = Path(folder).absolute()
    first = _first_segment(folder, idle_s)
    if first is None:
        raise BadInput(f"{folder}: no Parquet segment came")
    promised = read_promise(folder / "run.json")
    settled = order or (promised if promised in ORDERS else None)
    there = pq.read_schema(first.path).names
    named = [name for name in first.named if name not in there]
    asked, layout = settle_question([*there, *named], settled, by, columns, kinds, "counted", duplicates)
    for name in named:
        if name in layout.wanted():
            raise BadInput(f"{first.path}: --follow reads columns from files, not from folders ({name}=…)")
    _check_layout(first.path, layout)
    ledger = Ledger.open(Path(checkpoint or folder / CHECKPOINT).absolute(), asked)
    watch = _Watch(ledger, hear)
    for key, value in _SETTINGS.items():
        session.conf.set(key, value)
    session.conf.set("spark.sql.shuffle.partitions", str(cores(session)))
    query = _start(_rows(session, folder, first.path, layout), asked, layout, ledger, watch)
    try:
        _wait(query, watch, idle_s)
    except KeyboardInterrupt:
        pass
    finally:
        query.stop()
    return gather(ledger.answers(layout.columns), layout.by)


def _first_segment(folder: Path, idle_s: float | None) -> Piece | None:
    """The first segment, which tells the columns; nodes may not have written any yet."""
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder")
    until = None if idle_s is None else time.monotonic() + idle_s
    while True:
        for piece in pieces_in(folder):
            _check_parquet(piece.path)
            return piece
        if until is not None and time.monotonic() > until:
            return None
        time.sleep(_POLL_S)


def _check_parquet(path: Path) -> None:
    try:
        pq.read_schema(path)
    except pa.ArrowInvalid:
        raise BadInput(f"{path}: not a Parquet file (write segments under another name, then rename)") from None


def _check_layout(first: Path, layout: Layout) -> None:
    if not layout.numbered:
        raise BadInput(f"{first}: --follow needs message_source and message_number, not one opaque id")
    if layout.row_order or layout.constant_kind is not None:
        raise BadInput(f"{first}: --follow needs the columns step and kind")
    if not layout.by:
        raise BadInput(f"{first}: --follow needs a column that names the run (run_id, or --by)")


def _rows(session: SparkSession, folder: Path, first: Path, layout: Layout) -> DataFrame:
    """The growing table, every value in the form the live witness takes it, nothing null."""
    from pyspark.sql import functions as sf
    from pyspark.sql.types import ArrayType, StructType

    known = {field.name: field for field in session.read.parquet(for_spark(first)).schema.fields}
    stream = (
        session.readStream.schema(StructType([known[name] for name in layout.wanted()]))
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", "*.parquet")
        .option("ignoreMissingFiles", "true")  # a longer segment may have taken the place of one
        .option("maxFilesPerTrigger", _FILES_AT_ONCE)
        .parquet(for_spark(folder))
    )

    def column(ours: str, kind: str, absent: Any) -> Any:
        if ours not in layout.columns:
            return sf.lit(absent).cast(kind)
        return sf.coalesce(sf.col(f"`{layout.columns[ours]}`").cast(kind), sf.lit(absent).cast(kind))

    words = {number: word for word, number in layout.kinds.items()}
    kind = column("kind", "string", "")
    to = column("destinations", "string", "")
    if "destinations" in layout.columns:
        theirs = layout.columns["destinations"]
        if isinstance(known[theirs].dataType, ArrayType):
            to = sf.coalesce(sf.to_json(sf.col(f"`{theirs}`")), sf.lit(""))
    return stream.select(
        *(sf.col(f"`{name}`").cast("string").alias(f"by{place}") for place, name in enumerate(layout.by)),
        column("node", "string", "").alias("node"),
        column("incarnation", "int", 0).alias("life"),
        column("step", "bigint", -1).alias("step"),
        sf.when(kind == words[BROADCAST], BROADCAST)
        .when(kind == words[DELIVERED], DELIVERED)
        .when(kind == "started", STARTED)
        .otherwise(OTHER)
        .alias("kind"),
        column("message_source", "string", "").alias("source"),
        column("message_incarnation", "int", -1).alias("source_life"),
        column("message_number", "bigint", _ABSENT).alias("number"),
        to.alias("to"),
        column("deadline_us", "bigint", _ABSENT).alias("deadline"),
        column("clock_us", "bigint", _ABSENT).alias("clock"),
        sf.col("_metadata.file_modification_time").cast("double").alias("written"),
    )


def _start(frame: DataFrame, asked: Asked, layout: Layout, ledger: Ledger, watch: _Watch) -> StreamingQuery:
    groups = [f"by{place}" for place in range(len(layout.by))]
    told = frame.groupBy(*groups).applyInPandasWithState(
        _Follow(asked, str(ledger.folder)), _TOLD, _KEPT, "update", "NoTimeout"
    )
    return (
        told.writeStream.outputMode("update")
        .foreachBatch(watch.batch)
        .option("checkpointLocation", str(ledger.folder / "spark"))
        .start()
    )


def _wait(query: StreamingQuery, watch: _Watch, idle_s: float | None) -> None:
    """Until the query ends by itself, which is a failure, or nothing has come for long enough."""
    from pyspark.errors import PySparkException

    try:
        while not query.awaitTermination(_POLL_S):
            if not query.status["message"].startswith(_IDLE):
                watch.latest = time.monotonic()
            if idle_s is not None and time.monotonic() - watch.latest > idle_s:
                return
    except PySparkException as error:
        raise plain_error(error) from None


class _Watch:
    """What the driver does with each batch: remember it, then say it."""

    def __init__(self, ledger: Ledger, hear: Callable[[list[Heard]], None] | None) -> None:
        self.ledger, self.hear = ledger, hear
        self.latest = time.monotonic()

    def batch(self, frame: DataFrame, number: int) -> None:
        told = frame.toArrow()["standing"].to_pylist()
        self.latest = time.monotonic()
        heard = self.ledger.enter(number, [msgspec.json.decode(text, type=Standing) for text in told])
        if self.hear is not None and heard:
            self.hear(heard)
        self.ledger.close(number)


_RUNS: dict[tuple[str, tuple[Any, ...]], LiveRun] = {}
"""Runs this worker had last, so that it need not unpack what it packed itself a second ago."""


class _Follow:
    """The work on one run's rows of one batch."""

    def __init__(self, asked: Asked, where: str) -> None:
        self.asked, self.where = asked, where

    def __call__(
        self, key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        group = [str(part) for part in key]
        run = self._run(tuple(group), state)
        rows: list[tuple[str, int, LiveRow]] = []
        written: dict[str, int] = {}
        for frame in frames:  # a group may come in several pieces; they are one
            rows += self._read(frame)
            for at, count in frame["written"].value_counts().items():
                written[str(at)] = written.get(str(at), 0) + int(count)
        known = len(run.conflicts)
        violations = run.add(rows)
        state.update((run.version, run.pack()))
        _RUNS[self.where, tuple(group)] = run
        standing = Standing(
            group=group,
            order=run.order,
            rows=run.rows,
            deliveries=run.deliveries,
            counts=run.counts,
            held=run.held,
            parked=run.parked,
            waits_for=run.waits_for(),
            conflicts=run.conflicts,
            new_conflicts=run.conflicts[known:],
            violations=violations,
            written=written,
            timed=bool(run.deadline),
            clock_missing=run.clock_missing,
        )
        yield pd.DataFrame({"standing": [msgspec.json.encode(standing).decode()]})

    def _run(self, group: tuple[str, ...], state: GroupState) -> LiveRun:
        if not state.exists:
            order = next(known for known in ORDERS if known == self.asked.order)
            return LiveRun(order, self.asked.duplicates == "allow")
        version, packed = state.get
        run = _RUNS.get((self.where, group))
        return run if run is not None and run.version == version else LiveRun.unpack(packed)

    def _read(self, frame: pd.DataFrame) -> Iterator[tuple[str, int, LiveRow]]:
        names = ("node", "life", "step", "kind", "source", "source_life", "number", "to", "deadline", "clock")
        for node, life, step, kind, source, source_life, number, to, deadline, clock in zip(
            *(frame[name].tolist() for name in names), strict=True
        ):
            if node == "" or step < 0:
                raise BadInput(f"a row without {'step' if node else 'node'} (node {node!r})")
            if kind in (OTHER, STARTED):
                yield node, life, LiveRow(step, kind)
                continue
            if number == _ABSENT or (source == "" and kind == DELIVERED):
                raise BadInput(f"step {step} of node {node!r}: message_source or message_number is missing")
            if kind == DELIVERED:
                moment = None if clock == _ABSENT else clock
                yield node, life, LiveRow(step, kind, source, max(source_life, 0), number, clock=moment)
                continue
            addressed = destinations(to, 0, lambda _: f"step {step} of node {node!r}")  # noqa: B023
            yield (
                node,
                life,
                LiveRow(
                    *(step, kind, source or node, life if source_life < 0 else source_life, number),
                    to=None if addressed is None else sorted(addressed),
                    deadline=None if deadline == _ABSENT else deadline,
                ),
            )
