"""The eleven tables of the lake, declared once, for Arrow, Spark and docs/reference/tables.md."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

import pyarrow as pa

from precede.eventlog.schema import FILE_VERSION, VERSION_KEY

Kind = Literal["string", "int", "bigint", "double", "array<string>"]

_ARROW: Final[dict[str, pa.DataType]] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "array<string>": pa.list_(pa.string()),
}


class Column(NamedTuple):
    """One column of a table; `kind` is its type in SQL, and an `optional` column may be null."""

    name: str
    kind: Kind
    meaning: str
    optional: bool = False


class Table(NamedTuple):
    """One table: what a `row` is, the columns that identify it (`key`), and what one `file` holds.

    The rows of a unit are sorted by the columns `order`; names stand in natural order (`n2` before `n10`).
    """

    name: str
    row: str
    key: tuple[str, ...]
    file: str
    columns: tuple[Column, ...]
    order: tuple[str, ...] = ()

    def arrow(self) -> pa.Schema:
        fields = [pa.field(c.name, _ARROW[c.kind], c.optional, {"comment": c.meaning}) for c in self.columns]
        return pa.schema(fields, metadata={VERSION_KEY: str(FILE_VERSION).encode()})

    def names(self) -> list[str]:
        return [column.name for column in self.columns]


_TRACE = Column("trace", "string", "name of the trace, as given to `precede ingest --name`")
_RUN = Column("run_id", "string", "the run: protocol, seed and a hash of everything that describes it")
_SWEEP = Column("sweep", "string", "name of the sweep that the run belongs to")

SEGMENTS: Final = Table(
    "segments",
    "the straight motion of one node at constant speed (or its rest) between two instants",
    ("trace", "node", "t0_us"),
    "one trace",
    (
        _TRACE,
        Column("node", "string", "the node that moves"),
        Column("t0_us", "bigint", "start of the motion, in microseconds of the trace's own clock"),
        Column("x0", "double", "x at the start, metres"),
        Column("y0", "double", "y at the start, metres"),
        Column(
            "t1_us", "bigint", "end of the motion; the node is absent between two segments that do not join"
        ),
        Column("x1", "double", "x at the end, metres"),
        Column("y1", "double", "y at the end, metres"),
    ),
    ("t0_us",),
)
CONTACTS: Final = Table(
    "contacts",
    "one contact: two nodes in range of each other, from the first to the last whole microsecond",
    ("trace", "range_m", "a", "b", "start_us"),
    "one trace and one range",
    (
        _TRACE,
        Column("a", "string", "the node of the pair that comes first in natural order"),
        Column("b", "string", "the other node"),
        Column("start_us", "bigint", "start of the contact"),
        Column("end_us", "bigint", "end of the contact; contacts of one pair neither overlap nor touch"),
        Column("range_m", "double", "the radio range it was computed for; null for a trace of meetings", True),
    ),
    ("a", "b", "start_us"),
)
REJECTS: Final = Table(
    "rejects",
    "one row of an input file that was rejected, with the reason",
    ("trace", "file", "line"),
    "one trace",
    (
        _TRACE,
        Column("file", "string", "the file, or the member of an archive"),
        Column("line", "bigint", "line number in it, from 1; null if the row has none", True),
        Column("reason", "string", "why the row was rejected"),
    ),
)
RUNS: Final = Table(
    "runs",
    "one run of a sweep, finished or failed",
    ("sweep", "run_id"),
    "one sweep",
    (
        _SWEEP,
        _RUN,
        Column("scenario", "string", "name or file of the scenario"),
        Column("protocol", "string", "name of the protocol"),
        Column("options", "string", "what the grid set besides scenario, protocol and seed, as JSON"),
        Column("seed", "bigint", "the seed of all randomness of the run"),
        Column("status", "string", "`finished` or `failed`"),
        Column("order", "string", "the order the protocol promises", True),
        Column("nodes", "bigint", "number of nodes", True),
        Column("rows", "bigint", "rows in `events`", True),
        Column("events", "bigint", "events that the simulator handled", True),
        Column("end_us", "bigint", "world time when it ended", True),
        Column("cpu_s", "double", "CPU seconds of the simulation and of measures taken while it runs", True),
        Column("attempt", "int", "the attempt of its task that finished it, from 0"),
        Column("worker", "string", "host and process that ran it"),
        Column("finished_at", "string", "when it finished, UTC"),
        Column("version", "string", "version of Precede that ran it, and a digest of its source"),
        Column("error", "string", "for a failed run: the error in one line", True),
        Column("traceback", "string", "for a failed run: the Python traceback", True),
        Column("description", "string", "the complete description of the run as JSON: enough to run it again"),
    ),
)
EVENTS: Final = Table(
    "events",
    "one event at one node",
    ("run_id", "node", "incarnation", "step"),
    "one run",
    (
        _RUN,
        Column("node", "string", "the node at which it happened"),
        Column(
            "incarnation",
            "int",
            "incarnation of the node, from 0; a restart with saved state continues the incarnation",
        ),
        Column("step", "bigint", "the node's own event counter: events are ordered within one node only"),
        Column("at_us", "bigint", "world time"),
        Column("clock_us", "bigint", "the node's own clock at the event"),
        Column(
            "kind",
            "string",
            "started, crashed, left, broadcast, sent, packet_received, received (the first copy of another "
            "node's message), delivered, discarded or observed",
        ),
        Column("message_source", "string", "the node that broadcast the message", True),
        Column("message_incarnation", "int", "incarnation of the source", True),
        Column("message_number", "bigint", "number of the message in its stream, ascending", True),
        Column("destinations", "array<string>", "for a broadcast: the addressed nodes; null means all", True),
        Column("deadline_us", "bigint", "for a broadcast: its deadline, by the source's clock", True),
        Column(
            "peer", "string", "for a packet: the node at the other end; null if sent to all neighbours", True
        ),
        Column("medium", "string", "for a packet: radio or wired", True),
        Column("packet_kind", "string", "for a packet: its kind, named as in the paper", True),
        Column("packet_bytes", "bigint", "for a packet: its size by the paper's size model", True),
        Column("wire_bytes", "bigint", "for a packet over real sockets: bytes on the wire", True),
        Column(
            "control_bytes",
            "bigint",
            "for a packet: bytes that serve ordering or dissemination, not payload",
            True,
        ),
        Column("control_entries", "bigint", "for a packet: entries of vectors, barriers, matrices", True),
        Column("messages_in_packet", "int", "for a packet: number of messages in it", True),
        Column("reason", "string", "why a message was discarded; for an observation, its name", True),
    ),
    ("at_us",),
)
GAUGES: Final = Table(
    "gauges",
    "the size of one registry or buffer of one node at one instant",
    ("run_id", "node", "name", "at_us"),
    "one run",
    (
        _RUN,
        Column("node", "string", "the node"),
        Column("at_us", "bigint", "world time of the sample"),
        Column("name", "string", "name of the registry or buffer"),
        Column("value", "bigint", "number of entries when sampled"),
        Column("peak", "bigint", "largest number of entries since the previous sample"),
    ),
    ("at_us",),
)
VERDICTS: Final = Table(
    "verdicts",
    "the verifier's verdict about one run",
    ("sweep", "run_id"),
    "one sweep",
    (
        _SWEEP,
        _RUN,
        Column("order", "string", "the order that was checked: the promised one, else causal"),
        Column("promised", "string", "the order the protocol promises; `none` if it promises none"),
        Column("verdict", "string", "`holds`, `violated` or `unknown`"),
        Column("rows", "bigint", "rows of the log; null if the log was not kept", True),
        Column(
            "deliveries_checked", "bigint", "deliveries that were checked; null if the log was not kept", True
        ),
        Column("violations", "bigint", "number of all violations of order or integrity"),
        Column("reasons", "array<string>", "why a verdict is unknown"),
        Column("findings", "array<string>", "remarkable facts that are no violation"),
    ),
)
VIOLATIONS: Final = Table(
    "violations",
    "one delivery that violates an order or integrity (the first hundred of a run)",
    ("sweep", "run_id", "number"),
    "one sweep",
    (
        _SWEEP,
        _RUN,
        Column("number", "int", "index in the run's list of violations, from 0"),
        Column("order", "string", "the order that was checked"),
        Column(
            "kind",
            "string",
            "ghost, before_broadcast, duplicate, not_addressed, fifo, causal, multicast, expired or total",
        ),
        Column("node", "string", "the node that delivered the message"),
        Column("incarnation", "int", "incarnation of the node"),
        Column("step", "bigint", "step of the delivery at that node"),
        Column("message", "string", "the message, as `source:number`"),
        Column(
            "other", "string", "the second message involved: delivered before it, but ordered after it", True
        ),
        Column(
            "explanation",
            "string",
            "a text that explains the violation; for the first violation of a run",
            True,
        ),
    ),
)
MEASURES: Final = Table(
    "measures",
    "one measure of one run, or of a group of runs that differ only in their seed",
    ("sweep", "scope", "run_id", "scenario", "protocol", "options", "measure"),
    "one sweep",
    (
        _SWEEP,
        Column("scope", "string", "`run` or `group`"),
        Column("run_id", "string", "for scope `run`: the run", True),
        Column("scenario", "string", "name or file of the scenario"),
        Column("protocol", "string", "name of the protocol"),
        Column("options", "string", "what the grid set besides scenario, protocol and seed, as JSON"),
        Column("measure", "string", "subject_quantity_unit_statistic: `wait_us_mean`"),
        Column("value", "double", "for a run: the value; for a group: the mean over its runs"),
        Column("runs", "bigint", "number of runs that have the measure"),
        Column("sd", "double", "for a group: standard deviation over its runs", True),
        Column("low", "double", "for a group: lower end of the 95 % confidence interval of the mean", True),
        Column("high", "double", "for a group: upper end of that interval", True),
    ),
)
COMPARISONS: Final = Table(
    "comparisons",
    "one claim, compared with the measures of a sweep",
    ("sweep", "paper", "claim", "reading"),
    "one sweep",
    (
        _SWEEP,
        Column("paper", "string", "key of the paper that makes the claim"),
        Column("claim", "string", "its id in the claims file"),
        Column("place", "string", "section, table or figure of the paper"),
        Column("says", "string", "the claim as a sentence"),
        Column("measure", "string", "the measure it is about"),
        Column("kind", "string", "about, between, at_most, at_least, rises, falls, withheld, ..."),
        Column("published_low", "double", "lower bound of the claimed value; null if there is none", True),
        Column("published_high", "double", "upper bound of the claimed value; null if there is none", True),
        Column("ours_low", "double", "the smallest of our means at the points the claim selects", True),
        Column("ours_high", "double", "the largest of those means", True),
        Column("interval_low", "double", "lower end of the confidence intervals of those means", True),
        Column("interval_high", "double", "upper end of those intervals", True),
        Column("points", "bigint", "number of points of the sweep that the claim selects"),
        Column(
            "status",
            "string",
            "`reproduced`, `close`, `open` (more seeds could decide), `not reproduced`, "
            "`withheld` (nothing published), `paper scale only` (this scale cannot answer it) "
            "or `no points` (the sweep has none)",
        ),
        Column("reading", "string", "for a text with several readings: the reading that was used", True),
        Column("exhibit", "string", "the table, figure or section: `table2`, `figure7`", True),
        Column(
            "off_percent", "double", "largest deviation of a point from the claimed value, in percent", True
        ),
        Column("runs", "bigint", "number of runs used", True),
        Column(
            "reason", "string", "for a claim that is not reproduced: the reason, as far as we know it", True
        ),
        Column("shown_by", "string", "what supports the reason, and what of it is undecided", True),
        Column("scenario", "string", "the scenario or experiment it is about; `*`: any of the sweep", True),
    ),
)
DIFFERENCES: Final = Table(
    "differences",
    "one measure of two groups of runs of a sweep, compared over the seeds that both have",
    ("sweep", "scenario", "measure", "factor", "a", "b", "options"),
    "one sweep",
    (
        _SWEEP,
        Column("scenario", "string", "name or file of the scenario"),
        Column("measure", "string", "the measure that is compared"),
        Column("factor", "string", "in what the groups differ: `protocol`, or the name of an option"),
        Column("a", "string", "its value in one group, with options that the other group does not have"),
        Column("b", "string", "its value in the other group"),
        Column("options", "string", "the settings that both groups share, as JSON"),
        Column("seeds", "bigint", "number of seeds that both groups have"),
        Column("mean_a", "double", "mean over these seeds"),
        Column("mean_b", "double", "mean over these seeds"),
        Column("difference", "double", "mean of a minus b, seed by seed"),
        Column("low", "double", "lower end of its 95 % confidence interval; null for one seed", True),
        Column("high", "double", "upper end of that interval", True),
        Column("effect", "double", "difference by the standard deviation of the differences", True),
        Column("p", "double", "probability of such differences if there were none (paired t test)"),
        Column("p_holm", "double", "p, corrected for all tests of this measure in the sweep", True),
        Column("tests", "bigint", "number of these tests", True),
        Column(
            "conclusion",
            "string",
            "`a is better`, `b is better`, `no difference shown`, or `too few seeds` (below 5)",
        ),
    ),
)
WORLDS: Final = Table(
    "worlds",
    "the worlds of the swarm that were run for one protocol in a range of 64 seeds, each counted once",
    ("protocol", "first_seed"),
    "one protocol",
    (
        Column("protocol", "string", "name of the protocol, with `+` and the routing it runs over"),
        Column("first_seed", "bigint", "first seed of the range"),
        Column("last_seed", "bigint", "last seed of the range"),
        Column("worlds", "bigint", "how many of these seeds were run"),
        Column("violations", "bigint", "violations of the order in these worlds; an exception counts as one"),
        Column("duplicates", "bigint", "messages that were delivered twice"),
        Column("undelivered", "bigint", "messages that were due and not delivered after the network healed"),
        Column("leaks", "bigint", "buffers that were not empty at the end"),
        Column("deliveries", "bigint", "deliveries that were checked"),
        Column("failing_seeds", "array<string>", "seeds of worlds with findings"),
        Column("version", "string", "version of the package and digest of its code"),
    ),
)

_ALL = (
    *(SEGMENTS, CONTACTS, REJECTS, RUNS, EVENTS, GAUGES, VERDICTS, VIOLATIONS, MEASURES, COMPARISONS),
    DIFFERENCES,
    WORLDS,
)
TABLES: Final[Mapping[str, Table]] = {table.name: table for table in _ALL}


def describe_tables() -> str:
    """Return the text of `docs/reference/tables.md`: every table with all its columns."""
    lines = [
        "# The tables of the lake",
        "",
        "A lake is a folder or a place in an object store; a table is a folder in it. A unit of a table is a",
        "file or some rows of one; it appears whole or not at all. Spark reads a table with",
        '`spark.read.parquet("lake/events")`, pandas with `pandas.read_parquet("lake/events")`, DuckDB with',
        "`from 'lake/events/*.parquet'`.",
        "Times are whole microseconds, coordinates are metres. A column has one type in all tables; the",
        "schema of a file has its comment. `precede.lake.sql.statements` declares the tables in a catalog,",
        "with views that have a timestamp and an interval beside each time (`at` and `at_elapsed` beside",
        "`at_us`). Files carry the version of their columns; files of earlier versions are read in the",
        "types of this page.",
        "Folders whose names begin with `_` belong to jobs and are no tables.",
        "",
        "![Tables as boxes with the columns that identify a row, joined by run, sweep and trace](tables.svg)",
        "",
        "A box has the columns that identify a row; a line is a column that joins a table with `runs` (dashed:",
        "a run names its trace in its description). This page is written by `python -m precede.lake.schemas`,",
        "the picture by `python docs/reference/draw_tables.py`.",
    ]
    for table in TABLES.values():
        lines += ["", f"## {table.name}", "", f"A row is {table.row}."]
        keys = ", ".join(f"`{name}`" for name in table.key)
        order = f"sorted by {', '.join(f'`{name}`' for name in table.order)}" if table.order else "not sorted"
        lines += [f"The columns {keys} identify a row; a unit is {table.file}, {order}.", ""]
        lines += ["| column | type | null | meaning |", "| --- | --- | --- | --- |"]
        for column in table.columns:
            null = "yes" if column.optional else ""
            lines.append(f"| `{column.name}` | {column.kind} | {null} | {column.meaning} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(describe_tables(), end="")
