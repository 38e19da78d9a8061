"""`precede emulate --program`: foreign programs run as nodes, and the witness judges what they delivered."""

from __future__ import annotations

import json
import shlex
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, get_args

import msgspec

from precede.core.errors import BadInput
from precede.core.instants import SECOND

if TYPE_CHECKING:
    from precede.experiments.run import Run
    from precede.runtime.programs.carrier import Carrier
    from precede.runtime.programs.state import Settings, Watch

MOST_PROGRAMS: Final = 200
"""The most programs of one emulation; each is a process with three pipes."""


class ProgramOptions(msgspec.Struct, frozen=True):
    """The options of `--program`, as they are written."""

    program: str
    order: str
    loss: float
    delay: str
    patience: float
    durable: bool
    watch: str


def emulate_programs(run: Run, folder: Path, speed: float, options: ProgramOptions, as_json: bool) -> int:
    """Run a scenario with foreign programs, verify what they delivered, print the outcome."""
    from precede.cli.progress import working
    from precede.experiments.emulation.compare import read_segments
    from precede.experiments.emulation.plan import plan_of
    from precede.runtime.programs.carrier import Carrier
    from precede.witness.verdict import read_order
    from precede.witness.verify import verify

    order = read_order(options.order)
    settings = _settings(run, speed, options)
    plan, _ = plan_of(run)
    if len(plan.names) > MOST_PROGRAMS:
        raise BadInput(f"--program: {len(plan.names)} nodes, more than {MOST_PROGRAMS} programs")
    if any(message.to is not None for message in plan.broadcasts):
        raise BadInput("--program: a program broadcasts to all; the scenario addresses messages (dst)")
    carrier = Carrier(plan, folder, settings)
    begun = time.monotonic()
    with working(f"running {len(plan.names)} programs", "s of the scenario") as progress:
        progress.follow(lambda: carrier.now() // SECOND, plan.end // SECOND)
        carrier.run()
    verdict = verify(read_segments(folder / "log"), order)
    result = _result(carrier, options, speed, round(time.monotonic() - begun, 1))
    result |= {"order": order, "verdict": verdict.verdict, "violations": verdict.violations}
    result |= {"deliveries_checked": verdict.deliveries_checked, "reasons": list(verdict.reasons)}
    if settings.watch == "read" and verdict.holds:
        reason = "`read` shows which messages a program has, not in which order it delivered them"
        result |= {"verdict": "unknown", "reasons": [reason]}
    (folder / "emulation.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    story = "" if verdict.first is None else f"\n\nThe first violation:\n{verdict.first.story}"
    print(json.dumps(result, indent=2) if as_json else as_text(result, folder) + story)
    return 0 if result["verdict"] == "holds" and not carrier.failures else 1


def _settings(run: Run, speed: float, options: ProgramOptions) -> Settings:
    from precede.experiments.emulation.fates import draw_fates
    from precede.runtime.programs.state import Settings, Watch

    try:
        command = shlex.split(options.program)
    except ValueError as error:
        raise BadInput(f"--program {options.program}: {error}") from None
    if not command or shutil.which(command[0]) is None:
        raise BadInput(f"--program {options.program}: not a program that can be run here")
    if options.patience <= 0:
        raise BadInput(f"--patience {options.patience}: expected more than 0 seconds")
    if options.watch not in get_args(Watch):
        raise BadInput(f"--watch {options.watch}: expected {' or '.join(get_args(Watch))}")
    return Settings(
        command=command,
        speed=speed,
        patience=options.patience,
        fate=draw_fates(run.seed, options.loss, options.delay),
        durable=options.durable,
        watch=cast("Watch", options.watch),
    )


def _result(carrier: Carrier, options: ProgramOptions, speed: float, seconds: float) -> dict[str, Any]:
    counts = msgspec.structs.asdict(carrier.counts)
    late_us = counts.pop("late_us")
    landed = sum(counts[name] for name in ("carried", "lost", "unlinked", "cut"))
    return {
        "program": options.program,
        "nodes": len(carrier.nodes),
        "speed": speed,
        "wall_s": seconds,
        "lag_ms": round(late_us / speed / 1000),
        **counts,
        "in_flight": counts["sent"] - landed,
        "failed": [msgspec.structs.asdict(failure) for failure in carrier.failures],
    }


def as_text(result: dict[str, Any], folder: Path) -> str:
    """Return the result as a text of some lines."""
    fates = ("lost", "unlinked", "cut", "unread", "in_flight")
    others = ", ".join(f"{result[name]:,} {name.replace('_', ' ')}" for name in fates if result[name])
    lines = [
        f"{result['nodes']} programs, {result['killed']} killed, {result['restarted']} restarted, "
        f"{result['wall_s']} s at speed {result['speed']:g}",
        *(f"node {one['node']}: {one['cause']} (at {one['at_s']:g} s)" for one in result["failed"]),
        f"order {result['order']}: {result['verdict']}, {result['deliveries_checked']:,} deliveries checked, "
        f"{result['violations']:,} violations",
        *(f"  {reason}" for reason in result["reasons"]),
        f"{result['broadcasts']:,} broadcasts ({result['refused']:,} refused, {result['unsaid']:,} not said), "
        f"{result['deliveries']:,} deliveries",
        f"{result['sent']:,} messages sent, {result['carried']:,} carried" + (f" ({others})" if others else ""),
        f"lag: {result['lag_ms']} ms of the machine's time at most",
        f"Next: precede verify {folder / 'log'} --order {result['order']}",
    ]
    return "\n".join(lines)
