"""`precede emulate`: real nodes over sockets run a scenario, compressed in time."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from precede.cli.parameters import Argument, Option

if TYPE_CHECKING:
    from precede.core.plan import Plan
    from precede.experiments.run import Run
    from precede.runtime.emulation.members import Tally

_HEAD_START = 2.0

ProcessesOption: TypeAlias = Annotated[
    int, Option(min=1, help="how many processes share the nodes that do not crash")
]
SegmentOption: TypeAlias = Annotated[
    float | None, Option(help="seconds between two files of a node's log (default: 5 or more)")
]
OutOption: TypeAlias = Annotated[
    Path | None, Option(help="folder for logs and stores (default: out/emulated-…)")
]
ProgramOption: TypeAlias = Annotated[
    str | None,
    Option(metavar="COMMAND", help="run this program as every node (JSON lines, as for Maelstrom)"),
]
OrderOption: TypeAlias = Annotated[
    str, Option(metavar="fifo|causal|total", help="with --program: the order to judge")
]
LossOption: TypeAlias = Annotated[float, Option(help="with --program: the share of messages that a link loses")]
DelayOption: TypeAlias = Annotated[
    str, Option(help="with --program: a distribution, in seconds of the scenario: uniform(0, 2)")
]
PatienceOption: TypeAlias = Annotated[
    float, Option(help="with --program: seconds to wait for an answer of a program")
]
DurableOption: TypeAlias = Annotated[
    bool, Option("--durable", help="with --program: it keeps its state over a restart")
]
WatchOption: TypeAlias = Annotated[
    str,
    Option(metavar="deliver|read", help="with --program: judge its deliver notices, or answers to read"),
]


def command(
    scenario: Annotated[str, Argument(help="a built-in name, a TOML file, or a trace in the lake")],
    protocol: Annotated[str | None, Option(help="run this protocol instead of the scenario's")] = None,
    seed: Annotated[int | None, Option(help="one seed is one world")] = None,
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="a protocol option or a scenario key"),
    ] = None,
    speed: Annotated[float, Option(help="how many of the scenario's seconds pass in one")] = 60.0,
    processes: ProcessesOption = 2,
    segment: SegmentOption = None,
    out: OutOption = None,
    as_json: Annotated[bool, Option("--json", help="print the outcome as one JSON object")] = False,
    lake: Annotated[str, Option(metavar="DIR", help="where traces are looked up")] = "lake",
    program: ProgramOption = None,
    order: OrderOption = "causal",
    loss: LossOption = 0.0,
    delay: DelayOption = "constant(0)",
    patience: PatienceOption = 10.0,
    durable: DurableOption = False,
    watch: WatchOption = "deliver",
) -> int:
    """Run a scenario with real nodes: links open and close as its contacts do; nodes start, stop, are killed.

    Logs are segments in OUT/log (precede verify --follow reads them while they grow). At the end they are
    verified and compared with two simulations of the same scenario: one with its own network, one with the
    links and transfer times that were measured (OUT/runs, OUT/report/index.html). Ctrl-C stops everything.
    With --program every node is a program of yours, and the witness judges what it says it delivered.

    \b
    Example:
      precede emulate city-bus --speed 60 --set end=1h --out out/buses
      precede verify out/buses/log
      precede emulate city-bus --program ./node.py --loss 0.1 --delay "uniform(0, 2)"
    """
    from precede.cli.field.programs import ProgramOptions, emulate_programs
    from precede.cli.runs.simulate import read_settings
    from precede.core.errors import BadInput
    from precede.experiments.scenario import read_scenario

    if not 0 < speed < inf:
        raise BadInput(f"--speed {speed}: expected more than 0")
    if segment is not None and not 0 < segment < inf:
        raise BadInput(f"--segment {segment}: expected more than 0 seconds")
    run = read_scenario(scenario, protocol, seed, read_settings(settings or []), lake)
    folder = out if out is not None else Path("out") / f"emulated-{run.id}"
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder}: not empty; an emulation needs an empty folder")
    if program is not None:
        options = ProgramOptions(program, order, loss, delay, patience, durable, watch)
        return emulate_programs(run, folder, speed, options, as_json)
    if (order, loss, delay, patience, durable, watch) != ("causal", 0.0, "constant(0)", 10.0, False, "deliver"):
        raise BadInput("--order, --loss, --delay, --patience, --durable and --watch need --program")
    repeated = "".join(f" --set {setting}" for setting in settings or [])
    command = (
        f"precede emulate {scenario} --protocol {run.protocol} --seed {run.seed}{repeated} --speed {speed:g}"
    )
    return _emulate_members(run, folder, speed, processes, segment, command, as_json)


def _emulate_members(
    run: Run, folder: Path, speed: float, processes: int, segment: float | None, command: str, as_json: bool
) -> int:
    """Run a scenario with our own nodes, compare it with its simulations, print the outcome."""
    from precede.cli.field.emulation_results import as_text, evaluate
    from precede.experiments.emulation.plan import plan_of

    plan, simulated = plan_of(run)
    outcome = run_plan(plan, folder, speed, processes, segment or _usual_segment(plan))
    result = evaluate(run, plan, simulated, folder, outcome, command)
    (folder / "emulation.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2) if as_json else as_text(result, folder))
    return 0 if result["verdict"] == "holds" else 1


def _usual_segment(plan: Plan) -> float:
    """Return the seconds between two log files of a node: longer for more nodes, as files cost time."""
    return max(5.0, len(plan.names) / 10)


def run_plan(plan: Plan, folder: Path, speed: float, processes: int, segment: float) -> dict[str, Any]:
    """Run a plan with real processes and return what happened, in numbers."""
    import time

    from precede.api import open_member
    from precede.cli.progress import working
    from precede.core.instants import SECOND, Instant
    from precede.runtime.emulation.members import Clock
    from precede.runtime.emulation.play import deal, play, until_killed
    from precede.runtime.emulation.stage import Stage

    shares, actions = deal(plan, processes)
    clock = Clock(time.time_ns() // 1000 + int(_HEAD_START * SECOND), speed)
    killed = {stay.node for stay in plan.stays if stay.ends == "crashed"}
    stage = Stage(until_killed(plan), folder, open_member, clock, beacon=2.0, segment=segment, killed=killed)

    def report(now: Instant, tally: Tally) -> None:
        counts = f"{tally.up} up, {tally.broadcasts:,} broadcasts, {tally.delivered:,} deliveries"
        progress.label = f"{counts}, lag {tally.late_us / speed / 1000:,.0f} ms"
        progress(now // SECOND, plan.end // SECOND)

    began, cpu = time.monotonic(), _cpu()
    with working(f"starting {len(plan.names)} nodes", "s of the scenario") as progress:
        try:
            tally = play(stage, shares, actions, report)
        finally:
            stage.close()
    for node in range(len(plan.names)):
        stage.write_log(node)
    return {
        "nodes": len(plan.names),
        "processes": len(shares),
        "killed": sum(action == "kill" for _, _, action in actions),
        "speed": speed,
        "wall_s": round(time.monotonic() - began, 1),
        "cpu_s": round(_cpu() - cpu, 1),
        "said": tally.broadcasts,
        "said_in_simulation": len(plan.broadcasts),
        "refused": tally.refused,
        "lag_ms": round(tally.late_us / speed / 1000),
    }


def _cpu() -> float:
    """Return the CPU seconds used by this process and its ended children."""
    import resource

    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
