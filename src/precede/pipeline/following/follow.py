"""`precede verify --follow`: verifies a log that grows, with Structured Streaming.

Rows come from segments in a folder or from Kafka. Spark divides them into batches and remembers which rows a
batch has; each batch is judged by one task for each bucket of runs (`following.state`) and recorded in the
ledger (`following.ledger`). The job can be killed at any time and run again: no row is counted twice, and no
violation is lost or stored twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow.parquet as pq

from precede.core.errors import BadInput
from precede.pipeline.following.ledger import Ledger
from precede.pipeline.following.messages import NAMES, SCHEME, message_rows, read_url
from precede.pipeline.following.rows import BUCKET, run_columns
from precede.pipeline.following.segments import first_segment, segment_rows
from precede.pipeline.following.standings import BatchReport, BucketReport
from precede.pipeline.following.state import REPORT_DDL, Judge
from precede.pipeline.judging.answers import combine
from precede.pipeline.judging.files import plain_error
from precede.pipeline.judging.query import Query, settle_query
from precede.pipeline.sessions.tasks import cores, described
from precede.witness.reading.column_names import Layout
from precede.witness.reading.logs import read_members, read_promise
from precede.witness.reading.partitions import Piece
from precede.witness.verdict import ORDERS, Duplicates, Order, Verdict, read_order
from precede.witness.verify import VerifyOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

CHECKPOINT: Final = "_follow"
"""The folder of the checkpoint, inside the log's folder; readers of Parquet skip it."""

RETAIN_US: Final = 24 * 3600 * 1_000_000
"""How long messages are kept that are not settled, by default."""

_POLL_S: Final = 0.2
_WAITING: Final = "Waiting"
"""The beginning of Spark's status message when it has listed the source and has nothing to do."""

_LISTING: Final = "Getting offsets"
"""The beginning of Spark's status message while it lists the source; it does so again and again."""

_STARTS: Final = 3
_SLOW_WORKER: Final = "Timed out while waiting for the Python worker to connect back"
_SETTINGS: Final = {
    "spark.sql.streaming.minBatchesToRetain": "5",
    "spark.sql.streaming.pollingDelay": f"{round(_POLL_S * 1000)}ms",
}


def follow(
    session: SparkSession,
    log: str | Path,
    order: Order | None = None,
    *,
    columns: str | Mapping[str, str] | None = None,
    by: str | Sequence[str] | None = None,
    kinds: str | Mapping[str, str] | None = None,
    duplicates: Duplicates = "forbid",
    members: str | Sequence[str] | None = None,
    checkpoint: str | Path | None = None,
    idle_s: float | None = None,
    retain_us: int | None = RETAIN_US,
    kafka: Mapping[str, str] | None = None,
    report: Callable[[list[BatchReport]], None] | None = None,
) -> Verdict:
    """Follow a log until no rows came for `idle_s` seconds, or until KeyboardInterrupt.

    The log is a folder of segments, or `kafka://HOST:PORT/TOPIC`, for which `kafka` has further options of
    Spark's Kafka source. `report` is called after each batch with the state of every run and its new
    violations. The verdict covers all rows since the checkpoint was begun; it is unknown while rows wait for
    others. `retain_us` says how long messages are kept that some node has not delivered, by the clocks of the
    log. Agreement of `members` is judged by the rows so far, so end the follower only after everything was
    delivered and written.
    """
    options = VerifyOptions(columns=columns, by=by, kinds=kinds, duplicates=duplicates, members=members)
    if str(log).startswith(SCHEME):
        if checkpoint is None:
            raise BadInput(f"{log}: --follow of a topic needs --checkpoint DIR")
        rows, query, layout = _open_topic(session, str(log), kafka or {}, order, options)
    else:
        log = Path(log).absolute()
        rows, query, layout = _open_folder(session, log, first_segment(log, idle_s), order, options)
    folder = Path(checkpoint or Path(log) / CHECKPOINT).absolute()
    ledger = Ledger.open(folder, query, layout.columns, cores(session))
    batches = Batches(ledger, query, retain_us, report, str(log))
    for key, value in _SETTINGS.items():
        session.conf.set(key, value)
    session.conf.set("spark.sql.shuffle.partitions", str(ledger.buckets))
    _run(rows, folder, batches, idle_s)
    return combine(ledger.answers(), layout.by)


def _open_topic(
    session: SparkSession, url: str, settings: Mapping[str, str], order: Order | None, options: VerifyOptions
) -> tuple[DataFrame, Query, Layout]:
    """Open the rows of a Kafka topic."""
    topics = read_url(url)
    query, layout = settle_query(NAMES, order, keep_times=True, **options)
    _check_layout(url, layout)
    return message_rows(session, topics, settings, layout, query.order), query, layout


def _open_folder(
    session: SparkSession, folder: Path, first: Piece, order: Order | None, options: VerifyOptions
) -> tuple[DataFrame, Query, Layout]:
    """Open the rows of a folder of segments; the columns are those of the first one."""
    promised = read_promise(folder / "run.json")
    if order is None and promised in ORDERS:
        order = read_order(promised)
    if options["members"] is None and order == "total":
        options = {**options, "members": read_members(folder / "run.json") or None}
    in_file = pq.read_schema(first.path).names
    in_folders = [name for name in first.named if name not in in_file]
    query, layout = settle_query([*in_file, *in_folders], order, keep_times=True, **options)
    for name in in_folders:
        if name in layout.names_to_read():
            raise BadInput(f"{first.path}: --follow reads columns from files, not from folders ({name}=…)")
    _check_layout(str(first.path), layout)
    return segment_rows(session, folder, first.path, layout), query, layout


def _check_layout(log: str, layout: Layout) -> None:
    """Raise BadInput if a column is missing that a follower needs."""
    if not layout.numbered:
        raise BadInput(f"{log}: --follow needs message_source and message_number, not one opaque id")
    if layout.row_order or layout.constant_kind is not None:
        raise BadInput(f"{log}: --follow needs the columns step and kind")
    if not layout.by:
        raise BadInput(f"{log}: --follow needs a column that names the run (run_id, or --by)")


def _run(rows: DataFrame, folder: Path, batches: Batches, idle_s: float | None) -> None:
    """Run the streaming query until it is idle or interrupted.

    Spark waits only ten seconds for the Python process of a source to start. On a busy machine that is too
    short, so the query is started again.
    """
    for start in range(1, _STARTS + 1):
        stream = (
            rows.writeStream.foreachBatch(batches.batch)
            .option("checkpointLocation", str(folder / "spark"))
            .start()
        )
        try:
            _wait(stream, batches, idle_s)
            return
        except KeyboardInterrupt:
            return
        except Exception as error:
            if start == _STARTS or _SLOW_WORKER not in str(error):
                raise
        finally:
            stream.stop()


def _wait(stream: StreamingQuery, batches: Batches, idle_s: float | None) -> None:
    """Wait until nothing has come for `idle_s` seconds, or until the query ends or fails.

    The first listing of the source may take longer than `idle_s` on a busy machine, and new rows may be there
    before a batch begins. So the time counts only from the end of that listing. Raises the error of a query
    that fails.
    """
    from pyspark.errors import PySparkException

    listed = False
    try:
        while not stream.awaitTermination(_POLL_S):
            message = stream.status["message"]
            listed = listed or message.startswith(_WAITING)
            if not (listed and message.startswith((_WAITING, _LISTING))):
                batches.latest = time.monotonic()
            if idle_s is not None and time.monotonic() - batches.latest > idle_s:
                return
    except PySparkException as error:
        raise plain_error(error) from None


class Batches:
    """The driver's work on each batch: have it judged, enter it into the ledger, report it."""

    def __init__(
        self,
        ledger: Ledger,
        query: Query,
        retain_us: int | None,
        report: Callable[[list[BatchReport]], None] | None,
        log: str,
    ) -> None:
        self.ledger, self.query, self.retain_us = ledger, query, retain_us
        self.report, self.log = report, log
        self.latest = time.monotonic()

    def batch(self, frame: DataFrame, number: int) -> None:
        """Handle one batch of rows; Spark calls it, after a kill with the same rows again."""
        if number <= self.ledger.done:
            return
        buckets = self._judge(frame, number)
        self.latest = time.monotonic()
        reports = self.ledger.enter(number, buckets)
        if self.report is not None and reports:
            self.report(reports)
        self.ledger.close(number, buckets)

    def _judge(self, frame: DataFrame, number: int) -> list[BucketReport]:
        """Have the rows judged, each bucket by one task."""
        from pyspark.sql import functions as sf

        ledger = self.ledger
        judge = Judge(self.query, self.retain_us, str(ledger.folder), number, ledger.files)
        names = sf.concat_ws("\0", *run_columns(self.query.by))
        place = sf.when(sf.col("cause").isNull(), names).otherwise(sf.col("place"))
        bucket = sf.pmod(sf.xxhash64(place), sf.lit(ledger.buckets)).cast("int")
        grouped = frame.withColumn(BUCKET, bucket).groupBy(BUCKET)
        judged = grouped.applyInArrow(lambda rows: judge(rows), REPORT_DDL)  # noqa: PLW0108
        with described(frame.sparkSession, f"verify --follow {self.log}: batch {number}"):
            packed = judged.toArrow()["report"].to_pylist()
        buckets = [msgspec.msgpack.decode(each, type=BucketReport) for each in packed]
        return sorted(buckets, key=lambda each: each.bucket)
