"""The measures of a sweep compared with a claims file (`precede.reproduction.claims`).

A claim's `experiment` is a scenario of the sweep; `where` selects by `protocol` and by what the sweep varied.
Runs that differ in their seed alone are one point. A claim is judged by the same rules as the claims of the
papers; a claim without points in the sweep, or a trend with fewer than two, has the status `no points`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from precede.lake.schemas import COMPARISONS
from precede.pipeline.reproduction.tables import comparison_row
from precede.pipeline.sessions.frames import spark_schema
from precede.pipeline.sweeps.groups import COUNTED
from precede.reproduction.claims import Claims
from precede.reproduction.judging import Sample, judge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SEED: Final = r"-s(-?\d+)-[0-9a-f]+$"
"""The seed in the id of a run."""

MISSED: Final = ("not reproduced", "no points")


def compare(measures: pa.Table, seeds: Mapping[str, int], claims: Claims, sweep: str) -> pa.Table:
    """Return a row of `comparisons` for each claim; `seeds` of runs are for claims with `against`."""
    samples = _samples(measures, seeds, claims)
    rows = []
    for comparison in judge(claims, samples, "paper"):
        row = comparison_row(sweep, claims.paper, comparison)
        if comparison.status == "paper scale only":
            row["status"] = "withheld" if comparison.claim.kind == "withheld" else "no points"
        rows.append(row)
    return pa.Table.from_pylist(rows, COMPARISONS.arrow())


def compare_frames(measures: DataFrame, claims: Claims) -> DataFrame:
    """Compare the measures of each sweep in a DataFrame with the claims; a task compares one sweep."""
    from pyspark.sql import functions as sf

    seed = sf.regexp_extract("run_id", _SEED, 1).cast("bigint")
    runs = measures.where("scope = 'run'")
    if "seed" not in measures.columns:
        runs = runs.withColumn("seed", sf.coalesce(seed, sf.lit(0)))
    work = _Sweep(claims)
    # a lambda, because PySpark reads the type hints of a callable and refuses an object that has them
    return runs.groupBy("sweep").applyInArrow(lambda table: work(table), spark_schema(COMPARISONS))  # noqa: PLW0108


class _Sweep:
    """Compares the measures of one sweep with the claims, in a Spark task."""

    def __init__(self, claims: Claims) -> None:
        self.claims = claims

    def __call__(self, table: pa.Table) -> pa.Table:
        seeds = dict(zip(table["run_id"].to_pylist(), table["seed"].to_pylist(), strict=True))
        return compare(table, seeds, self.claims, table["sweep"][0].as_py())


def claimed_measures(claims: Claims) -> set[str]:
    """Return the measures that claims name, and `nodes`, which every run has: so every run becomes a sample."""
    names = {name for claim in claims.claim for name in (claim.measure, *claim.also)}
    others = [claim.against for claim in claims.claim if claim.against is not None]
    return names | {str(point["measure"]) for point in others if "measure" in point} | {"nodes"}


def _samples(measures: pa.Table, seeds: Mapping[str, int], claims: Claims) -> list[Sample]:
    """Return one sample for each run: the measures that claims name."""
    names = claimed_measures(claims)
    read = pa.array(sorted(names))
    chosen = measures.filter(pc.and_(pc.equal(measures["scope"], "run"), pc.is_in(measures["measure"], read)))
    samples: dict[str, Sample] = {}
    for row in chosen.to_pylist():
        run_id = row["run_id"]
        if run_id not in samples:
            varied = {"protocol": row["protocol"], **msgspec.json.decode(row["options"])}
            samples[run_id] = Sample(row["scenario"], varied, str(seeds[run_id]), dict(_zeros(names)))
        measured: dict[str, float] = samples[run_id].measures  # type: ignore[assignment]
        measured[row["measure"]] = row["value"]
    return list(samples.values())


def _zeros(names: set[str]) -> dict[str, float]:
    """Return 0 for each count: a run has no row for what never happened."""
    return {name: 0.0 for name in sorted(names) if re.search(COUNTED, name)}


def missed(comparisons: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the ids of the claims that were not reproduced, or that have no points in the sweep."""
    return [row["claim"] for row in comparisons if row["status"] in MISSED]
