"""`precede verify --follow`: verifies a log that grows, and prints violations as they are found."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from precede.cli.data.spark import session_for
from precede.core.errors import BadInput
from precede.core.instants import parse_duration

if TYPE_CHECKING:
    from precede.pipeline.following.standings import BatchReport
    from precede.witness.verdict import Order, Verdict
    from precede.witness.verify import VerifyOptions

_STATUS_S: Final = 10.0


def follow_log(
    log: str,
    order: Order | None,
    options: VerifyOptions,
    idle: str | None,
    checkpoint: str | None,
    retain: str | None,
    kafka: list[str] | None,
    master: str | None,
    conf: list[str] | None,
    as_json: bool,
) -> Verdict:
    """Watch a folder of segments or a topic that grows and print violations at once, until Ctrl-C or `idle`."""
    from precede.pipeline.following.follow import RETAIN_US, follow
    from precede.pipeline.following.messages import read_url

    if options.get("steps", "counted") != "counted":
        raise BadInput("--follow needs counted steps: they show whether rows are still missing")
    idle_s = None if idle is None else parse_duration(idle) / 1e6
    retain_us = RETAIN_US if retain is None else parse_duration(retain)
    if log.startswith("kafka:"):
        read_url(log)
    elif kafka:
        raise BadInput("--kafka needs a topic: kafka://HOST:PORT/TOPIC")
    settings = _read_settings(kafka or [])
    printer = _Printer(as_json)
    with session_for(master, conf, f"verify --follow {log}") as session:
        printer.status(f"following {log} (Ctrl-C ends it)")
        return follow(
            session,
            log,
            order,
            columns=options.get("columns"),
            by=options.get("by"),
            kinds=options.get("kinds"),
            duplicates=options.get("duplicates", "forbid"),
            members=options.get("members"),
            checkpoint=checkpoint,
            idle_s=idle_s,
            retain_us=retain_us,
            kafka=settings,
            report=printer.print_batch,
        )


def _read_settings(given: list[str]) -> dict[str, str]:
    """Read settings of the Kafka source: `KEY=VALUE`, or a file with such lines (which hides passwords)."""
    settings = {}
    for each in given:
        lines, place = [each], "--kafka"
        if "=" not in each:
            try:
                lines, place = Path(each).read_text().splitlines(), each
            except (OSError, UnicodeDecodeError) as error:
                raise BadInput(f"--kafka {each}: neither KEY=VALUE nor a file: {error}") from None
        for number, line in enumerate(lines, 1):
            key, equals, value = line.strip().partition("=")
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            if not equals or not key.strip():
                raise BadInput(f"{place}, line {number}: expected KEY=VALUE")
            settings[key.strip()] = value.strip()
    return settings


class _Printer:
    """Prints violations on standard output at once, and the progress on standard error every ten seconds."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.last_status = time.monotonic()

    def status(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def print_batch(self, runs: list[BatchReport]) -> None:
        """Print the violations and conflicts that a batch brought for each run."""
        for run in runs:
            self._print_violations(run)
            for conflict in run.standing.new_conflicts:
                self.status(f"{_name(run)}: {conflict}")
        if time.monotonic() - self.last_status >= _STATUS_S:
            self.last_status = time.monotonic()
            for run in runs:
                self.status(_progress(run))

    def _print_violations(self, run: BatchReport) -> None:
        for violation in run.standing.violations:
            if self.as_json:
                where = {"run": run.standing.group, "lag_s": round(run.lag_s, 3)}
                print(json.dumps({**where, **violation.plain()}), flush=True)
            else:
                when = time.strftime("%H:%M:%S")
                print(f"{when} {_name(run)}: {violation.kind} violation\n{violation.story}\n", flush=True)


def _name(run: BatchReport) -> str:
    return "run " + ", ".join(run.standing.group)


def _progress(run: BatchReport) -> str:
    standing = run.standing
    line = (
        f"{_name(run)}: {standing.rows:,} rows, {standing.deliveries:,} deliveries checked, "
        f"{sum(standing.counts.values()):,} violations, lag {run.lag_s:.1f} s"
    )
    if standing.held or standing.parked:
        line += f", {standing.held + standing.parked:,} rows wait: {standing.waits_for[0]}"
    return line
