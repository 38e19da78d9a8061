"""Precede on Spark: DataFrames in, DataFrames out, on the session that they belong to.

Every function is lazy: nothing runs before an action on its result, and nothing is collected. None of them
needs a `SparkContext` or the JVM, so they work with a classic session, Spark Connect and a vendor's Spark. The
results can be written with any writer to any catalog. Executors need this package, numpy, pyarrow, numba and
msgspec. The columns of all tables are in docs/reference/tables.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from precede.witness.verdict import Duplicates, Order, Steps

__all__ = ["audit", "compare", "contacts", "group", "measure", "segments", "simulate", "verify"]


def simulate(runs: DataFrame, *, rows: Literal["events", "gauges"] = "events", tasks: int = 200) -> DataFrame:
    """Simulate runs in Spark tasks and return their event rows or gauges. A row of `runs` is one run.

    * `runs`: the columns `scenario` (a built-in name, or a file that every executor reads), and optionally
      `protocol`, `seed` and `options` (a JSON object of protocol options and scenario settings, or null).
    * `rows`: the table to return, `events` or `gauges`; each has the columns of the lake's table of that name.
    * `tasks`: the number of tasks among which the runs are divided.

    An unknown scenario, protocol or option fails the action.

    >>> rows = [("small-office", "vector_clock", 7)]
    >>> runs = session.createDataFrame(rows, ["scenario", "protocol", "seed"])
    >>> events = precede.spark.simulate(runs, tasks=1)
    >>> events.where("kind = 'broadcast'").count()
    379
    """
    from precede.pipeline.sweeps.run_frames import simulate as simulate_runs

    return simulate_runs(runs, rows, tasks)


def verify(
    events: DataFrame,
    order: Order | None = None,
    *,
    by: str | Sequence[str] | None = None,
    columns: str | Mapping[str, str] | None = None,
    kinds: str | Mapping[str, str] | None = None,
    steps: Steps = "counted",
    duplicates: Duplicates = "forbid",
    members: str | Sequence[str] | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """Verify every order in a log. The result has one verdict for each combination of the columns `by`.

    The options are those of `precede.verify`. The default of `by` is `run_id` if there is such a column.
    Otherwise the whole log is one order, which one task verifies. `partitions` is the number of tasks; by
    default the session decides. Raises BadInput for missing columns; a value that cannot be read fails the
    action.

    >>> rows = [("t1", "ana", 0, "broadcast", "ana", 0), ("t1", "ben", 0, "delivered", "ana", 0)]
    >>> names = ["topic", "node", "step", "kind", "message_source", "message_number"]
    >>> verdicts = precede.spark.verify(session.createDataFrame(rows, names), "causal", by="topic")
    >>> verdicts.select("topic", "order", "verdict", "deliveries_checked").collect()
    [Row(topic='t1', order='causal', verdict='holds', deliveries_checked=1)]
    """
    from precede.pipeline.judging.frames import verify as verify_frame

    return verify_frame(
        events,
        order,
        by=by,
        columns=columns,
        kinds=kinds,
        steps=steps,
        duplicates=duplicates,
        members=members,
        partitions=partitions,
    )


def audit(
    events: DataFrame,
    *,
    by: str | Sequence[str] = (),
    margins: Sequence[str] = ("0s",),
    missing: bool = False,
) -> DataFrame:
    """Count, at least and at most, how many first copies of a deployment came too late. A row is one event.

    * `events`: the columns `node`, `kind` (created, received or sent), `message` and `at_us` (the node's own
      clock), and optionally `peer` and, for sent copies, `accepted`.
    * `by`: columns that split the log into independent orders; by default it is one, which one task counts.
    * `margins`: instants of one clock that differ by no more than this are not ordered.
    * `missing`: also count copies that only rows of other events show, at any instant that the log allows.

    The result has a row for each order and margin: `copies`, `at_least`, `at_most`, `verdict`, and `ghosts`,
    the copies of messages that nobody created. docs/guides/audit.md defines the bounds.

    >>> rows = [("ana", "created", "q", 1), ("ben", "received", "q", 2), ("ben", "created", "a", 3)]
    >>> rows += [("cem", "received", "a", 4), ("cem", "received", "q", 5)]
    >>> events = session.createDataFrame(rows, ["node", "kind", "message", "at_us"])
    >>> precede.spark.audit(events).where("order = 'causal'").select("copies", "at_least", "verdict").collect()
    [Row(copies=3, at_least=1, verdict='violated')]
    """
    from precede.core.instants import parse_duration
    from precede.pipeline.judging.audit_frames import audit as audit_frame

    keys = [by] if isinstance(by, str) else list(by)
    return audit_frame(events, keys, [parse_duration(margin) for margin in margins], missing)


def measure(
    events: DataFrame, gauges: DataFrame | None = None, window: tuple[int, int] | None = None
) -> DataFrame:
    """Compute every measure of every run. The result has the columns `run_id`, `measure` and `value`.

    The measures are those of `precede.simulate(…).measures()`; a measure without a value has no row. `window`
    has two instants in microseconds: only messages broadcast between them are measured.

    >>> rows = [("small-office", "vector_clock", 7)]
    >>> runs = session.createDataFrame(rows, ["scenario", "protocol", "seed"])
    >>> measures = precede.spark.measure(precede.spark.simulate(runs, tasks=1))
    >>> measures.where("measure = 'broadcasts'").select("value").collect()
    [Row(value=379.0)]
    """
    from precede.pipeline.sweeps.measures import measure as measure_frames

    return measure_frames(events, gauges, window)


def group(measures: DataFrame, level: float = 0.95) -> DataFrame:
    """Compute mean, deviation and confidence interval of measures over runs that differ only in their seed.

    Takes rows of the table `measures` with the scope `run`, and gives rows with the scope `group`.

    >>> names = ["sweep", "scope", "run_id", "scenario", "protocol", "options", "measure", "value"]
    >>> rows = [("s", "run", seed, "office", "fifo", "{}", "packets", float(seed)) for seed in "135"]
    >>> precede.spark.group(session.createDataFrame(rows, names)).select("value", "runs", "sd").collect()
    [Row(value=3.0, runs=3, sd=2.0)]
    """
    from precede.pipeline.sweeps.groups import group_measures

    return group_measures(measures, level)


def compare(measures: DataFrame, claims: str) -> DataFrame:
    """Compare the measures of sweeps with claims. The result has the columns of the table `comparisons`.

    * `measures`: rows of the table `measures`. Those with the scope `run` are used. The seed of a run is read
      from a column `seed` if there is one, else from its `run_id`.
    * `claims`: a claims file, which this process reads.

    >>> _ = open("claims.toml", "w").write('''
    ... [[claim]]
    ... id = "few"
    ... says = "a run takes at most 9 packets"
    ... measure = "packets"
    ... kind = "at_most"
    ... value = 9.0
    ... ''')
    >>> names = ["sweep", "scope", "run_id", "seed", "scenario", "protocol", "options", "measure", "value"]
    >>> rows = [("s", "run", f"r{n}", n, "office", "fifo", "{}", "packets", float(n)) for n in (1, 3, 5)]
    >>> compared = precede.spark.compare(session.createDataFrame(rows, names), "claims.toml")
    >>> compared.select("claim", "ours_high", "status").collect()
    [Row(claim='few', ours_high=3.0, status='reproduced')]
    """
    from pathlib import Path

    from precede.pipeline.sweeps.compare import compare_frames
    from precede.reproduction.claims import read_claims

    return compare_frames(measures, read_claims(Path(claims)))


def segments(positions: DataFrame, *, gap: str | None = None) -> DataFrame:
    """Join the positions of moving nodes to straight segments. The result has the columns of `segments`.

    `positions` has the columns `trace`, `node`, `t_us` (whole microseconds), `x` and `y` (metres). A node moves
    in a straight line from each position to its next one, unless that is later by more than `gap`: then it is
    absent in between. Several positions of a node at one time fail the action.

    >>> rows = [("road", "car", 0, 0.0, 0.0), ("road", "car", 10_000_000, 100.0, 0.0)]
    >>> positions = session.createDataFrame(rows, ["trace", "node", "t_us", "x", "y"])
    >>> precede.spark.segments(positions).collect()
    [Row(trace='road', node='car', t0_us=0, x0=0.0, y0=0.0, t1_us=10000000, x1=100.0, y1=0.0)]
    """
    from precede.core.instants import parse_duration
    from precede.pipeline.mobility.segment_frames import segments as segment_frames

    return segment_frames(positions, None if gap is None else parse_duration(gap))


def contacts(segments: DataFrame, range_m: float, *, slice: str = "1h") -> DataFrame:
    """Compute the exact contacts, within a radio range, of nodes that move in straight segments.

    `segments` has the columns of the table `segments`, the result those of `contacts`. A task computes one
    slice of time of one trace; the result does not depend on how long a slice is.

    >>> names = ["trace", "node", "t0_us", "x0", "y0", "t1_us", "x1", "y1"]
    >>> car = ("road", "car", 0, 0.0, 0.0, 10_000_000, 100.0, 0.0)
    >>> post = ("road", "post", 0, 50.0, 0.0, 10_000_000, 50.0, 0.0)
    >>> rows = [car, post]
    >>> met = precede.spark.contacts(session.createDataFrame(rows, names), 10.0)
    >>> met.select("a", "b", "start_us", "end_us").collect()
    [Row(a='car', b='post', start_us=4000000, end_us=6000000)]
    """
    from precede.core.instants import parse_duration
    from precede.pipeline.mobility.contact_frames import contacts as contact_frames

    return contact_frames(segments, range_m, parse_duration(slice))
