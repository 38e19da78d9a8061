"""`precede measure`: the measures of a run that has been carried out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from precede.cli.parameters import Argument, Option

if TYPE_CHECKING:
    from precede.measures.statistics import Measures


def command(
    run: Annotated[Path, Argument(help="the folder of a run, or its events.parquet")],
    form: Annotated[
        Literal["table", "json", "one-stats", "cdf"],
        Option("--as", help="table, json, The ONE's MessageStatsReport, or the ages as CSV"),
    ] = "table",
    as_json: Annotated[bool, Option("--json", help="the same as --as json")] = False,
    only: Annotated[list[str] | None, Option(help="part of a measure's name; may be repeated")] = None,
) -> int:
    """Measure a run from its event log: ratios, latencies, copies, buffers, bytes and energy.

    `[run] warmup`, `cooldown` and `energy` of its scenario apply. `one-stats` has the lines of The ONE's
    MessageStatsReport. `cdf` has a row for each age: how many expected deliveries were made by then, and the
    share of all expected ones.

    \b
    Example:
      precede simulate city-bus --protocol unordered --set dissemination=prophet --set to=1 --out out/prophet
      precede measure out/prophet
      precede measure out/prophet --only delivery_ratio --only age
      precede measure out/prophet --as one-stats > stats.txt
      precede measure out/prophet --as cdf > ages.csv
    """
    from precede.cli.progress import rows_of, working
    from precede.core.errors import BadInput
    from precede.experiments.measuring import part_of_folder
    from precede.measures.columns import batches_of
    from precede.measures.events import COLUMNS, EventMeasures
    from precede.measures.gauges import measure_gauges
    from precede.measures.one_stats import one_stats
    from precede.measures.statistics import distribution

    log = run / "events.parquet" if run.is_dir() else run
    if not log.is_file():
        raise BadInput(f"{log}: no such file; give the folder of a run, or its events.parquet")
    window, energy = part_of_folder(log.parent)
    events = EventMeasures(window, energy)
    with working(f"measuring {run}", "rows", rows_of(log)) as progress:
        rows = 0
        for batch in batches_of(log, COLUMNS):
            events.add(batch)
            rows += batch.num_rows
            progress(rows)
    measures = events.measures()
    gauges = log.with_name("gauges.parquet")
    if gauges.is_file():
        measures |= measure_gauges(gauges, window)
    if as_json or form == "json":
        print(json.dumps(_chosen(measures, only), indent=2))
    elif form == "one-stats":
        print(one_stats(log.parent.name, measures, events.samples), end="")
    elif form == "cdf":
        print("age_s,deliveries,share_of_expected")
        for age, count in distribution(events.samples["age_us"]):
            print(f"{age / 1e6},{count},{count / (measures['expected_deliveries'] or 1)}")
    else:
        print("\n".join(_lines(_chosen(measures, only))))
    return 0


def _chosen(measures: Measures, parts: list[str] | None) -> Measures:
    """Return the measures whose names contain one of the parts; all without parts."""
    from precede.core.errors import BadInput

    chosen = {name: value for name, value in measures.items() if any(part in name for part in parts or [""])}
    if not chosen:
        raise BadInput(f"--only: no measure has {' or '.join(map(repr, parts or []))} in its name")
    return chosen


def _lines(measures: Measures) -> list[str]:
    """Write measures for people: microseconds as seconds, large numbers with commas."""
    return [f"{name:<36} {_written(name, value)}" for name, value in measures.items() if value is not None]


def _written(name: str, value: float) -> str:
    if "_us" in name:
        return f"{value / 1e6:,.3f} s"
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"
