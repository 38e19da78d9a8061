"""A Kafka broker on loopback: librdkafka's mock cluster, which lives in a producer of this process."""

from __future__ import annotations

import json

from confluent_kafka import Producer


class Broker:
    """A mock broker with one topic; `url` is what `precede verify --follow` takes."""

    def __init__(self, topic, partitions=2):
        self.topic, self.partitions = topic, partitions
        settings = {"bootstrap.servers": "unused", "test.mock.num.brokers": 1}
        self._producer = Producer(settings | {"topic.metadata.refresh.interval.ms": 1000})
        (broker,) = self._producer.list_topics(timeout=30).brokers.values()
        self.servers = f"{broker.host}:{broker.port}"
        self.url = f"kafka://{self.servers}/{topic}"

    def send(self, rows):
        """Send rows, or bytes as they are; all rows of a node go to one partition."""
        for row in rows:
            value = row if isinstance(row, bytes) else json.dumps(row).encode()
            number = sum(row["node"].encode()) % self.partitions if isinstance(row, dict) else 0
            self._producer.produce(self.topic, value, partition=number)
            self._producer.poll(0)
        assert self._producer.flush(60) == 0
