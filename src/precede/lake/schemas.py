"""The ten tables of the lake, declared once: names, types and meaning of every column (DESIGN section 5).

From one declaration come the Arrow schema that tasks write with, the Spark schema that a read is held to, and
`docs/reference/tables.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import pyarrow as pa

from precede.eventlog.schema import SCHEMA_VERSION, VERSION_KEY

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Kind = Literal["string", "int", "bigint", "double", "array<string>"]

_ARROW: Final[dict[str, pa.DataType]] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "array<string>": pa.list_(pa.string()),
}


class Column(NamedTuple):
    """One column; `optional` ones may be null."""

    name: str
    kind: Kind
    meaning: str
    optional: bool = False


class Table(NamedTuple):
    """One table: what a row is, what names it, which part of it one file holds."""

    name: str
    row: str
    key: tuple[str, ...]
    file: str
    columns: tuple[Column, ...]

    def arrow(self) -> pa.Schema:
        """As tasks and the driver write it."""
        fields = [pa.field(c.name, _ARROW[c.kind], nullable=c.optional) for c in self.columns]
        return pa.schema(fields, metadata={VERSION_KEY: str(SCHEMA_VERSION).encode()})

    def ddl(self) -> str:
        """As Spark reads it."""
        return ", ".join(f"`{c.name}` {c.kind}" for c in self.columns)

    def spark(self) -> StructType:
        """The same as a type; made without a session, so that it also works in a Connect client."""
        from pyspark.sql.types import (
            ArrayType,
            DoubleType,
            IntegerType,
            LongType,
            StringType,
            StructField,
            StructType,
        )

        types = {
            "string": StringType(),
            "int": IntegerType(),
            "bigint": LongType(),
            "double": DoubleType(),
            "array<string>": ArrayType(StringType()),
        }
        return StructType([StructField(c.name, types[c.kind]) for c in self.columns])

    def names(self) -> list[str]:
        return [column.name for column in self.columns]


_TRACE = Column("trace", "string", "name of the trace, as given to `precede ingest --name`")
_RUN = Column("run_id", "string", "the run: protocol, seed and a hash of everything that describes it")
_SWEEP = Column("sweep", "string", "name of the sweep that asked for the run")

SEGMENTS: Final = Table(
    "segments",
    "one node in straight motion at constant speed (or at rest) between two instants",
    ("trace", "node", "t0_us"),
    "one trace",
    (
        _TRACE,
        Column("node", "string", "who moves"),
        Column("t0_us", "bigint", "when it begins, in microseconds of the trace's own clock"),
        Column("x0", "double", "where it begins, metres"),
        Column("y0", "double", "where it begins, metres"),
        Column("t1_us", "bigint", "when it ends; the node is absent between two segments that do not join"),
        Column("x1", "double", "where it ends, metres"),
        Column("y1", "double", "where it ends, metres"),
    ),
)
CONTACTS: Final = Table(
    "contacts",
    "two nodes within reach of each other, from the first to the last whole microsecond",
    ("trace", "range_m", "a", "b", "start_us"),
    "one trace and one range",
    (
        _TRACE,
        Column("a", "string", "one node; of a pair, always the one that comes first"),
        Column("b", "string", "the other node"),
        Column("start_us", "bigint", "when the contact begins"),
        Column("end_us", "bigint", "when it ends; contacts of one pair neither overlap nor abut"),
        Column("range_m", "double", "range it was computed for; null where the trace says who met", True),
    ),
)
REJECTS: Final = Table(
    "rejects",
    "one row of an input file that was not used, and why",
    ("trace", "file", "line"),
    "one trace",
    (
        _TRACE,
        Column("file", "string", "the file, or the member of an archive"),
        Column("line", "bigint", "line number in it, from 1; null where the row has none", True),
        Column("reason", "string", "what was wrong with it"),
    ),
)
RUNS: Final = Table(
    "runs",
    "one run that a sweep asked for, finished or failed",
    ("sweep", "run_id"),
    "one sweep",
    (
        _SWEEP,
        _RUN,
        Column("scenario", "string", "name or file of the scenario"),
        Column("protocol", "string", "name of the protocol"),
        Column("options", "string", "what the grid set besides scenario, protocol and seed, as JSON"),
        Column("seed", "bigint", "one seed is one world"),
        Column("status", "string", "`finished` or `failed`"),
        Column("order", "string", "the order the protocol promises", True),
        Column("nodes", "bigint", "how many nodes", True),
        Column("rows", "bigint", "rows in `events`", True),
        Column("events", "bigint", "events the engine handled", True),
        Column("end_us", "bigint", "world time when it ended", True),
        Column("cpu_s", "double", "CPU seconds of the simulation alone", True),
        Column("attempt", "int", "which attempt of its task finished it, from 0"),
        Column("worker", "string", "host and process that finished it"),
        Column("finished_at", "string", "when, UTC"),
        Column("version", "string", "version of this package that ran it, and a digest of its text"),
        Column("error", "string", "of a failed run: the error in one line", True),
        Column("traceback", "string", "of a failed run: where it happened", True),
        Column("description", "string", "the whole run as JSON: `precede simulate` can run it again"),
    ),
)
EVENTS: Final = Table(
    "events",
    "one thing that happened at one node",
    ("run_id", "node", "incarnation", "step"),
    "one run",
    (
        _RUN,
        Column("node", "string", "where it happened"),
        Column("incarnation", "int", "which life of the node, from 0; a restart with saved state goes on"),
        Column("step", "bigint", "the node's own counter: order is per node only"),
        Column("at_us", "bigint", "world time"),
        Column("clock_us", "bigint", "the node's own clock"),
        Column(
            "kind",
            "string",
            "started, crashed, left, broadcast, sent, packet_received, received (first copy of somebody else's "
            "message), delivered, discarded or observed",
        ),
        Column("message_source", "string", "who broadcast the message", True),
        Column("message_incarnation", "int", "in which life", True),
        Column("message_number", "bigint", "its number in that life, growing", True),
        Column("destinations", "array<string>", "of a broadcast: to whom; null is everybody", True),
        Column("deadline_us", "bigint", "of a broadcast: until when, by the source's clock", True),
        Column("peer", "string", "of a packet: the other end; null for whoever hears it", True),
        Column("medium", "string", "of a packet: radio or wired", True),
        Column("packet_kind", "string", "of a packet: its kind, in its paper's words", True),
        Column("packet_bytes", "bigint", "of a packet: its size by its paper's size model", True),
        Column("wire_bytes", "bigint", "of a packet over real sockets: bytes on the wire", True),
        Column("control_bytes", "bigint", "of a packet: the part that exists for order or dissemination", True),
        Column("control_entries", "bigint", "of a packet: entries of vectors, barriers, matrices", True),
        Column("messages_in_packet", "int", "of a packet: how many messages it carries", True),
        Column("reason", "string", "why a message was discarded; the name of an observation", True),
    ),
)
GAUGES: Final = Table(
    "gauges",
    "the size of one registry or buffer of one node at one instant",
    ("run_id", "node", "name", "at_us"),
    "one run",
    (
        _RUN,
        Column("node", "string", "whose"),
        Column("at_us", "bigint", "when it was sampled, world time"),
        Column("name", "string", "which registry or buffer"),
        Column("value", "bigint", "entries in it when sampled"),
        Column("peak", "bigint", "the most since the sample before"),
    ),
)
VERDICTS: Final = Table(
    "verdicts",
    "what the witness says about one run",
    ("sweep", "run_id"),
    "one sweep",
    (
        _SWEEP,
        _RUN,
        Column("order", "string", "the order that was checked: what the protocol promises, else causal"),
        Column("promised", "string", "the order the protocol promises; `none` promises nothing"),
        Column("verdict", "string", "`holds`, `violated` or `unknown`"),
        Column("rows", "bigint", "rows of the log; null where the log was not kept", True),
        Column("deliveries_checked", "bigint", "deliveries among them; null likewise", True),
        Column("violations", "bigint", "breaches of order or integrity, all of them counted"),
        Column("reasons", "array<string>", "why a verdict is unknown"),
        Column("findings", "array<string>", "worth knowing, and no violation"),
    ),
)
VIOLATIONS: Final = Table(
    "violations",
    "one delivery that broke a rule (the first hundred of a run)",
    ("sweep", "run_id", "number"),
    "one sweep",
    (
        _SWEEP,
        _RUN,
        Column("number", "int", "place in the run's list, from 0"),
        Column("order", "string", "the order that was checked"),
        Column(
            "kind",
            "string",
            "ghost, before_broadcast, duplicate, not_addressed, fifo, causal, multicast, expired or total",
        ),
        Column("node", "string", "who delivered it"),
        Column("incarnation", "int", "in which life"),
        Column("step", "bigint", "at which step"),
        Column("message", "string", "the message: source:number"),
        Column("other", "string", "the message it should have come before, or disagrees about", True),
        Column("explanation", "string", "the story of it, told for the first violation of a run", True),
    ),
)
MEASURES: Final = Table(
    "measures",
    "one number about one run, or about all runs that differ in their seed alone",
    ("sweep", "scope", "run_id", "scenario", "protocol", "options", "measure"),
    "one sweep",
    (
        _SWEEP,
        Column("scope", "string", "`run` or `group`"),
        Column("run_id", "string", "of scope `run`: which", True),
        Column("scenario", "string", "name or file of the scenario"),
        Column("protocol", "string", "name of the protocol"),
        Column("options", "string", "what the grid set besides scenario, protocol and seed, as JSON"),
        Column("measure", "string", "subject_quantity_unit_statistic: `wait_us_mean`"),
        Column("value", "double", "of a run: the number; of a group: the mean over its runs"),
        Column("runs", "bigint", "how many runs went in (those that have the measure)"),
        Column("sd", "double", "of a group: standard deviation over its runs", True),
        Column("low", "double", "of a group: lower end of the 95 % confidence interval of the mean", True),
        Column("high", "double", "of a group: upper end", True),
    ),
)
COMPARISONS: Final = Table(
    "comparisons",
    "one claim beside what a sweep measured",
    ("sweep", "paper", "claim", "reading"),
    "one sweep",
    (
        _SWEEP,
        Column("paper", "string", "who claims it"),
        Column("claim", "string", "its id in the claims file"),
        Column("place", "string", "where it stands: section, table, figure"),
        Column("says", "string", "the sentence"),
        Column("measure", "string", "the measure it is about"),
        Column("kind", "string", "about, between, at_most, at_least, rises, falls, withheld, ..."),
        Column("published_low", "double", "lower bound of what is claimed; null is none", True),
        Column("published_high", "double", "upper bound of what is claimed; null is none", True),
        Column("ours_low", "double", "the smallest of our means at the points it speaks of", True),
        Column("ours_high", "double", "the largest", True),
        Column("interval_low", "double", "lower end of the confidence intervals of those means", True),
        Column("interval_high", "double", "upper end", True),
        Column("points", "bigint", "how many points of the sweep it speaks of"),
        Column(
            "status",
            "string",
            "`reproduced`, `close`, `better than published`, `not reproduced`, `withheld` (nothing published), "
            "`paper scale only` (this scale cannot answer it) or `no points` (the sweep has none)",
        ),
        Column("reading", "string", "where a text can be read in several ways: which reading", True),
        Column("exhibit", "string", "the table, figure or section: `table2`, `figure7`", True),
        Column("off_percent", "double", "how far the farthest point is off what is claimed, in percent", True),
        Column("runs", "bigint", "how many runs went in", True),
        Column("reason", "string", "of a claim that is not reproduced: why, as far as we found it", True),
        Column("shown_by", "string", "the experiment or test that supports the reason", True),
    ),
)
_ALL = (SEGMENTS, CONTACTS, REJECTS, RUNS, EVENTS, GAUGES, VERDICTS, VIOLATIONS, MEASURES, COMPARISONS)
TABLES: Final[Mapping[str, Table]] = {table.name: table for table in _ALL}


def describe_tables() -> str:
    """`docs/reference/tables.md`: every table, column by column."""
    lines = [
        "# The tables of the lake",
        "",
        "A lake is a folder; a table is a folder in it; one file is one unit of the table and appears whole or",
        'not at all. Every table is read by `spark.read.parquet("lake/events")`,',
        "`pandas.read_parquet(\"lake/events\")` and by DuckDB (`from 'lake/events/*.parquet'`).",
        "Times are whole microseconds, places metres.",
        "Folders whose names begin with `_` belong to jobs and are no tables.",
        "",
        "This page is written by `python -m precede.lake.schemas`.",
    ]
    for table in TABLES.values():
        lines += ["", f"## {table.name}", "", f"A row is {table.row}."]
        keys = ", ".join(f"`{name}`" for name in table.key)
        lines += [f"Rows are named by {keys}; one file holds {table.file}.", ""]
        lines += ["| column | type | null | meaning |", "| --- | --- | --- | --- |"]
        for column in table.columns:
            null = "may be" if column.optional else ""
            lines.append(f"| `{column.name}` | {column.kind} | {null} | {column.meaning} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(describe_tables(), end="")
