"""`precede verify`: does this log keep its order?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from precede.cli.data.spark import ConfOption, MasterOption, session_for
from precede.core.errors import BadInput

if TYPE_CHECKING:
    from precede.witness.verdict import Verdict


def command(
    log: Annotated[
        str,
        typer.Argument(help="CSV, JSON lines, Parquet or a folder of it, a run's folder; - is standard input"),
    ],
    order: Annotated[
        str | None,
        typer.Option(
            metavar="fifo|causal|multicast|delta|total",
            help="what to check; when not given, what run.json promises, else causal",
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="node=…,step=…", help="which column of the log is which")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="COLUMN,…", help="columns that split the log into independent orders"),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(metavar="broadcast=…,delivered=…", help="the words that say so in the column kind"),
    ] = None,
    steps: Annotated[
        str,
        typer.Option(metavar="counted|ordered", help="counted: a hole is a gap; ordered: they only order rows"),
    ] = "counted",
    duplicates: Annotated[
        str, typer.Option(metavar="forbid|allow", help="may a node deliver a message again?")
    ] = "forbid",
    follow: Annotated[
        bool, typer.Option("--follow", help="watch a folder of segments that grows, on Spark, until Ctrl-C")
    ] = False,
    idle: Annotated[
        str | None, typer.Option(metavar="30s", help="with --follow: stop when nothing came for so long")
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="with --follow: where it remembers (default: LOG/_follow)")
    ] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the verdict as one JSON object")] = False,
) -> int:
    """Does this log keep its order? An exact verdict, from rows alone.

    The log needs the columns node, step and kind (broadcast or delivered), and either message_source and
    message_number or one id in message. Other names are mapped with --columns; kind=:delivered says that every
    row is a delivery, step=:row that the rows of a node stand in their order. Exit code 0: it holds. 1: it is
    violated, or unknown because something is missing. 2: the log cannot be read.

    \b
    Example:
      precede verify out/office
      precede verify log.csv --order fifo
      precede verify lake/events --by run --master local[4]
      precede verify kafka.jsonl --columns node=consumer,step=offset,message=key --by topic,partition
      precede verify out/segments --follow
    """
    from precede.cli.evidence.follow import follow_log
    from precede.cli.progress import working
    from precede.witness.verify import verify

    options: dict[str, Any] = {
        "columns": columns,
        "by": by,
        "kinds": kinds,
        "steps": steps,
        "duplicates": duplicates,
    }
    if follow:
        verdict = follow_log(log, order, options, idle, checkpoint, master, conf, as_json)
    elif idle is not None or checkpoint is not None:
        raise BadInput("--idle and --checkpoint go with --follow")
    elif master is None:
        with working(f"verifying {log}"):
            verdict = verify(log, order, **options)
    else:
        verdict = _on_spark(log, order, options, master, conf)
    print(json.dumps(verdict.json(), indent=None if follow else 2) if as_json else describe(log, verdict))
    return 0 if verdict.holds else 1


def _on_spark(
    log: str, order: str | None, options: dict[str, Any], master: str, conf: list[str] | None
) -> Verdict:
    from precede.pipeline.judging.files import verify_path

    with session_for(master, conf, f"verify {log}") as session:
        return verify_path(session, log, order, **options)


def describe(log: str, verdict: Verdict) -> str:
    """The verdict as a person reads it."""
    lines = [f"{log}: {verdict.order} order {verdict.verdict.upper() if not verdict.holds else 'holds'}"]
    lines += [f"  {reason}" for reason in verdict.reasons]
    lines.append(f"  {verdict.rows:,} rows, {verdict.deliveries_checked:,} deliveries checked")
    if verdict.violations:
        kinds = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in verdict.counts.items())
        lines.append(f"  {_counted(verdict.violations, 'violation')}: {kinds}")
    lines += [f"  note: {note}" for note in verdict.notes]
    lines += [f"  finding: {finding}" for finding in verdict.findings]
    lines += _describe_parts(verdict)
    if verdict.first is not None:
        where = "".join(f", {name} {value}" for name, value in verdict.first.group)
        lines += ["", f"The first one{where}:", verdict.first.story]
    return "\n".join(lines)


_PARTS_SHOWN = 10


def _describe_parts(verdict: Verdict) -> list[str]:
    if not verdict.parts:
        return []
    bad = [part for part in verdict.parts if part.verdict != "holds"]
    lines = [f"  {len(verdict.parts):,} independent orders, of which {len(verdict.parts) - len(bad):,} kept"]
    for part in bad[:_PARTS_SHOWN]:
        name = ", ".join(f"{column} {value}" for column, value in part.group)
        what = _counted(part.violations, "violation") if part.violations else part.reasons[0]
        lines.append(f"    {name}: {part.verdict}: {what}")
    if len(bad) > _PARTS_SHOWN:
        lines.append(f"    and {len(bad) - _PARTS_SHOWN:,} more")
    return lines


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
