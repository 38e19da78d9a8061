"""`precede verify`: checks whether a log keeps an order of delivery."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from precede.cli.data.spark import ConfOption, MasterOption, session_for
from precede.cli.evidence.follow import follow_log
from precede.cli.parameters import Argument, Option
from precede.cli.progress import rows_of, working
from precede.cli.start.explanations import code_of_reason
from precede.cli.terminal import Colour, painted
from precede.core.errors import BadInput
from precede.eventlog.schema import EVIDENCE_FILE

if TYPE_CHECKING:
    from precede.witness.verdict import Duplicates, Order, Steps, Verdict
    from precede.witness.verify import LogSource, VerifyOptions

LogArgument: TypeAlias = Annotated[
    str,
    Argument(help="CSV, JSON lines, Parquet or a folder of it, a run's folder, a URL of one; - is stdin"),
]
FormatOption: TypeAlias = Annotated[
    str | None,
    Option(
        "--as",
        metavar="FORMAT",
        help="shiviz, govector, etcd-watch, jsonl-vector-clock, mobiclique, csv, or module:function of yours",
    ),
]
PatternOption: TypeAlias = Annotated[
    str | None, Option(metavar="REGEX", help="with --as shiviz: ShiViz's expression for this log")
]
OrderOption: TypeAlias = Annotated[
    str | None,
    Option(
        metavar="fifo|causal|multicast|delta|total|display",
        help="the order to check; default: the order that run.json promises, else causal",
    ),
]
ColumnsOption: TypeAlias = Annotated[
    str | None, Option(metavar="node=…,step=…", help="maps our column names to those of the log")
]
ByOption: TypeAlias = Annotated[
    str | None,
    Option(metavar="COLUMN,…", help="columns that split the log into independent orders"),
]
KindsOption: TypeAlias = Annotated[
    str | None,
    Option(metavar="broadcast=…,delivered=…", help="the words in the column kind that mean these"),
]
StepsOption: TypeAlias = Annotated[
    str,
    Option(metavar="counted|ordered", help="counted: a hole is a gap; ordered: steps only order rows"),
]
DuplicatesOption: TypeAlias = Annotated[
    str, Option(metavar="forbid|allow", help="allow: a node may deliver a message again")
]
MembersOption: TypeAlias = Annotated[
    str | None,
    Option(
        metavar="a,b,c",
        help="with --order total: what one of these delivers, all of them must have delivered at the end; "
        "with --follow: what all of these have delivered is forgotten",
    ),
]
FollowOption: TypeAlias = Annotated[
    bool,
    Option("--follow", help="watch a folder of segments or a Kafka topic, on Spark, until Ctrl-C"),
]
IdleOption: TypeAlias = Annotated[
    str | None, Option(metavar="30s", help="with --follow: stop when no rows arrived for this long")
]
CheckpointOption: TypeAlias = Annotated[
    str | None,
    Option(metavar="DIR", help="with --follow: folder of its state (default: LOG/_follow)"),
]
RetainOption: TypeAlias = Annotated[
    str | None,
    Option(
        metavar="24h",
        help="with --follow: keep messages so long that some node has not delivered (default 24h)",
    ),
]
KafkaOption: TypeAlias = Annotated[
    list[str] | None,
    Option(
        "--kafka",
        metavar="KEY=VALUE",
        help="with --follow: a setting of Spark's Kafka source, or a file of them; can be repeated",
    ),
]
ScratchOption: TypeAlias = Annotated[
    str | None,
    Option(metavar="DIR", help="with --master: a folder all workers reach, for one order of many rows"),
]
JsonOption: TypeAlias = Annotated[bool, Option("--json", help="print the verdict as one JSON object")]


_COLOURS: Final[dict[str, Colour]] = {"holds": "green", "violated": "red", "unknown": "yellow"}


def command(
    log: LogArgument,
    format: FormatOption = None,
    order: OrderOption = None,
    pattern: PatternOption = None,
    columns: ColumnsOption = None,
    by: ByOption = None,
    kinds: KindsOption = None,
    steps: StepsOption = "counted",
    duplicates: DuplicatesOption = "forbid",
    members: MembersOption = None,
    follow: FollowOption = False,
    idle: IdleOption = None,
    checkpoint: CheckpointOption = None,
    retain: RetainOption = None,
    kafka: KafkaOption = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    scratch: ScratchOption = None,
    as_json: JsonOption = False,
) -> int:
    """Check whether a log keeps an order of delivery: an exact verdict, from its rows alone.

    The log needs the columns node, step and kind (broadcast or delivered), and either message_source and
    message_number or one id in message. Other names are mapped with --columns; kind=:delivered means that every
    row is a delivery, step=:row that the rows of a node are in their order. Exit code 0: the order holds. 1: it
    is violated, or unknown, or members left evidence of equivocation beside the log. 2: it cannot be read.

    \b
    Example:
      precede verify out/office
      precede verify log.csv --order fifo
      precede verify log.csv --order total --members ana,ben,cem
      precede verify lake/events --by run --master local[4]
      precede verify kafka.jsonl --columns node=consumer,step=offset,message=key --by topic,partition
      precede verify out/segments --follow
      precede verify kafka://localhost:9092/events --follow --checkpoint state
      precede verify shiviz.log --as shiviz
    """
    from precede.cli.evidence.foreign import verify_foreign_log

    log = unquote(urlsplit(log).path) if log.startswith("file:") else log
    chosen = cast("Order | None", order)  # `verify` refuses unknown words at run time
    options: VerifyOptions = {
        "columns": columns,
        "by": by,
        "kinds": kinds,
        "steps": cast("Steps", steps),
        "duplicates": cast("Duplicates", duplicates),
        "members": members,
    }
    if format is not None or pattern is not None:
        return verify_foreign_log(log, format, chosen, pattern, options, bool(follow or master), as_json)
    if follow:
        verdict = follow_log(log, chosen, options, idle, checkpoint, retain, kafka, master, conf, as_json)
    elif any(option is not None for option in (idle, checkpoint, retain, kafka)):
        raise BadInput("--idle, --checkpoint, --retain and --kafka need --follow")
    else:
        verdict = _verify(log, chosen, options, master, conf, scratch)
    return _show(log, verdict, follow, as_json)


def _show(log: str, verdict: Verdict, follow: bool, as_json: bool) -> int:
    """Print a verdict and the evidence beside its log; return the exit code."""
    evidence = _evidence(log)
    if as_json:
        said = verdict.json() | ({"evidence": evidence} if evidence else {})
        print(json.dumps(said, indent=None if follow else 2))
    else:
        print("\n".join((describe(log, verdict), *map(_describe_evidence, evidence))))
    return 0 if verdict.holds and not evidence else 1


def _describe_evidence(evidence: dict[str, Any]) -> str:
    """Return a line about a piece of evidence; whoever wrote its file chose the name in it."""
    from precede.cli.field.lines import printable

    return f"  evidence: {printable(evidence['text'])}" + (
        f"; key {evidence['key']}" if evidence["key"] else ""
    )


def _evidence(log: str) -> list[dict[str, Any]]:
    """Return the evidence of equivocation beside the event logs of members. All signatures are checked."""
    folder = Path(log)
    files = sorted(folder.rglob(EVIDENCE_FILE)) if folder.is_dir() else []
    if not files:  # then the library that checks signatures is not needed
        return []
    from precede.runtime.evidence.files import read_evidence

    return [
        {
            "kind": each.kind,
            "author": each.author,
            "text": each.text,
            "key": getattr(each, "public", b"").hex(),
        }
        for each in read_evidence(files)
    ]


def _verify(
    log: str,
    order: Order | None,
    options: VerifyOptions,
    master: str | None,
    conf: list[str] | None,
    scratch: str | None,
) -> Verdict:
    """Verify a log in this process, or on Spark if there is a master."""
    if master is None:
        from precede.witness.verify import verify

        with _local(log) as path, working(f"verifying {log}", "rows", rows_of(_rows_file(path))) as progress:
            return verify(_checked(path), order, progress=progress, **options)
    from precede.pipeline.judging.files import verify_path

    with session_for(master, conf, f"verify {log}", light=True) as session:
        folder = None if scratch is None else Path(scratch)
        with working(f"verifying {log} on Spark"):
            return verify_path(session, log, order, scratch=folder, **options)


def _rows_file(log: str) -> Path:
    """Return the file with the rows of a log, which may be the folder of a run."""
    path = Path(log)
    return path / "events.parquet" if path.is_dir() else path


def _local(log: str) -> AbstractContextManager[str]:
    """A path on this machine with the log, which may be a URL; other logs need no Arrow."""
    if "://" not in log:
        return nullcontext(log)
    from precede.lake.logs import local_log

    return local_log(log)


def _checked(log: str) -> LogSource:
    """Compare the files of a log with their commit records, if it is a table or a file of a lake.

    Of a table only the files that count are read. Other logs are returned as they are, and need no Arrow.
    """
    path = Path(log).absolute()
    if not (path.is_dir() or path.suffix == ".parquet"):
        return log
    from precede.lake.integrity import check_log, is_table, table_files
    from precede.witness.reading.partitions import Piece
    from precede.witness.reading.tables import parquet_log

    check_log(log)
    return parquet_log([Piece(file) for file in table_files(path)], log) if is_table(path) else log


def describe(log: str, verdict: Verdict, more: Sequence[str] = ()) -> str:
    """Return the verdict as text for the terminal, with more lines after its counts."""
    word = painted("holds" if verdict.holds else verdict.verdict.upper(), _COLOURS[verdict.verdict], sys.stdout)
    lines = [f"{log}: {verdict.order} order {word}"]
    lines += [f"  {reason}{_code(reason)}" for reason in verdict.reasons]
    lines.append(f"  {verdict.rows:,} rows, {verdict.deliveries_checked:,} deliveries checked")
    if verdict.violations:
        kinds = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in verdict.counts.items())
        lines.append(f"  {_counted(verdict.violations, 'violation')}: {kinds}")
    lines += [f"  {line}" for line in more]
    if verdict.revisions:
        moved = _counted(verdict.moved or 0, "shown message")
        lines.append(f"  {_counted(verdict.revisions, 'revision')}: {moved} moved down")
    lines += [f"  note: {note}" for note in verdict.notes]
    lines += [f"  finding: {finding}" for finding in verdict.findings]
    lines += _describe_parts(verdict)
    if verdict.first is not None:
        where = "".join(f", {name} {value}" for name, value in verdict.first.group)
        lines += ["", f"The first one{where}:", verdict.first.story]
    return "\n".join(lines)


def _code(reason: str) -> str:
    code = code_of_reason(reason)
    return f" [{code}]" if code else ""


_PARTS_SHOWN: Final = 10


def _describe_parts(verdict: Verdict) -> list[str]:
    """Return lines about the independent orders: how many hold, and the first ten that do not."""
    if not verdict.parts:
        return []
    bad = [part for part in verdict.parts if part.verdict != "holds"]
    lines = [f"  {len(verdict.parts):,} independent orders, of which {len(verdict.parts) - len(bad):,} kept"]
    for part in bad[:_PARTS_SHOWN]:
        name = ", ".join(f"{column} {value}" for column, value in part.group)
        summary = _counted(part.violations, "violation") if part.violations else part.reasons[0]
        lines.append(f"    {name}: {part.verdict}: {summary}")
    if len(bad) > _PARTS_SHOWN:
        lines.append(f"    and {len(bad) - _PARTS_SHOWN:,} more")
    return lines


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
