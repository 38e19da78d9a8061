"""A Kafka source in Python, over confluent-kafka, for sessions that do not have Spark's own.

It takes the options of Spark's source (`kafka.bootstrap.servers`, `subscribe`, `startingOffsets`,
`maxOffsetsPerTrigger`; other settings of the client begin with `kafka.`) and gives the same columns. Spark's
checkpoint has the offsets, so every message is in exactly one batch; no offset is committed to the brokers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any, Final, TypeAlias

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from precede.core.errors import BadInput, Unavailable

Offsets: TypeAlias = dict[str, dict[str, int]]
"""By topic and partition: the offset of the first message that was not read."""

_TIMEOUT_S: Final = 30.0
_STARTS: Final = ("earliest", "latest")
_SCHEMA: Final = (
    "key binary, value binary, topic string, partition int, `offset` bigint, timestamp timestamp, "
    "timestampType int"
)


class KafkaSource(DataSource):  # type: ignore[misc, unused-ignore]
    """The data source `precede-kafka`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "precede-kafka"

    def schema(self) -> str:
        """The columns of Spark's own Kafka source, without headers."""
        return _SCHEMA

    def streamReader(self, schema: StructType) -> KafkaReader:  # noqa: N802 (Spark's name)
        """Return the reader of a streaming query."""
        return KafkaReader(dict(self.options))


class Slice(InputPartition):  # type: ignore[misc, unused-ignore]
    """Messages of one partition, from an offset up to another one."""

    def __init__(self, topic: str, partition: int, begin: int, end: int) -> None:
        self.topic, self.partition, self.begin, self.end = topic, partition, begin, end


class KafkaReader(DataSourceStreamReader):  # type: ignore[misc, unused-ignore]
    """Reads topics; Spark calls it on the driver, and `read` in tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = {name.lower(): value for name, value in options.items()}
        self.topics = [name.strip() for name in given["subscribe"].split(",")]
        self.start = given.get("startingoffsets", "earliest")
        if self.start not in _STARTS:
            raise BadInput(f"startingOffsets: expected earliest or latest, not {self.start!r}")
        self.at_once = int(given.get("maxoffsetspertrigger", "0"))
        self.client = {
            name.removeprefix("kafka."): value for name, value in given.items() if name.startswith("kafka.")
        }
        self._consumer: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_consumer": None}

    def initialOffset(self) -> Offsets:  # noqa: N802 (Spark's name)
        """Where a new query begins."""
        place = _STARTS.index(self.start)
        return {
            topic: {number: ends[place] for number, ends in partitions.items()}
            for topic, partitions in self._watermarks().items()
        }

    def latestOffset(self, start: Offsets | None = None, limit: Any = None) -> Offsets:  # noqa: N802
        """Where the next batch ends. Spark before 4.2 gives no `start`; then a batch has all there is."""
        watermarks = self._watermarks()
        ends = {
            topic: {number: last for number, (_, last) in partitions.items()}
            for topic, partitions in watermarks.items()
        }
        most = getattr(limit, "max_rows", None)
        if start is None or most is None:
            return ends
        waiting = sum(
            end - start.get(topic, {}).get(number, 0)
            for topic, partitions in ends.items()
            for number, end in partitions.items()
        )
        share = min(1.0, most / waiting) if waiting > 0 else 1.0
        for topic, partitions in ends.items():
            for number, end in partitions.items():
                begin = start.get(topic, {}).get(number, watermarks[topic][number][0])
                partitions[number] = min(end, begin + ceil((end - begin) * share))
        return ends

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 (Spark's name)
        """At most `maxOffsetsPerTrigger` messages in a batch."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

        return ReadMaxRows(self.at_once) if self.at_once else ReadAllAvailable()

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """One slice for each partition that has messages between the offsets."""
        return [
            Slice(topic, int(number), begin, last)
            for topic, partitions in end.items()
            for number, last in partitions.items()
            if (begin := start.get(topic, {}).get(number, 0)) < last
        ]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Yield the messages of a slice. Raises Unavailable if they cannot be read, or are gone."""
        from confluent_kafka import KafkaError, TopicPartition

        assert isinstance(partition, Slice)
        place = f"{partition.topic}, partition {partition.partition}"
        consumer = self._connect()
        try:
            consumer.assign([TopicPartition(partition.topic, partition.partition, partition.begin)])
            position = partition.begin
            while position < partition.end:
                message = consumer.poll(_TIMEOUT_S)
                if message is None:
                    raise Unavailable(f"{place}: no message came in {_TIMEOUT_S:.0f} s, at offset {position}")
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    return  # the last offsets are no messages but marks of transactions
                if error is not None:
                    raise Unavailable(f"{place}, offset {position}: {error.str()}")
                if message.offset() >= partition.end:
                    return
                position = message.offset() + 1
                yield _row(message)
        finally:
            consumer.close()

    def stop(self) -> None:
        """Close the connection."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _watermarks(self) -> dict[str, dict[str, tuple[int, int]]]:
        """By topic and partition: the first offset that is kept, and the next one that will be written."""
        from confluent_kafka import KafkaException, TopicPartition

        if self._consumer is None:
            self._consumer = self._connect()
        try:
            partitions: dict[str, dict[str, tuple[int, int]]] = {}
            for topic in self.topics:
                about = self._consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
                if about.error is not None:
                    raise Unavailable(f"topic {topic}: {about.error.str()}")
                partitions[topic] = {
                    str(number): self._consumer.get_watermark_offsets(
                        TopicPartition(topic, number), timeout=_TIMEOUT_S
                    )
                    for number in sorted(about.partitions)
                }
            return partitions
        except KafkaException as error:
            raise Unavailable(f"{self.client.get('bootstrap.servers')}: {error.args[0].str()}") from None

    def _connect(self) -> Any:
        from confluent_kafka import Consumer

        return Consumer(
            {
                "group.id": "precede",
                **self.client,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
            }
        )


def _row(message: Any) -> tuple[Any, ...]:
    from datetime import UTC, datetime

    kind, milliseconds = message.timestamp()
    at = datetime.fromtimestamp(max(milliseconds, 0) / 1000, UTC)
    return (message.key(), message.value(), message.topic(), message.partition(), message.offset(), at, kind)
