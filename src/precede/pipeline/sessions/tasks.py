"""Spreading numbered pieces of work over Spark's tasks, or doing them here when there is no session.

A piece is a call `function(number)` that reads its own input, writes its own files and returns something small.
Only numbers go out and small answers come back: bulk rows never pass through the JVM. Nothing here needs a
`SparkContext`, so a Connect session serves as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import pyarrow as pa

from precede.core.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Work: TypeAlias = Callable[[int], Any]
"""Called with 0, 1, 2 ...; picklable; what it returns is plain data."""

Watch: TypeAlias = Callable[[], None]
"""Called every half second while the work goes on."""

_POLL_S = 0.5


def spread(session: SparkSession | None, function: Work, count: int, watch: Watch | None = None) -> list[Any]:
    """`[function(0), ..., function(count - 1)]`, each as one task that is tried again when its worker dies.

    A BadInput is raised here as it was raised there, and not tried again; any other error is, three times.
    """
    if session is None or count == 0:
        answers = []
        for number in range(count):
            answers.append(function(number))
            if watch is not None:
                watch()
        return answers
    frame = session.range(0, count, 1, count).mapInArrow(_Task(function), "number bigint, answer binary")
    with _watched(watch):
        table = frame.toArrow()
    found: dict[int, Any] = {}
    for number, answer in zip(table["number"].to_pylist(), table["answer"].to_pylist(), strict=True):
        told = msgspec.msgpack.decode(answer)
        if "refused" in told:
            raise BadInput(told["refused"])
        found[number] = told["answer"]
    return [found[number] for number in range(count)]


def cores(session: SparkSession | None) -> int:
    """How many tasks can run at once, as well as it is known; 1 without a session."""
    if session is None:
        return 1
    from pyspark.errors import PySparkException

    try:
        return int(session.sparkContext.defaultParallelism)
    except PySparkException:  # a Connect client has no context
        return os.cpu_count() or 1


def attempt_number() -> int:
    """Which attempt of its task this is, from 0; 0 outside Spark."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.attemptNumber() if context is not None else 0


class _Task:
    """The work as Spark calls it: batches of numbers in, batches of answers out."""

    def __init__(self, function: Work) -> None:
        self.function = function

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                try:
                    told = {"answer": self.function(number)}
                except BadInput as error:
                    told = {"refused": str(error)}
                answer = msgspec.msgpack.encode(told)
                columns = [pa.array([number], pa.int64()), pa.array([answer], pa.binary())]
                yield pa.record_batch(columns, names=["number", "answer"])


class _watched:  # noqa: N801 - used as a word in a with statement
    """Calls a watch from a thread of its own while the driver waits for Spark."""

    def __init__(self, watch: Watch | None) -> None:
        self.over = Event()
        self.thread = None if watch is None else Thread(target=self._run, args=(watch,), daemon=True)

    def _run(self, watch: Watch) -> None:
        while not self.over.wait(_POLL_S):
            watch()

    def __enter__(self) -> None:
        if self.thread is not None:
            self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        if self.thread is not None:
            self.thread.join()
