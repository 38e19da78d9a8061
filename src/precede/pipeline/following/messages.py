"""Rows from the messages of Kafka topics: the value of a message is one row of the event log, as JSON.

A message that is no such row is rejected: its topic, partition, offset and the cause go to the table `rejects`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
import pyarrow as pa

from precede.core.errors import BadInput
from precede.pipeline.following.rows import ABSENT, arrow_schema, ddl, kind_of
from precede.witness.reading.column_names import BROADCAST, DELIVERED, Layout
from precede.witness.reading.values import destinations, text, whole
from precede.witness.verdict import Order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEME: Final = "kafka://"
NAMES: Final = (
    *("run_id", "node", "incarnation", "step", "clock_us", "kind", "message_source", "message_incarnation"),
    *("message_number", "destinations", "deadline_us"),
)
"""The columns that a message can have: those of the event log that the verifier reads."""

_AT_ONCE: Final = "100000"
_INT32: Final = (1 << 31) - 1
_CAUSE_LENGTH: Final = 200


class Topics(NamedTuple):
    """Where messages come from: brokers (`host:port,host:port`) and topics (`a,b`)."""

    brokers: str
    topics: str


def read_url(url: str) -> Topics:
    """Read `kafka://HOST:PORT,HOST:PORT/TOPIC,TOPIC`. Raises BadInput if it is none.

    >>> read_url("kafka://localhost:9092/events")
    Topics(brokers='localhost:9092', topics='events')
    """
    parts = urlsplit(url)
    topics = parts.path.strip("/")
    if parts.scheme != "kafka" or not parts.netloc or not topics or "/" in topics:
        raise BadInput(f"{url}: expected kafka://HOST:PORT/TOPIC")
    return Topics(parts.netloc, topics)


def message_rows(
    session: SparkSession, source: Topics, options: Mapping[str, str], layout: Layout, order: Order
) -> DataFrame:
    """Open topics as a streaming DataFrame with the columns of `following.rows`.

    Spark's own Kafka source is used if the session has it, else the one in `following.kafka_source`. Both take
    the same options and give the same columns.
    """
    from pyspark.errors import AnalysisException

    settings = {
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": _AT_ONCE,
        **options,
        "kafka.bootstrap.servers": source.brokers,
        "subscribe": source.topics,
    }
    try:
        stream = session.readStream.format("kafka").options(**settings).load()
    except AnalysisException as error:
        if "kafka" not in str(error).lower():
            raise
        import confluent_kafka  # noqa: F401  (if it is missing, the error names the extra)

        from precede.pipeline.following.kafka_source import KafkaSource

        session.dataSource.register(KafkaSource)
        stream = session.readStream.format(KafkaSource.name()).options(**settings).load()
    columns = stream.selectExpr(
        *("topic", "partition", "`offset`", "value", "cast(timestamp as double) as written")
    )
    return columns.mapInArrow(Decoder(layout, order), ddl(layout.by))


class Decoder:
    """Turns messages into rows; Spark calls it with Arrow batches."""

    def __init__(self, layout: Layout, order: Order) -> None:
        self.layout, self.order = layout, order

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(self.layout.by)
        for batch in batches:
            rows = [self.decode(**message) for message in batch.to_pylist()]
            yield pa.RecordBatch.from_pylist(rows, schema)

    def decode(
        self, topic: str, partition: int, offset: int, value: bytes | None, written: float
    ) -> dict[str, Any]:
        """Return the row of a message, or a row with the cause why it is none."""
        row = {"place": msgspec.json.encode([topic, partition, offset]).decode(), "written": written}
        try:
            return row | self._row(value)
        except BadInput as error:
            return row | {"cause": str(error).removeprefix(": ")[:_CAUSE_LENGTH]}

    def _row(self, value: bytes | None) -> dict[str, Any]:
        if value is None:
            raise BadInput("the message has no value")
        try:
            given = msgspec.json.decode(value, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadInput(f"not a JSON object: {error}") from None
        columns = self.layout.columns

        def get(ours: str) -> Any:
            return given.get(columns.get(ours, ours))

        def number(ours: str, least: int, most: int, absent: int | None = None) -> int:
            if absent is not None and get(ours) is None:
                return absent
            value = whole(get(ours), 0, columns.get(ours, ours), _no_place)
            if not least <= value <= most:
                raise BadInput(f"{columns.get(ours, ours)} is out of range: {value}")
            return value

        row: dict[str, Any] = {
            f"by{index}": text(given.get(name), 0, name, _no_place) for index, name in enumerate(self.layout.by)
        }
        kind = kind_of(text(get("kind"), 0, columns["kind"], _no_place), dict(self.layout.kinds))
        row |= {
            "node": text(get("node"), 0, columns["node"], _no_place),
            "incarnation": number("incarnation", 0, _INT32, 0),
            "step": number("step", 0, _INT32),
            "kind": kind,
            "source": "",
            "source_incarnation": number("message_incarnation", 0, _INT32, -1),
            "number": ABSENT,
            "to": "",
            "deadline": number("deadline_us", -(1 << 62), 1 << 62, ABSENT),
            "clock": number("clock_us", -(1 << 62), 1 << 62, ABSENT),
        }
        if kind in (BROADCAST, DELIVERED):
            row["number"] = number("message_number", -(1 << 62), 1 << 62)
        if kind == DELIVERED or (kind == BROADCAST and get("message_source") is not None):
            row["source"] = text(get("message_source"), 0, columns["message_source"], _no_place)
        if kind == BROADCAST:
            theirs = columns.get("destinations", "destinations")
            if self.order == "multicast" and theirs not in given:
                raise BadInput(f"{theirs} is missing: multicast order needs it (null means all)")
            to = destinations(get("destinations"), 0, _no_place)
            row["to"] = "" if to is None else msgspec.json.encode(sorted(to)).decode()
        return row


def _no_place(_: int) -> str:
    return ""
