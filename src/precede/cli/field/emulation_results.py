"""Evaluates an emulation: verdicts, comparison with simulations of the same scenario, measures, pages."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from precede.core.plan import Plan
from precede.experiments.emulation.compare import ages_of, compared, read_segments
from precede.experiments.emulation.explain import Difference, explained, summed_up, write_differences
from precede.experiments.emulation.replay import Measured, put_together, run_again
from precede.experiments.run import Run
from precede.lake.layout import Lake
from precede.lake.results import Results
from precede.measures.events import measure_events
from precede.report.emulation_pages import write_emulation
from precede.runtime.emulation.transfers import read_transfers
from precede.witness.verdict import Verdict, read_order
from precede.witness.verify import verify

NOMINAL: Final = "simulated"
MEASURED: Final = "simulated with measured times"
REAL: Final = "emulated"


def evaluate(
    run: Run, plan: Plan, simulated: pa.Table, folder: Path, outcome: dict[str, Any], command: str
) -> dict[str, Any]:
    """Add verdict and comparison with simulations to the `outcome` of an emulation; write tables and pages."""
    everything = read_segments(folder / "log")
    ours = pc.is_in(everything["node"].cast(pa.string()), pa.array(plan.names))
    real = everything.filter(ours)  # all rows are verified, but only our nodes can be compared
    logs = {REAL: everything, NOMINAL: simulated}
    result: dict[str, Any] = {"measured": None}
    differences: list[Difference] = []
    if run.world["kind"] == "contacts":
        measured = put_together(read_transfers(folder / "transfers"))
        again = run_again(run, plan, measured, real)
        logs[MEASURED] = again.events
        differences = explained(plan, measured, again, real)
        write_differences(folder / "differences.csv", differences)
        result["measured"] = {
            **_times(measured),
            **again.counters,
            **compared(again.events, real),
            "differences": summed_up(differences),
        }
    order = "fifo" if plan.order == "none" else read_order(plan.order)
    verdicts = {name: verify(log, order) for name, log in logs.items()}
    verdict = verdicts[REAL]
    result = {
        **outcome,
        "order": order,
        "verdict": verdict.verdict,
        "deliveries_checked": verdict.deliveries_checked,
        "violations": verdict.violations,
        **compared(simulated, real),
        **result,
    }
    for name, log in logs.items():
        path = Lake(folder / "runs").path("events", _slug(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(log, path, compression="zstd")
    _write_pages(run, plan, folder, logs, verdicts, result, differences, command)
    return result


def as_text(result: dict[str, Any], folder: Path) -> str:
    measured = result["measured"]
    lines = [
        f"{result['nodes']} nodes in {result['processes']} processes, {result['killed']} killed, "
        f"{result['wall_s']} s at speed {result['speed']:g} ({result['cpu_s']} s of CPU)",
        f"order {result['order']}: {result['verdict']}, {result['deliveries_checked']:,} deliveries checked",
        f"lag: {result['lag_ms']} ms of the machine's time at most",
        "",
        f"{'':<24}{'simulated':>12}{'':>4}{'measured times':>16}{'emulated':>12}",
    ]
    for name in ("broadcasts", "deliveries", "age_s_median", "age_s_mean"):
        again = f"{measured[name]['simulated']:,}" if measured else ""
        pair = result[name]
        lines.append(f"{name:<24}{pair['simulated']:>12,}{again:>20}{pair['emulated']:>12,}")
    for name, label in (
        ("delivered_in_both", "in both"),
        ("delivered_in_simulation_alone", "in the simulation alone"),
        ("delivered_in_emulation_alone", "in the emulation alone"),
    ):
        again = f"{measured[name]:,}" if measured else ""
        lines.append(f"{label:<24}{result[name]:>12,}{again:>20}")
    for group in measured["differences"] if measured else ():
        lines.append(f"  {group['count']:,} only in the {group['only_in']}: {group['kind']} ({group['says']})")
    if measured:
        lines += [
            "",
            f"a transfer took {measured['transfer_ms_median']:g} ms of the scenario in the median, "
            f"{measured['transfer_ms_p99']:g} ms at most for 99 of 100",
        ]
    lines += [f"Open {folder / 'report' / 'index.html'}", f"Next: precede verify {folder / 'log'}"]
    return "\n".join(lines)


def _times(measured: Measured) -> dict[str, Any]:
    """Return how many packets were sent and arrived, and how long the transfers took."""
    times = measured.times() or [0]
    return {
        "packets": measured.packets,
        "packets_arrived": measured.arrived,
        "transfer_ms_median": times[len(times) // 2] / 1000,
        "transfer_ms_p99": times[len(times) * 99 // 100] / 1000,
        "transfer_ms_max": times[-1] / 1000,
    }


def _write_pages(
    run: Run,
    plan: Plan,
    folder: Path,
    logs: dict[str, pa.Table],
    verdicts: dict[str, Verdict],
    result: dict[str, Any],
    differences: list[Difference],
    command: str,
) -> None:
    results = Results(lake=Lake(folder / "runs"))
    for name, log in logs.items():
        run_id, verdict = _slug(name), verdicts[name]
        results.runs.append(_row(run, plan, run_id, name, log, command))
        results.verdicts[run_id] = {
            "order": verdict.order,
            "promised": verdict.order,
            "verdict": verdict.verdict,
            "deliveries_checked": verdict.deliveries_checked,
            "reasons": list(verdict.reasons),
        }
        results.by_run[run_id] = {
            key: value for key, value in measure_events(log.to_batches()).items() if value is not None
        }
    facts = [(name, result[name]) for name in _FACTS if name in result]
    sets: list[list[Any]] = [_sets("the scenario's own network", result)]
    if result["measured"]:
        sets.append(_sets("measured times", result["measured"]))
    write_emulation(
        folder / "report",
        results,
        f"{len(plan.names)} real nodes beside their simulation",
        [*facts, *_measured_facts(result["measured"])],
        {name: ages_of(log) for name, log in logs.items()},
        sets,
        result["measured"]["differences"] if result["measured"] else [],
        [list(msgspec.structs.astuple(one)) for one in differences],
        command,
    )


_FACTS: Final = (
    *("nodes", "processes", "killed", "speed", "wall_s", "cpu_s", "said", "refused", "lag_ms"),
    *("order", "verdict", "deliveries_checked", "violations"),
)


def _measured_facts(measured: dict[str, Any] | None) -> list[tuple[str, Any]]:
    names = ("packets", "packets_arrived", "transfer_ms_median", "transfer_ms_p99", "transfer_ms_max")
    return [(name, measured[name]) for name in names] if measured else []


def _sets(name: str, pair: dict[str, Any]) -> list[Any]:
    both = (pair["deliveries"]["simulated"], pair["deliveries"]["emulated"], pair["delivered_in_both"])
    return [name, *both, pair["delivered_in_simulation_alone"], pair["delivered_in_emulation_alone"]]


def _row(run: Run, plan: Plan, run_id: str, name: str, log: pa.Table, command: str) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "status": "finished",
        "protocol": plan.protocol,
        "options": json.dumps({"log": name}),
        "scenario": run.scenario,
        "seed": run.seed,
        "nodes": len(plan.names),
        "rows": log.num_rows,
        "about": msgspec.to_builtins(run),
        "traceback": None,
        "error": None,
        "command": command,
    }


def _slug(name: str) -> str:
    return name.replace(" ", "-")
