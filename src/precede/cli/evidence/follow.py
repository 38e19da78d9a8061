"""`precede verify --follow`: what a growing log says, as it comes."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from precede.cli.data.spark import session_for
from precede.core.errors import BadInput
from precede.core.instants import parse_duration

if TYPE_CHECKING:
    from precede.pipeline.judging.ledger import BatchReport
    from precede.witness.verdict import Verdict

_STATUS_S: Final = 10.0


def follow_log(
    log: str,
    order: str | None,
    options: dict[str, Any],
    idle: str | None,
    checkpoint: str | None,
    master: str | None,
    conf: list[str] | None,
    as_json: bool,
) -> Verdict:
    """Watch a folder of segments; violations are printed as they are found, the verdict is of all that came."""
    from precede.pipeline.judging.follow import follow

    steps = options.pop("steps")
    if steps != "counted":
        raise BadInput("--follow counts steps: without them nobody knows whether rows are still to come")
    idle_s = None if idle is None else parse_duration(idle) / 1e6
    speaker = _Speaker(as_json)
    with session_for(master, conf, f"verify --follow {log}") as session:
        speaker.say(f"following {log} (Ctrl-C ends it)")
        return follow(session, log, order, **options, checkpoint=checkpoint, idle_s=idle_s, report=speaker.hear)


class _Speaker:
    """Violations on standard output at once, how things stand on standard error now and then."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.said = time.monotonic()

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def hear(self, heard: list[BatchReport]) -> None:
        for one in heard:
            self._violations(one)
            for conflict in one.standing.new_conflicts:
                self.say(f"{_name(one)}: {conflict}")
        if time.monotonic() - self.said >= _STATUS_S:
            self.said = time.monotonic()
            for one in heard:
                self.say(_status(one))

    def _violations(self, heard: BatchReport) -> None:
        for violation in heard.standing.violations:
            if self.as_json:
                told = {"run": heard.standing.group, "lag_s": round(heard.lag_s, 3), **violation.json()}
                print(json.dumps(told), flush=True)
            else:
                when = time.strftime("%H:%M:%S")
                print(f"{when} {_name(heard)}: {violation.kind} violation\n{violation.story}\n", flush=True)


def _name(heard: BatchReport) -> str:
    return "run " + ", ".join(heard.standing.group)


def _status(heard: BatchReport) -> str:
    run = heard.standing
    line = (
        f"{_name(heard)}: {run.rows:,} rows, {run.deliveries:,} deliveries checked, "
        f"{sum(run.counts.values()):,} violations, lag {heard.lag_s:.1f} s"
    )
    if run.held or run.parked:
        line += f", {run.held + run.parked:,} rows wait: {run.waits_for[0]}"
    return line
