"""`precede emulate`: a scenario lived through by real nodes, over sockets, compressed in time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pyarrow as pa

    from precede.core.plan import Plan
    from precede.runtime.emulation import Tally

_HEAD_START = 2.0


def command(
    scenario: Annotated[str, typer.Argument(help="a built-in name, a TOML file, or a trace in the lake")],
    protocol: Annotated[str | None, typer.Option(help="run this protocol instead of the scenario's")] = None,
    seed: Annotated[int | None, typer.Option(help="one seed is one world")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="a protocol option or a scenario key"),
    ] = None,
    speed: Annotated[float, typer.Option(help="how many of the scenario's seconds pass in one")] = 60.0,
    processes: Annotated[int, typer.Option(help="how many processes share the nodes that do not crash")] = 2,
    segment: Annotated[float, typer.Option(help="seconds between two files of a node's log")] = 5.0,
    out: Annotated[
        Path | None, typer.Option(help="folder for logs and stores (default: out/emulated-…)")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the outcome as one JSON object")] = False,
    lake: Annotated[Path, typer.Option(metavar="DIR", help="where traces are looked up")] = Path("lake"),
) -> int:
    """Put real nodes through a scenario: links open and close as its contacts do, nodes come, go, are killed.

    The same scenario is simulated first; the table at the end says what agrees and what differs. Logs are
    segments in OUT/log (readable while it runs), the simulation's in OUT/simulated. Ctrl-C stops everything.

    \b
    Example:
      precede emulate city-bus --speed 60 --set end=1h --out out/buses
      precede verify out/buses/log
    """
    from precede.cli.simulate import read_settings
    from precede.core.errors import BadInput
    from precede.experiments.plans import plan_of
    from precede.experiments.scenario import read_scenario

    if speed <= 0:
        raise BadInput(f"--speed {speed}: more than 0 is wanted")
    run = read_scenario(scenario, protocol, seed, read_settings(settings or []), lake)
    folder = out if out is not None else Path("out") / f"emulated-{run.id}"
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder}: not empty; an emulation begins with an empty folder")
    plan, simulated = plan_of(run)
    _keep(simulated, folder / "simulated")
    result = _emulate(plan, folder, speed, processes, segment, quiet=as_json)
    result |= _judged(plan, simulated, folder)
    (folder / "emulation.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2) if as_json else _page(result, folder))
    return 0 if result["verdict"] == "holds" else 1


def _keep(simulated: pa.Table, folder: Path) -> None:
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(simulated, folder / "events.parquet", compression="zstd")


def _emulate(
    plan: Plan, folder: Path, speed: float, processes: int, segment: float, quiet: bool
) -> dict[str, Any]:
    """The nodes' lives; what they did, in numbers."""
    import sys
    import time

    from precede.api import open_member
    from precede.core.instants import SECOND, Instant
    from precede.runtime.emulation import Clock
    from precede.runtime.play import deal, play, until_killed
    from precede.runtime.stage import Stage

    shares, doings = deal(plan, processes)
    clock = Clock(time.time_ns() // 1000 + int(_HEAD_START * SECOND), speed)
    stage = Stage(until_killed(plan), folder, open_member, clock, beacon=2.0, segment=segment)
    lags: list[int] = []

    def tell(now: Instant, tally: Tally) -> None:
        lags.append(tally.late_us)
        if not quiet:
            line = f"{now / SECOND:9.0f} s  up {tally.up:4}  said {tally.said:6}  delivered {tally.delivered:8}"
            print(f"{line}  lag {tally.late_us / speed / 1000:6.0f} ms", file=sys.stderr, flush=True)

    began, cpu = time.monotonic(), _cpu()
    try:
        tally = play(stage, shares, doings, tell)
    finally:
        stage.close()
    for node in range(len(plan.names)):
        stage.write_log(node)
    return {
        "nodes": len(plan.names),
        "processes": len(shares),
        "killed": sum(what == "kill" for _, _, what in doings),
        "speed": speed,
        "wall_s": round(time.monotonic() - began, 1),
        "cpu_s": round(_cpu() - cpu, 1),
        "said": tally.said,
        "said_in_simulation": len(plan.said),
        "refused": tally.refused,
        "lag_ms": round(tally.late_us / speed / 1000),
    }


def _cpu() -> float:
    import resource

    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _judged(plan: Plan, simulated: pa.Table, folder: Path) -> dict[str, Any]:
    """The witness's verdict, and the two logs beside each other."""
    from precede.cli.compared import compared, read_segments
    from precede.verify.witness import verify

    real = read_segments(folder / "log")
    order = plan.order if plan.order != "none" else "fifo"
    verdict = verify(real, order)
    return {
        "order": order,
        "verdict": verdict.verdict,
        "deliveries_checked": verdict.deliveries_checked,
        "violations": verdict.violations,
        **compared(simulated, real),
    }


def _page(result: dict[str, Any], folder: Path) -> str:
    lines = [
        f"{result['nodes']} nodes in {result['processes']} processes, {result['killed']} killed, "
        f"{result['wall_s']} s at speed {result['speed']:g} ({result['cpu_s']} s of CPU)",
        f"order {result['order']}: {result['verdict']}, {result['deliveries_checked']:,} deliveries checked",
        "",
        f"{'':<28}{'simulated':>14}{'emulated':>14}",
    ]
    for name in ("broadcasts", "deliveries", "age_s_median", "age_s_mean"):
        pair = result[name]
        lines.append(f"{name:<28}{pair['simulated']:>14,}{pair['emulated']:>14,}")
    lines += [
        "",
        f"delivered in both: {result['delivered_in_both']:,}; in the simulation alone: "
        f"{result['delivered_in_simulation_alone']:,}; in the emulation alone: "
        f"{result['delivered_in_emulation_alone']:,}",
        f"most that a message was said too late: {result['lag_ms']} ms of the machine's time",
        f"Next: precede verify {folder / 'log'}",
    ]
    return "\n".join(lines)
