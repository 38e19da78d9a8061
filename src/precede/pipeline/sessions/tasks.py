"""Numbered pieces of work as Spark tasks, or in this process when there is no session.

A piece is a call `function(number)` that reads its own input, writes its own files and returns something small.
Only numbers are sent and small answers come back: bulk rows never pass through the JVM. This needs no
`SparkContext`, so a Spark Connect session works too.
"""

from __future__ import annotations

import gc
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import pyarrow as pa

import precede.core.dispatch
from precede.core.compiling import is_compiled
from precede.core.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Work: TypeAlias = Callable[[int], Any]
"""A function that is called with 0, 1, 2, … It is picklable and returns plain data."""

Progress: TypeAlias = Callable[[int, int], None]
"""A function that is called with the number of pieces that are done and the number of all pieces."""

Watch: TypeAlias = Callable[[], None]
"""A function that is called every half second while tasks run."""

_POLL_S = 0.5
_settled: set[int] = set()
"""The numbers of loaded modules at which this worker has taken its modules out of garbage collection."""


def spread(
    session: SparkSession | None, what: str, function: Work, count: int, watch: Watch | None = None
) -> list[Any]:
    """Return `[function(0), …, function(count - 1)]`; each call is one Spark task.

    Spark's UI shows the job as `what`. Without a session the calls are made in this process, one after the
    other. A task whose worker dies is run again. A BadInput that a task raises is raised by `spread` and not
    tried again; a task that fails with another error is tried again three times.
    """
    if session is None or count == 0:
        answers = []
        for number in range(count):
            answers.append(function(number))
            if watch is not None:
                watch()
        return answers
    frame = session.range(0, count, 1, count).mapInArrow(_Task(function), "number bigint, answer binary")
    with described(session, what), _watched(watch):
        table = frame.toArrow()
    by_number: dict[int, Any] = {}
    for number, packed in zip(table["number"].to_pylist(), table["answer"].to_pylist(), strict=True):
        reply = msgspec.msgpack.decode(packed)
        if "refused" in reply:
            raise BadInput(reply["refused"])
        by_number[number] = reply["answer"]
    return [by_number[number] for number in range(count)]


@contextmanager
def described(session: SparkSession, what: str) -> Iterator[None]:
    """Give the Spark jobs of the block this description, which Spark's UI shows.

    A Connect client cannot set a description; there the text is added to the session as a tag while the block
    runs.
    """
    from pyspark.errors import PySparkException

    try:
        context = session.sparkContext
    except PySparkException:  # a Connect client has no context
        tag = what.replace(",", ";")
        session.addTag(tag)
        try:
            yield
        finally:
            session.removeTag(tag)
        return
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(what)
    try:
        yield
    finally:
        context.setLocalProperty("spark.job.description", before)


def cores(session: SparkSession | None) -> int:
    """Return how many tasks can run at once; in a Connect client, the cores of its own machine."""
    if session is None:
        return 1
    from pyspark.errors import PySparkException

    try:
        return int(session.sparkContext.defaultParallelism)
    except PySparkException:  # a Connect client has no context
        return os.cpu_count() or 1


def attempt_number() -> int:
    """Return the number of this attempt of the running task, from 0; 0 outside Spark."""
    if sys.modules.get("pyspark") is None:  # a sweep with --here needs no Spark
        return 0
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.attemptNumber() if context is not None else 0


def task_facts() -> dict[str, Any]:
    """Return facts for the done mark of a unit: attempt, worker (machine and process), engine, time."""
    return {
        "attempt": attempt_number(),
        "worker": f"{platform.node()}:{os.getpid()}",
        "engine": "compiled" if is_compiled(precede.core.dispatch) else "plain",
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def settle_worker() -> None:
    """Freeze loaded modules: PySpark collects garbage after every task, and numba cost 90 ms each time."""
    if len(sys.modules) not in _settled:
        _settled.add(len(sys.modules))
        gc.collect()
        gc.freeze()


class _Task:
    """Calls the function of `spread` in a Spark task: batches of numbers come in, batches of answers go out.

    A BadInput of the function is sent back as an answer, so that Spark does not try the task again.
    """

    def __init__(self, function: Work) -> None:
        self.function = function

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                try:
                    reply = {"answer": self.function(number)}
                except BadInput as error:
                    reply = {"refused": str(error)}
                columns = [
                    pa.array([number], pa.int64()),
                    pa.array([msgspec.msgpack.encode(reply)], pa.binary()),
                ]
                yield pa.record_batch(columns, names=["number", "answer"])
        settle_worker()


class _watched:  # noqa: N801 - used as a word in a with statement
    """Calls a watch from its own thread while the driver waits for Spark."""

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
