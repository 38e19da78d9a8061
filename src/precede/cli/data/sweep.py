"""`precede sweep`: many runs, on Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from precede.cli.data.spark import (
    ConfOption,
    LakeOption,
    MasterOption,
    SameCodeOption,
    by_other_code,
    counting,
    session_for,
)

if TYPE_CHECKING:
    from precede.pipeline.sweeps.sweep import SweepSummary


def command(
    spec: Annotated[Path, typer.Argument(help="a TOML file: scenarios, protocols, options, seeds")],
    lake: LakeOption = "lake",
    master: MasterOption = None,
    conf: ConfOption = None,
    verdicts: Annotated[bool, typer.Option(help="have the witness judge every run")] = True,
    measures: Annotated[bool, typer.Option(help="count the measures of every run and group")] = True,
    same_code: SameCodeOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="print what it came to as one JSON object")] = False,
) -> int:
    """Run every combination of a grid, have each run judged and measured, and write the tables.

    What is finished is not run again: kill it at any time and type the same line again. What another version
    of this package left in the lake is. A run that fails is recorded with its traceback and does not stop the
    others. Exit code 0: all runs finished and keep what their protocols promise. 1: a promise is broken, a
    verdict unknown, or a claim missed. 3: some runs failed.

    \b
    Example:
      cat > buses.toml
        [sweep]
        scenario = "city-bus"
        protocol = ["causal_barrier", "delta_causal"]
        seeds = 20
        [grid.delta_causal]
        lifetime = ["5min", "20min"]
      precede sweep buses.toml --lake lake
    """
    from precede.experiments.grid import read_grid
    from precede.lake.jobs import Lake
    from precede.pipeline.sweeps.simulate import Wanted
    from precede.pipeline.sweeps.sweep import sweep, swept_before
    from precede.reproduction.claims import read_claims

    where = Lake(lake)
    grid = read_grid(spec, where.root)
    if grid.claims is not None:
        read_claims(Path(grid.claims))
    wanted = Wanted(verdicts, measures, same_code)
    summary = swept_before(where, grid, wanted)
    if summary is None:
        with (
            session_for(master, conf, f"sweep {grid.name}", light=True) as session,
            counting("runs") as progress,
        ):
            summary = sweep(where, grid, session, wanted, progress)
    if as_json:
        import msgspec

        print(json.dumps(msgspec.to_builtins(summary), indent=2))
    else:
        print("\n".join(describe(summary, where.root)))
    return 3 if summary.failed else 1 if summary.broken_promises or summary.missed_claims else 0


def describe(summary: SweepSummary, root: Path) -> list[str]:
    """What a sweep came to, as a person reads it."""
    again = f" ({summary.finished_before:,} were finished before)" if summary.finished_before else ""
    lines = [
        f"{summary.name}: {summary.runs:,} runs{again}, {summary.rows:,} rows, {summary.cpu_s:,.1f} s of CPU"
    ]
    lines += by_other_code(summary.by_other_code)
    if summary.failed:
        lines.append(f"  {summary.failed:,} failed; the first: {summary.first_failure}")
    if sum(summary.verdicts.values()):
        lines.append(
            "  verdicts: " + ", ".join(f"{count:,} {word}" for word, count in summary.verdicts.items())
        )
    if summary.broken_promises:
        lines.append(
            f"  {len(summary.broken_promises):,} break their promise; the first: {summary.broken_promises[0]}"
        )
    if summary.claims:
        counts = ", ".join(f"{count:,} {status}" for status, count in summary.claims.items())
        lines.append(f"  claims: {counts}" + "".join(f"; missed: {claim}" for claim in summary.missed_claims))
    lines.append(f"Tables in {root}: runs, events, gauges, verdicts, violations, measures")
    return lines
