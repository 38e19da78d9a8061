"""`precede audit`: which order did a deployment keep, as far as its log can tell?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from msgspec import to_builtins

from precede.cli.parameters import Argument, Option
from precede.cli.progress import working
from precede.core.errors import BadInput
from precede.core.instants import format_duration, parse_duration

if TYPE_CHECKING:
    from precede.audit.replay import Mean, Row
    from precede.audit.study import Count, Study

DEFAULT_PROTOCOLS: Final = "unordered,fifo,causal_barrier,delta_causal,hash_dag,arrival,timestamp,lamport,sds"

LogsArgument: TypeAlias = Annotated[
    list[str],
    Argument(
        metavar="LOG…", help="files of one deployment (CSV or Parquet), or a folder in MobiClique's format"
    ),
]
MarginsOption: TypeAlias = Annotated[
    str,
    Option(metavar="0s,1s,…", help="instants of one clock that differ by no more than this are not ordered"),
]
ProtocolsOption: TypeAlias = Annotated[
    str, Option(metavar="NAME,…", help="the protocols under which the deployment is replayed")
]
LifetimeOption: TypeAlias = Annotated[
    str, Option(metavar="12h", help="lifetime of messages, for protocols that need one")
]
SeedsOption: TypeAlias = Annotated[
    int, Option(min=0, max=1000, help="replays per protocol, for intervals; 0: no replay")
]
MeetingsOption: TypeAlias = Annotated[
    str | None,
    Option(metavar="FILE", help="CSV a,b,start,end in seconds: who met whom; default: links in the log"),
]
OutOption: TypeAlias = Annotated[
    str | None, Option(metavar="DIR", help="also write a page with figures into this folder")
]
JsonOption: TypeAlias = Annotated[bool, Option("--json", help="print the study as one JSON object")]


def command(
    log: LogsArgument,
    margins: MarginsOption = "0s,1s,60s,10min",
    protocols: ProtocolsOption = DEFAULT_PROTOCOLS,
    lifetime: LifetimeOption = "12h",
    seeds: SeedsOption = 3,
    meetings: MeetingsOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> int:
    """Count how many messages of a deployment came too late, at least and at most, in FIFO and causal order.

    A row of the log is an event of one node with its own clock: columns node, kind (created, received, sent),
    message and at (seconds), and optionally peer, group, to and accepted. Clocks of different nodes are never
    compared. Equal instants and missing rows leave orders open: the bounds hold over all of them. Exit code 0:
    both orders hold. 1: one is violated, or unknown. 2: the log cannot be read.

    \\b
    Example:
      precede audit phones.csv
      precede audit phone-*.csv --margins 0s,5s --json
      precede audit sigcomm2009_mobiclique
    """
    parse_duration(lifetime)
    names = [name.strip() for name in protocols.split(",")]
    with working(f"counting late copies of {log[0]}"):
        study = _study(log, margins)
    rows = _replay(study, names, lifetime, seeds, meetings) if seeds else []
    plain = study.plain() | {"replays": to_builtins(rows)}
    if out is not None:
        from precede.report.audit_pages import write_audit

        page = write_audit(Path(out), plain, f"precede audit {' '.join(log)} --seeds {seeds}")
        print(f"wrote {page}", file=sys.stderr)
    if as_json:
        print(json.dumps(plain, indent=2))
    else:
        print("\n".join([*describe(study), *describe_replays(_worth_showing(rows, study))]))
    return 0 if study.holds else 1


def _replay(study: Study, protocols: list[str], lifetime: str, seeds: int, file: str | None) -> list[Row]:
    from precede.audit.replay import replay
    from precede.audit.same_links import read_meetings

    meetings = read_meetings(Path(file)) if file else ()
    with working("replaying the deployment", "replays") as progress:
        return replay(
            study.deployment,
            study.clocks,
            protocols=protocols,
            lifetime=lifetime,
            seeds=seeds,
            meetings=meetings,
            progress=progress,
        )


def _study(log: list[str], margins: str) -> Study:
    from precede.audit.event_files import read_event_files
    from precede.audit.mobiclique import is_mobiclique, other_readings, read_mobiclique
    from precede.audit.study import audit

    margins_us = [parse_duration(text.strip()) for text in margins.split(",")]
    paths = [Path(name) for name in log]
    folders = [path for path in paths if path.is_dir()]
    if not folders:
        return audit(read_event_files(paths), margins_us)
    if len(paths) > 1:
        raise BadInput(f"{folders[0]}: a folder is a whole deployment; audit it alone")
    if not is_mobiclique(paths[0]):
        raise BadInput(
            f"{paths[0]}: has not the files of MobiClique (messages.csv, reception.csv, …); name files"
        )
    return audit(read_mobiclique(paths[0]), margins_us, other_readings(paths[0]))


def describe(study: Study) -> list[str]:
    """Return the lines of a study."""
    log = study.deployment
    missing = sum(not copy.is_row for copy in log.first_copies)
    groups = study.by_group if len(log.groups) > 1 else [c for c in study.by_group if c.group not in log.groups]
    unfollowed = f"; {log.unfollowed:,} more cannot be followed" if log.unfollowed else ""
    lines = [
        f"{log.name}: {len(log.created):,} messages{unfollowed};"
        f" {len(log.first_copies):,} first copies, {missing:,} of them without a row",
        "",
        "Late copies over all orders that the log allows, margin 0"
        + (" (in brackets: with copies without a row)" if missing else ""),
        *_table([_group_cells(count) for count in groups], ("group", "order", "verdict", "late", "of", "")),
        "",
        "All groups, by margin",
        *_table(
            [(count.view, format_duration(count.rows.margin_us), *_cells(count)) for count in study.by_margin],
            ("view", "margin", "order", "verdict", "late", "of", ""),
        ),
        "",
        *(
            f"The witness counts {least:,} in the kindest and {most:,} in the harshest {order} order, margin 0"
            for order, (least, most) in study.witnessed.items()
        ),
        f"Clocks: {len(study.clocks.differences):,} hops compare {len(study.clocks.offset_us)} clocks;"
        f" {study.clocks.unexplained} differ by more than 60 s from what one offset per node says;"
        f" suspect: {', '.join(study.clocks.suspects) or 'none'}",
        "",
        "Assumptions, and the late copies if one is dropped (FIFO, causal)",
    ]
    for number, assumption in enumerate(study.assumptions, 1):
        counts = ", ".join(
            f"{after.at_least:,} to {after.at_most:,} of {after.copies:,}"
            for _, after in assumption.counts.values()
        )
        lines += [f"  {number}. {assumption.text}", f"     else: {assumption.without}: {counts}"]
    if study.story is not None:
        sentences = [*study.story.sentences(), *study.story.proof.splitlines()]
        lines += ["", "The latest of the late copies", *(f"  {line}" for line in sentences)]
    return lines


def _worth_showing(rows: list[Row], study: Study) -> list[Row]:
    """Leave out what says the same again: the replay of each group by itself, if there is one group."""
    from precede.audit.replay import GROUPS

    return [row for row in rows if row.replay != GROUPS or len(study.deployment.groups) > 1]


def describe_replays(rows: list[Row]) -> list[str]:
    """Return the lines of the replays: a table for each kind."""
    lines = []
    late = ("late fifo", "late causal", "answer above", "revisions")
    header = ("protocol", "received", "delivered", *late, "wait s", "longest s", "control B")
    for kind in dict.fromkeys(row.replay for row in rows):
        cells = [
            (
                row.protocol + "".join(f" {value}" for value in row.options.values()),
                *map(_mean, (row.received, row.delivered, row.fifo, row.causal)),
                *map(_mean, (row.answers_above, row.revisions, row.wait_s)),
                f"{row.longest_wait_s:,.0f}",
                _mean(row.control_bytes),
            )
            for row in rows
            if row.replay == kind
        ]
        lines += ["", f"Replay: {kind} (mean and 95 % interval over seeds)", *_table(cells, header)]
    return lines


def _mean(value: Mean | None) -> str:
    if value is None:
        return ""
    digits = 0 if value.mean >= 100 or value.mean == int(value.mean) else 1
    if value.low == value.high:
        return f"{value.mean:,.{digits}f}"
    return f"{value.mean:,.{digits}f} [{value.low:,.{digits}f}, {value.high:,.{digits}f}]"


def _group_cells(count: Count) -> tuple[str, ...]:
    return (count.group, *_cells(count))


def _cells(count: Count) -> tuple[str, ...]:
    rows, traces = count.rows, count.traces
    late = f"{rows.at_least:,}" if rows.at_least == rows.at_most else f"{rows.at_least:,} to {rows.at_most:,}"
    more = traces.copies > rows.copies
    open_too = f"({traces.at_least:,} to {traces.at_most:,} of {traces.copies:,})" if more else ""
    return rows.order, count.verdict, late, f"{rows.copies:,}", open_too


def _table(rows: list[tuple[str, ...]], header: tuple[str, ...]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    ]
