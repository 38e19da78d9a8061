"""One order that is too large for one worker, verified node by node in tasks of bounded memory.

1. Tasks read row groups and pack them by node into buckets (`packing.py`); broadcast rows are kept apart.
2. A task for each bucket keeps the rows of its sources on which the past of a message can depend.
3. One task finds the direct predecessors of every message (`witness.checks.pasts`).
4. A task for each bucket runs the witness over the rows of its nodes, and for all other nodes over their
   broadcasts with these predecessors: the pasts of all messages are the same as in the whole log.

Files in a scratch folder carry the data from stage to stage; only small answers come to the driver. The verdict
is that of one process. Only the story of a violation can take a longer chain between the same two messages. A
log in which processes wait for each other's broadcasts in a ring has no linear order of its rows; which
deliveries are to blame depends on all rows, so such a log is left to one process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import numpy as np
from msgspec import Struct

from precede.core.natural_order import natural
from precede.pipeline.judging.answers import answer_of
from precede.pipeline.judging.bucket_files import Bucketed, PackByNode, find_pasts
from precede.pipeline.judging.packing import divide
from precede.pipeline.judging.query import Query
from precede.pipeline.sessions.tasks import spread
from precede.witness.checks.numba_engine import NumbaEngine
from precede.witness.checks.pasts import candidates
from precede.witness.explain import explain, kind_of, name_ghost
from precede.witness.history import DUPLICATE, EXPIRED, LATE, UNADDRESSED, History, name_process
from precede.witness.judgement import (
    Facts,
    Results,
    answer_for,
    check_history,
    describe_gap,
    describe_ungathered,
    reasons_of_log,
)
from precede.witness.reading.column_names import Layout
from precede.witness.reading.partitions import Piece
from precede.witness.verdict import Verdict, Violation, shorten
from precede.witness.verify import read_histories

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_A_UNIT: Final = 1_000_000
ROWS_A_BUCKET: Final = 1_500_000
_Process: TypeAlias = tuple[str, int]
"""A node and its incarnation."""

_Gap: TypeAlias = tuple[str, int, int | None, int]
"""A node, its incarnation, and the steps before and after rows that are missing."""

_ORDER_OF_COUNTS: Final = ("duplicate", "not_addressed", "ghost", "fifo", "causal", "multicast", "expired")


class BucketAnswer(Struct):
    """What a task found out about the nodes of its bucket."""

    deliveries: int = 0
    counts: dict[str, int] = {}
    ghost: tuple[_Process, Violation] | None = None
    marked: tuple[_Process, Violation] | None = None
    ungathered: list[tuple[_Process, str, int]] = []
    clock_missing: bool = False


def judge_one_order(
    session: SparkSession | None,
    what: str,
    pieces: Sequence[Piece],
    query: Query,
    layout: Layout,
    scratch: Path,
    rows_a_bucket: int = ROWS_A_BUCKET,
    group: Mapping[str, str] | None = None,
) -> dict[str, Any] | None:
    """Verify the one order in some files and return its answer.

    All tasks must reach `scratch`, an empty folder. `group` has the columns that identify the order. Returns
    None if one process has to decide: for total order, a log without broadcasts or deliveries, and a ring.
    """
    if query.order == "total" or query.members or layout.constant_kind is not None or layout.row_order:
        return None
    layout = Layout(layout.columns, (), layout.kinds)
    units = divide(pieces, ROWS_A_UNIT)
    rows = sum(unit.rows for unit in units)
    buckets = rows // rows_a_bucket + 1
    what = f"{what}: one order of {rows:,} rows"
    work = PackByNode(units, layout, buckets, scratch)
    packed = spread(session, f"{what}, pack by node", work, len(units))
    if not any(one["broadcasts"] for one in packed):
        return None
    parts = Bucketed(scratch, layout, [one["buckets"] for one in packed], buckets)
    kept = spread(session, f"{what}, what messages depend on", _Candidates(parts, query), buckets)
    processes = sorted(
        (
            (node, incarnation, bucket, first, count, messages)
            for bucket, one in enumerate(kept)
            for node, incarnation, first, count, messages in one["processes"]
        ),
        key=lambda process: (natural(process[0]), process[1]),
    )
    sources = [process for process in processes if process[5]]
    (pasts,) = spread(session, f"{what}, pasts of messages", _Pasts(parts, sources), 1)
    if pasts["ring"]:
        return None
    gaps = [(node, incarnation, last, after) for one in kept for node, incarnation, last, after in one["gaps"]]
    everyone = [(process[0], process[1]) for process in processes]
    judged = spread(session, f"{what}, judge nodes", _Judge(parts, query, everyone, gaps), buckets)
    answers = [msgspec.convert(one["answer"], BucketAnswer) for one in judged if one]
    facts = msgspec.convert(next(one["facts"] for one in judged if one), Facts)
    prefix = "".join(f"{name}={value}, " for name, value in (group or {}).items() if name != "run_id")
    verdict = _verdict(query, answers, gaps, msgspec.structs.replace(facts, rows=rows), prefix)
    return answer_of(verdict, rows) if verdict.deliveries_checked else None


def _verdict(
    query: Query, answers: Sequence[BucketAnswer], gaps: Sequence[_Gap], facts: Facts, prefix: str
) -> Verdict:
    """Combine what the buckets found, as `witness.judgement` does for a whole log."""
    deliveries = sum(answer.deliveries for answer in answers)
    reasons = reasons_of_log(facts, query.order, deliveries)
    for node, incarnation, last, after in sorted(gaps, key=lambda gap: _rank((gap[0], gap[1]))):
        reasons.append(prefix + describe_gap(name_process(node, incarnation), last, after))
    missing: dict[str, int] = {}
    ungathered = [one for answer in answers for one in answer.ungathered]
    for _, node, count in sorted(ungathered, key=lambda one: _rank(one[0])):
        missing[node] = missing.get(node, 0) + count
    reasons += [prefix + describe_ungathered(node, count) for node, count in missing.items()]
    if any(answer.clock_missing for answer in answers):
        reasons.append(f"{prefix}a delivered row has no clock_us")
    counts: dict[str, int] = {}
    for kind in _ORDER_OF_COUNTS:
        total = sum(answer.counts.get(kind, 0) for answer in answers)
        if total:
            counts[kind] = total
    violations = sum(counts.values())
    return Verdict(
        order=query.order,
        verdict=answer_for(violations, reasons),
        rows=facts.rows,
        deliveries_checked=deliveries,
        violations=violations,
        first=_first(answers),
        counts=counts,
        reasons=shorten(reasons),
    )


def _rank(process: _Process) -> tuple[Any, int]:
    return natural(process[0]), process[1]


def _first(answers: Sequence[BucketAnswer]) -> Violation | None:
    """Return the violation of the lowest process; of one process, a ghost comes first."""
    ghosts = [answer.ghost for answer in answers if answer.ghost is not None]
    marked = [answer.marked for answer in answers if answer.marked is not None]
    ghost = min(ghosts, key=lambda one: _rank(one[0]), default=None)
    other = min(marked, key=lambda one: _rank(one[0]), default=None)
    if ghost is not None and (other is None or _rank(ghost[0]) <= _rank(other[0])):
        return ghost[1]
    return None if other is None else other[1]


class _Candidates:
    """Stage 2: keeps the rows of a bucket's sources on which pasts can depend. `spread` calls it by bucket."""

    def __init__(self, parts: Bucketed, query: Query) -> None:
        self.parts, self.query = parts, query

    def __call__(self, bucket: int) -> dict[str, Any]:
        log = self.parts.log(bucket)
        if log is None:
            return {"processes": [], "gaps": []}
        self.parts.add_foreign(log, bucket, self.parts.broadcasts())
        counted = self.query.steps == "counted"
        engine, (history,), _ = read_histories(log, self.parts.layout, counted, "numba", None)
        marks = engine.marks(len(history.events))
        engine.mark_repetitions(history.start, history.events, marks, engine.ints(history.messages, -1))
        processes, events, steps = [], [], []
        first = 0
        for p in self.parts.own(history, bucket):
            begin, end = int(history.start[p]), int(history.start[p + 1])
            kept = np.empty(end - begin, np.int64)
            known = np.zeros(history.processes, np.int32)
            count = candidates(begin, end, history.events, history.source, history.base, known, kept)
            messages = int(history.base[p + 1] - history.base[p])
            processes.append([*_name(history, p), first, count, messages])
            events.append(history.events[kept[:count]])
            steps.append(history.steps[kept[:count]].astype(np.int64))
            first += count
        self.parts.save(bucket, np.concatenate(events), np.concatenate(steps))
        own = set(self.parts.own(history, bucket))
        gaps = [gap for gap in history.gaps if gap.process in own]
        named = [[*_name(history, gap.process), gap.last, gap.next] for gap in gaps]
        return {"processes": processes, "gaps": named}


class _Pasts:
    """Stage 3: finds the direct predecessors of all messages. `spread` calls it once."""

    def __init__(self, parts: Bucketed, sources: Sequence[Any]) -> None:
        self.parts, self.sources = parts, sources

    def __call__(self, number: int) -> dict[str, Any]:
        return {"ring": not find_pasts(self.parts, self.sources)}


class _Judge:
    """Stage 4: runs the witness over the nodes of a bucket. `spread` calls it by bucket."""

    def __init__(
        self,
        parts: Bucketed,
        query: Query,
        processes: Sequence[_Process],
        gaps: Sequence[_Gap],
    ) -> None:
        self.parts, self.query, self.processes, self.gaps = parts, query, processes, gaps

    def __call__(self, bucket: int) -> dict[str, Any]:
        log = self.parts.log(bucket)
        if log is None:
            return {}
        self.parts.add_foreign(log, bucket, self.parts.reduced())
        self.parts.add_foreign(log, bucket, [self.parts.presence(self.processes)])
        log.known_gaps = self.gaps
        engine, (history,), facts = read_histories(log, self.parts.layout, False, "numba", None)
        allow = self.query.duplicates == "allow"
        results = check_history(engine, history, facts, self.query.order, allow)
        own = self.parts.own(history, bucket)
        marks = np.zeros_like(results.marks)
        deliveries = 0
        for p in own:
            rows = slice(int(history.start[p]), int(history.start[p + 1]))
            marks[rows] = results.marks[rows]
            deliveries += rows.stop - rows.start - int(history.base[p + 1] - history.base[p])
        results.marks = marks
        answer = self._answer(results, deliveries)
        timed = facts.has_deadline and facts.has_clock
        answer.clock_missing = self.query.order == "delta" and timed and history.clock_missing
        return {"answer": msgspec.to_builtins(answer), "facts": msgspec.to_builtins(facts)}

    def _answer(self, results: Results, deliveries: int) -> BucketAnswer:
        history, marks, order = results.history, results.marks, self.query.order
        counts: dict[str, int] = {}
        for bit in (DUPLICATE, UNADDRESSED, LATE, EXPIRED):
            count = int(np.count_nonzero(marks & bit))
            if count:
                counts[kind_of(bit, order)] = count
        answer = BucketAnswer(deliveries, counts)
        if history.ghost_count:
            counts["ghost"] = history.ghost_count
            ghost = history.ghosts[0]
            answer.ghost = (_name(history, ghost.process), name_ghost(history, ghost))
        first = NumbaEngine().marked(marks, 1)
        if first:
            event = first[0]
            violation = explain(results.engine, history, event, kind_of(int(marks[event]), order))
            answer.marked = (_name(history, history.process_of(event)), violation)
        answer.ungathered = [
            (_name(history, missing.first[0].process), node, missing.count)
            for node, missing in history.ungathered.items()
        ]
        return answer


def _name(history: History, process: int) -> _Process:
    return history.nodes[int(history.node_of[process])], int(history.incarnation[process])
