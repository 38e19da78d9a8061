"""What is known about a run after a batch, and what a batch brought."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from typing import Any

from msgspec import Struct

from precede.pipeline.judging.answers import answer_of
from precede.witness.verdict import Order, Verdict, Violation


class Standing(Struct, kw_only=True):
    """The state of one run after a batch; the run belongs to a bucket.

    `violations`, `new_conflicts` and `written` are what this batch added. `written` maps modification times of
    segments, or timestamps of messages (Unix seconds), to the number of rows that came from them. `timed` is
    true if a broadcast had a deadline, `clock_missing` if a delivery had no clock. `absent` has a reason for
    each member without rows, `lacks` counts the messages that members lack so far, `first_lack` is the first
    of them.
    """

    group: list[str]
    bucket: int
    order: Order
    rows: int
    deliveries: int
    counts: dict[str, int]
    held: int
    parked: int
    waits_for: list[str]
    conflicts: list[str]
    new_conflicts: list[str] = []
    violations: list[Violation] = []
    written: dict[str, int] = {}
    first: Violation | None = None
    timed: bool = False
    clock_missing: bool = False
    absent: list[str] = []
    lacks: int = 0
    first_lack: Violation | None = None


class Reject(Struct):
    """A message that is no row of the event log."""

    topic: str
    partition: int
    offset: int
    cause: str


class StateFile(Struct):
    """A file with pieces of the state of one bucket: its path below the checkpoint, and its size in bytes."""

    path: str
    size: int


class BucketReport(Struct):
    """What a task did with the rows of one bucket. `files` hold its state now, the oldest first."""

    bucket: int
    files: list[StateFile]
    standings: list[Standing]
    rejects: list[Reject]


class BatchReport(Struct, kw_only=True):
    """One run in one batch, as a follower reports it."""

    batch: int
    standing: Standing
    lag_s: float
    """The age of the rows of this batch since they were written: the median."""


def answer(run: Standing, columns: Collection[str], timed: bool) -> dict[str, Any]:
    """Return the state of one run as an answer (a verdict as a row, see `judging.answers`).

    `columns` are those of the log; `timed` says that some run has deadlines.
    """
    reasons = [*_lacking(run, columns, timed), *run.conflicts, *run.waits_for, *run.absent]
    if not run.deliveries:
        reasons.append("no deliveries at all")
    counts = run.counts | ({"agreement": run.lacks} if run.lacks else {})
    violations = sum(counts.values())
    verdict = Verdict(
        order=run.order,
        verdict="violated" if violations else "unknown" if reasons else "holds",
        rows=run.rows,
        deliveries_checked=run.deliveries,
        violations=violations,
        first=run.first or run.first_lack,
        counts=counts,
        reasons=tuple(reasons),
    )
    return {"group": run.group, **answer_of(verdict, run.rows)}


def _lacking(run: Standing, columns: Collection[str], timed: bool) -> Iterator[str]:
    """Yield why the verdict is unknown: data that the order needs and the log lacks."""
    if run.order == "multicast" and "destinations" not in columns:
        yield "multicast order needs the column destinations"
    if run.order == "delta" and not timed:
        yield "delta order needs deadlines: no broadcast row has a deadline_us"
    if run.order == "delta" and run.clock_missing:
        yield "delta order needs the delivering node's clock: a delivered row has no clock_us"


def median(written: dict[str, int]) -> float:
    """Return the median of instants, each counted once for every row."""
    half = sum(written.values()) / 2
    for at, count in sorted((float(at), count) for at, count in written.items()):
        half -= count
        if half <= 0:
            return at
    return time.time()
