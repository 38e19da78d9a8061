"""`precede verify --follow`: verifies a log that grows, with Structured Streaming.

Nodes write Parquet segments of the event log into a folder (docs/reference/formats.md). For every run Spark's
state store keeps the state of an incremental verifier (`precede.witness.live`); a batch adds rows, and the
verifier returns the violations that they prove. The ledger next to the checkpoint records what was reported, so
the job can be killed at any time and run again: no row is counted twice and no violation is lost.
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
from precede.pipeline.judging.answers import combine
from precede.pipeline.judging.files import plain_error
from precede.pipeline.judging.ledger import BatchReport, Ledger, Standing
from precede.pipeline.judging.query import Query, settle_query
from precede.pipeline.sessions.frames import escape_path
from precede.pipeline.sessions.tasks import cores
from precede.witness.live.agreement import LiveAgreement
from precede.witness.live.intake import STARTED
from precede.witness.live.live import LiveRun
from precede.witness.live.state import LiveRow
from precede.witness.reading.column_names import BROADCAST, DELIVERED, OTHER, Layout
from precede.witness.reading.logs import read_members, read_promise
from precede.witness.reading.partitions import Piece, pieces_in
from precede.witness.reading.values import destinations
from precede.witness.verdict import ORDERS, Duplicates, Order, Verdict, read_order

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.state import GroupState

CHECKPOINT: Final = "_follow"
"""The folder of the checkpoint, inside the log's folder; readers of Parquet skip it."""

_FILES_AT_ONCE: Final = 1_000
_POLL_S: Final = 0.2
_ABSENT: Final = -(1 << 63)
_WAITING: Final = "Waiting"
"""The beginning of Spark's status message when it has listed the folder and has nothing to do."""

_LISTING: Final = "Getting offsets"
"""The beginning of Spark's status message while it lists the folder; it does so again and again."""

_OUTPUT: Final = "standing string"
_STATE: Final = "version bigint, run binary"
_SETTINGS: Final = {
    "spark.sql.streaming.minBatchesToRetain": "5",
    "spark.sql.streaming.pollingDelay": f"{round(_POLL_S * 1000)}ms",
}


def follow(
    session: SparkSession,
    folder: str | Path,
    order: Order | None = None,
    *,
    columns: str | Mapping[str, str] | None = None,
    by: str | Sequence[str] | None = None,
    kinds: str | Mapping[str, str] | None = None,
    duplicates: Duplicates = "forbid",
    members: str | Sequence[str] | None = None,
    checkpoint: str | Path | None = None,
    idle_s: float | None = None,
    report: Callable[[list[BatchReport]], None] | None = None,
) -> Verdict:
    """Follow a folder of segments until none came for `idle_s` seconds, or until KeyboardInterrupt.

    `report` is called after each batch with the state of every run and its new violations. The verdict covers
    all rows since the checkpoint was begun; it is unknown while rows wait for others. Agreement of `members` is
    judged by the rows so far, so end the follower only after everything was delivered and written.
    """
    folder = Path(folder).absolute()
    first = _first_segment(folder, idle_s)
    if first is None:
        raise BadInput(f"{folder}: no Parquet segment came")
    promised = read_promise(folder / "run.json")
    settled = order or (read_order(promised) if promised in ORDERS else None)
    in_file = pq.read_schema(first.path).names
    in_folders = [name for name in first.named if name not in in_file]
    if members is None and settled == "total":
        members = read_members(folder / "run.json") or None
    query, layout = settle_query(
        [*in_file, *in_folders], settled, by, columns, kinds, "counted", duplicates, members
    )
    for name in in_folders:
        if name in layout.names_to_read():
            raise BadInput(f"{first.path}: --follow reads columns from files, not from folders ({name}=…)")
    _check_layout(first.path, layout)
    ledger = Ledger.open(Path(checkpoint or folder / CHECKPOINT).absolute(), query)
    reporter = _Reporter(ledger, report)
    for key, value in _SETTINGS.items():
        session.conf.set(key, value)
    session.conf.set("spark.sql.shuffle.partitions", str(cores(session)))
    stream = _start(_rows(session, folder, first.path, layout), query, layout, ledger, reporter)
    try:
        _wait(stream, reporter, idle_s)
    except KeyboardInterrupt:
        pass
    finally:
        stream.stop()
    return combine(ledger.answers(layout.columns), layout.by)


def _first_segment(folder: Path, idle_s: float | None) -> Piece | None:
    """Wait for the first segment, whose columns are those of the log; None if none comes."""
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
    """Raise BadInput if a column is missing that a follower needs."""
    if not layout.numbered:
        raise BadInput(f"{first}: --follow needs message_source and message_number, not one opaque id")
    if layout.row_order or layout.constant_kind is not None:
        raise BadInput(f"{first}: --follow needs the columns step and kind")
    if not layout.by:
        raise BadInput(f"{first}: --follow needs a column that names the run (run_id, or --by)")


def _rows(session: SparkSession, folder: Path, first: Path, layout: Layout) -> DataFrame:
    """Open the growing log as a streaming DataFrame with the columns that `_Follow` reads, without nulls."""
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
        sf.when(kind == words[BROADCAST], BROADCAST)
        .when(kind == words[DELIVERED], DELIVERED)
        .when(kind == "started", STARTED)
        .otherwise(OTHER)
        .alias("kind"),
        column("message_source", "string", "").alias("source"),
        column("message_incarnation", "int", -1).alias("source_incarnation"),
        column("message_number", "bigint", _ABSENT).alias("number"),
        to.alias("to"),
        column("deadline_us", "bigint", _ABSENT).alias("deadline"),
        column("clock_us", "bigint", _ABSENT).alias("clock"),
        sf.col("_metadata.file_modification_time").cast("double").alias("written"),
    )


def _start(
    frame: DataFrame, query: Query, layout: Layout, ledger: Ledger, reporter: _Reporter
) -> StreamingQuery:
    """Start the streaming query: one state for each run, one call of the reporter for each batch."""
    groups = [f"by{index}" for index in range(len(layout.by))]
    standings = frame.groupBy(*groups).applyInPandasWithState(
        _Follow(query, str(ledger.folder)), _OUTPUT, _STATE, "update", "NoTimeout"
    )
    return (
        standings.writeStream.outputMode("update")
        .foreachBatch(reporter.batch)
        .option("checkpointLocation", str(ledger.folder / "spark"))
        .start()
    )


def _wait(stream: StreamingQuery, reporter: _Reporter, idle_s: float | None) -> None:
    """Wait until nothing has come for `idle_s` seconds, or until the query ends or fails.

    The first listing of the folder may take longer than `idle_s` on a busy machine, and new segments may be
    there before a batch begins. So the time counts only from the end of that listing. Raises the error of a
    query that fails.
    """
    from pyspark.errors import PySparkException

    listed = False
    try:
        while not stream.awaitTermination(_POLL_S):
            message = stream.status["message"]
            listed = listed or message.startswith(_WAITING)
            if not (listed and message.startswith((_WAITING, _LISTING))):
                reporter.latest = time.monotonic()
            if idle_s is not None and time.monotonic() - reporter.latest > idle_s:
                return
    except PySparkException as error:
        raise plain_error(error) from None


class _Reporter:
    """The driver's work on each batch: record it in the ledger, then report it."""

    def __init__(self, ledger: Ledger, report: Callable[[list[BatchReport]], None] | None) -> None:
        self.ledger, self.report = ledger, report
        self.latest = time.monotonic()

    def batch(self, frame: DataFrame, number: int) -> None:
        """Handle the output of one batch; Spark calls it."""
        texts = frame.toArrow()["standing"].to_pylist()
        self.latest = time.monotonic()
        reports = self.ledger.enter(number, [msgspec.json.decode(text, type=Standing) for text in texts])
        if self.report is not None and reports:
            self.report(reports)
        self.ledger.close(number)


_RUNS: dict[tuple[str, tuple[Any, ...]], LiveRun] = {}
"""The runs that this worker process handled last: a cache that saves unpacking the state."""


class _Follow:
    """Adds the rows of one batch to one run; Spark calls it with the run's state."""

    def __init__(self, query: Query, checkpoint: str) -> None:
        self.query, self.checkpoint = query, checkpoint

    def __call__(
        self, key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        group = [str(part) for part in key]
        run = self._run(tuple(group), state)
        rows: list[tuple[str, int, LiveRow]] = []
        written: dict[str, int] = {}
        for frame in frames:  # Spark may hand over the rows of a group in several frames
            rows += self._read(frame)
            for at, count in frame["written"].value_counts().items():
                written[str(at)] = written.get(str(at), 0) + int(count)
        live = run.state
        conflicts_before = len(live.conflicts)
        violations = run.add(rows)
        agreement = LiveAgreement(live, self.query.members)
        state.update((live.version, run.pack()))
        _RUNS[self.checkpoint, tuple(group)] = run
        standing = Standing(
            group=group,
            order=live.order,
            rows=live.rows,
            deliveries=live.deliveries,
            counts=live.counts,
            held=live.held,
            parked=live.parked,
            waits_for=live.waits_for(),
            conflicts=live.conflicts,
            new_conflicts=live.conflicts[conflicts_before:],
            violations=violations,
            written=written,
            timed=bool(live.deadline),
            clock_missing=live.clock_missing,
            absent=agreement.absent,
            lacks=agreement.lacks,
            first_lack=agreement.first(),
        )
        yield pd.DataFrame({"standing": [msgspec.json.encode(standing).decode()]})

    def _run(self, group: tuple[str, ...], state: GroupState) -> LiveRun:
        """Return the run before this batch: new, from this process's cache, or unpacked from the state."""
        if not state.exists:
            return LiveRun(self.query.order, self.query.duplicates == "allow")
        version, packed = state.get
        run = _RUNS.get((self.checkpoint, group))
        return run if run is not None and run.state.version == version else LiveRun.unpack(packed)

    def _read(self, frame: pd.DataFrame) -> Iterator[tuple[str, int, LiveRow]]:
        """Yield the rows of a frame, checked; with each its node and incarnation."""
        names = (
            *("node", "incarnation", "step", "kind", "source", "source_incarnation"),
            *("number", "to", "deadline", "clock"),
        )
        for node, incarnation, step, kind, source, source_incarnation, number, to, deadline, clock in zip(
            *(frame[name].tolist() for name in names), strict=True
        ):
            if node == "" or step < 0:
                raise BadInput(f"a row without {'step' if node else 'node'} (node {node!r})")
            if kind in (OTHER, STARTED):
                yield node, incarnation, LiveRow(step, kind)
                continue
            if number == _ABSENT or (source == "" and kind == DELIVERED):
                raise BadInput(f"step {step} of node {node!r}: message_source or message_number is missing")
            if kind == DELIVERED:
                moment = None if clock == _ABSENT else clock
                stream = (source, max(source_incarnation, 0), number)
                yield node, incarnation, LiveRow(step, kind, *stream, clock=moment)
                continue
            addressed = destinations(to, 0, lambda _: f"step {step} of node {node!r}")  # noqa: B023
            own = incarnation if source_incarnation < 0 else source_incarnation
            yield (
                node,
                incarnation,
                LiveRow(
                    *(step, kind, source or node, own, number),
                    to=None if addressed is None else sorted(addressed),
                    deadline=None if deadline == _ABSENT else deadline,
                ),
            )
