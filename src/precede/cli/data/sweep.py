"""`precede sweep`: carries out many runs, on Spark or in this process."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from precede.cli.data.spark import (
    ConfOption,
    HereOption,
    LakeOption,
    MasterOption,
    SameCodeOption,
    by_other_code,
    session_for,
)
from precede.cli.parameters import Argument, Option
from precede.cli.progress import working

if TYPE_CHECKING:
    from precede.pipeline.sweeps.sweep import SweepSummary


def command(
    spec: Annotated[Path, Argument(help="a TOML file: scenarios, protocols, options, seeds")],
    lake: LakeOption = "lake",
    master: MasterOption = None,
    conf: ConfOption = None,
    here: HereOption = False,
    verdicts: Annotated[bool, Option(help="verify every run")] = True,
    measures: Annotated[bool, Option(help="compute the measures of every run and group")] = True,
    same_code: SameCodeOption = False,
    as_json: Annotated[bool, Option("--json", help="print the summary as one JSON object")] = False,
) -> int:
    """Run every combination of a grid, verify and measure each run, and write the tables.

    Kill the command at any time and run it again: finished runs are not repeated, except those that another
    version of this package left. A run that fails is recorded with its traceback and does not stop the others.
    Exit code 0: all runs finished and keep the promised orders. 1: a promised order is violated or unknown, or
    a claim is missed. 3: some runs failed.

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
    from precede.core.errors import BadInput
    from precede.experiments.grid import read_grid
    from precede.lake.layout import Lake
    from precede.pipeline.sweeps.marks import SweepOptions
    from precede.pipeline.sweeps.sweep import sweep, swept_before
    from precede.reproduction.claims import read_claims

    if here and (master or conf):
        raise BadInput("--here is without Spark: it takes no --master and no --conf")
    store = Lake(lake)
    grid = read_grid(spec, store.location)
    if grid.claims is not None:
        read_claims(Path(grid.claims))
    options = SweepOptions(verdicts, measures, same_code)
    summary = swept_before(store, grid, options)
    if summary is None:
        with (
            nullcontext() if here else session_for(master, conf, f"sweep {grid.name}", light=True) as session,
            working(f"sweep {grid.name}", "runs") as progress,
        ):
            summary = sweep(store, grid, session, options, progress)
    if as_json:
        import msgspec

        print(json.dumps(msgspec.to_builtins(summary), indent=2))
    else:
        print("\n".join(describe(summary, store.location)))
    return 3 if summary.failed else 1 if summary.broken_promises or summary.missed_claims else 0


def describe(summary: SweepSummary, location: str | Path) -> list[str]:
    again = f" ({summary.finished_before:,} were finished before)" if summary.finished_before else ""
    lines = [
        f"{summary.name}: {summary.runs:,} runs{again}, {summary.rows:,} rows, {summary.cpu_s:,.1f} s of CPU"
    ]
    lines += by_other_code(summary.by_other_code)
    if summary.failed:
        lines.append(f"  {summary.failed:,} failed; the first: {summary.first_failure}")
        lines.append(f"  their tracebacks are in the table runs of {location}")
    if sum(summary.verdicts.values()):
        lines.append(
            "  verdicts: " + ", ".join(f"{count:,} {word}" for word, count in summary.verdicts.items())
        )
    if summary.broken_promises:
        count, first = len(summary.broken_promises), summary.broken_promises[0]
        lines.append(f"  {count:,} break the promised order; the first: {first}")
    if summary.claims:
        counts = ", ".join(f"{count:,} {status}" for status, count in summary.claims.items())
        lines.append(f"  claims: {counts}" + "".join(f"; missed: {claim}" for claim in summary.missed_claims))
    lines.append(f"Tables in {location}: runs, events, gauges, verdicts, violations, measures, differences")
    return lines
