"""Measures beside claims: what a paper, or anybody, said, and what the sweep found (DESIGN section 5).

A claims file has one `[[claim]]` table for each sentence:

    paper = "somebody2021"
    [[claim]]
    id = "wait-is-short"
    place = "Table 3"
    says = "with a lifetime of 20 minutes messages wait less than two seconds"
    measure = "wait_us_mean"
    protocol = "delta_causal"               # scenario, protocol, where: which points; all optional
    where = { lifetime = "20min" }
    kind = "at_most"                        # about, between, at_most, at_least, rises, falls, withheld
    value = 2e6                             # low and high for between; along = "lifetime" for rises and falls
    tolerance = 0.0                         # about: each way; between: still `close`; rises, falls: relative
    smaller_is_better = true                # beyond the bounds on the good side is better

A claim is held against every point it picks: `reproduced` when all of them are within its bounds. A trend needs
two points that differ in `along` alone; without them it has `no points`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
import pyarrow as pa
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import UNITS
from precede.experiments.tables import read_toml
from precede.lake.schemas import COMPARISONS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MISSED: Final = ("not reproduced", "no points")
_INFINITE: Final = float("inf")


class Claim(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One sentence, as a claims file writes it."""

    id: str
    says: str
    measure: str
    kind: Literal["about", "between", "at_most", "at_least", "rises", "falls", "withheld"]
    place: str = ""
    scenario: str | None = None
    protocol: str | None = None
    where: Mapping[str, str | int | float | bool] = {}
    along: str = ""
    low: float | None = None
    high: float | None = None
    value: float | None = None
    tolerance: float = 0.0
    smaller_is_better: bool = False
    larger_is_better: bool = False

    def bounds(self) -> tuple[float, float]:
        """What is said to hold of the measure at every point."""
        if self.kind == "about":
            return self._given("value") - self.tolerance, self._given("value") + self.tolerance
        if self.kind == "between":
            return self._given("low"), self._given("high")
        low = self._given("value") if self.kind == "at_least" else -_INFINITE
        return low, self._given("value") if self.kind == "at_most" else _INFINITE

    def _given(self, name: str) -> float:
        number: float | None = getattr(self, name)
        if number is None:
            raise BadInput(f"claim {self.id!r}: a claim of kind {self.kind!r} needs {name!r}")
        return number


class Claims(Struct, frozen=True, forbid_unknown_fields=True):
    """A claims file."""

    claim: tuple[Claim, ...]
    paper: str = ""


def read_claims(path: Path) -> Claims:
    """A claims file; what is wrong in it is said in one line."""
    tables, _ = read_toml(path)
    try:
        claims = msgspec.convert(tables, Claims)
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: {error}") from None
    for claim in claims.claim:
        claim.bounds()
        if claim.kind in ("rises", "falls") and not claim.along:
            raise BadInput(f"{path}: claim {claim.id!r}: a claim of kind {claim.kind!r} needs 'along'")
    ids = [claim.id for claim in claims.claim]
    if len(set(ids)) != len(ids):
        raise BadInput(f"{path}: two claims have one id")
    return claims


def claims_frame(session: SparkSession, claims: Claims) -> DataFrame:
    """The claims as rows."""
    rows = [_row(claims.paper, number, claim) for number, claim in enumerate(claims.claim)]
    text, real = pa.string(), pa.float64()
    schema = pa.schema(
        [
            *((name, text) for name in ("paper", "claim", "place", "says", "measure", "kind", "along")),
            *((name, text) for name in ("of_scenario", "of_protocol")),
            ("wanted", pa.map_(text, text)),
            *((name, real) for name in ("published_low", "published_high", "tolerance")),
            *((name, pa.bool_()) for name in ("smaller_is_better", "larger_is_better")),
            ("number", pa.int64()),
        ]
    )
    return session.createDataFrame(pa.Table.from_pylist(rows, schema))


def _row(paper: str, number: int, claim: Claim) -> dict[str, Any]:
    low, high = claim.bounds()
    wanted = [(key, value if isinstance(value, str) else msgspec.json.encode(value).decode())
              for key, value in claim.where.items()]  # fmt: skip
    return {
        "paper": paper,
        "claim": claim.id,
        "place": claim.place,
        "says": claim.says,
        "measure": claim.measure,
        "kind": claim.kind,
        "along": claim.along,
        "of_scenario": claim.scenario,
        "of_protocol": claim.protocol,
        "wanted": wanted,
        "published_low": low,
        "published_high": high,
        "tolerance": claim.tolerance,
        "smaller_is_better": claim.smaller_is_better,
        "larger_is_better": claim.larger_is_better,
        "number": number,
    }


def compare(measures: DataFrame, claims: DataFrame, sweep: str) -> DataFrame:
    """Every claim beside the points of the sweep that it speaks of, with its status."""
    from pyspark.sql import functions as sf

    points = _points(measures.where((sf.col("scope") == "group") & (sf.col("sweep") == sweep)), claims)
    found = points.groupBy("number").agg(
        sf.min("value").alias("ours_low"),
        sf.max("value").alias("ours_high"),
        sf.min("low").alias("interval_low"),
        sf.max("high").alias("interval_high"),
        sf.count("*").alias("points"),
        sf.count("climb").alias("climbs"),
        sf.bool_and("strictly").alias("strictly"),
        sf.bool_and("nearly").alias("nearly"),
    )
    joined = claims.join(found, "number", "left").withColumn("points", sf.coalesce("points", sf.lit(0)))
    told = joined.withColumn("sweep", sf.lit(sweep)).withColumn("status", _status())
    for bound in ("published_low", "published_high"):
        told = told.withColumn(bound, sf.when(sf.abs(bound) < _INFINITE, sf.col(bound)))
    for column in COMPARISONS.columns:
        if column.name not in told.columns:
            told = told.withColumn(column.name, sf.lit(None).cast(column.kind))
    return told.orderBy("number").select(*COMPARISONS.names())


def _points(groups: DataFrame, claims: DataFrame) -> DataFrame:
    """Each claim with every group of runs it speaks of; for a trend, whether it climbs from point to point."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    options = groups.withColumn("set", sf.from_json("options", "map<string,string>"))
    meant = (
        (sf.col("of_scenario").isNull() | (sf.col("of_scenario") == sf.col("scenario")))
        & (sf.col("of_protocol").isNull() | (sf.col("of_protocol") == sf.col("protocol")))
        & sf.forall(sf.map_entries("wanted"), lambda one: sf.col("set")[one["key"]].eqNullSafe(one["value"]))
    )
    chosen = options.join(sf.broadcast(claims), "measure").where(meant)
    others = sf.to_json(sf.map_filter("set", lambda key, _: key != sf.col("along")))
    curve = Window.partitionBy("number", "scenario", "protocol", others)
    written = sf.col("set")[sf.col("along")]
    before = sf.lag("value").over(curve.orderBy(_place(written), written))
    sign = sf.when(sf.col("kind") == "falls", -1.0).otherwise(1.0)
    climb = sign * (sf.col("value") - before)
    return (
        chosen.withColumn("climb", climb)
        .withColumn("strictly", climb > 0)
        .withColumn("nearly", climb > -sf.col("tolerance") * sf.abs(before))
    )


def _place(written: Column) -> Column:
    """Where a value stands on its axis: a number, or a duration in microseconds; null for a word."""
    from pyspark.sql import functions as sf

    units = sf.create_map(*(sf.lit(part) for name, us in UNITS.items() for part in (name, float(us))))
    number, unit = (sf.regexp_extract(written, r"^\s*([0-9.]+)\s*([a-z]+)\s*$", part) for part in (1, 2))
    # durations first: Spark takes 5d for the double 5.0
    return sf.coalesce(number.try_cast("double") * units[unit], written.try_cast("double"))


def _status() -> Column:
    from pyspark.sql import functions as sf

    low, high = sf.col("published_low"), sf.col("published_high")
    within = (sf.col("ours_low") >= low) & (sf.col("ours_high") <= high)
    slack = sf.when(sf.col("kind") == "between", sf.col("tolerance")).otherwise(0.0)
    nearly_within = (sf.col("ours_low") >= low - slack) & (sf.col("ours_high") <= high + slack)
    good_side = (sf.col("smaller_is_better") & (sf.col("ours_high") <= high)) | (
        sf.col("larger_is_better") & (sf.col("ours_low") >= low)
    )
    trend = sf.col("kind").isin("rises", "falls")
    by_shape = sf.when(sf.col("strictly"), "reproduced").when(sf.col("nearly"), "close")
    by_bounds = (
        sf.when(within, "reproduced").when(nearly_within, "close").when(good_side, "better than published")
    )
    return (
        sf.when(sf.col("kind") == "withheld", "withheld")
        .when(sf.col("points") == 0, "no points")
        .when(trend & (sf.col("climbs") == 0), "no points")
        .when(trend, sf.coalesce(by_shape, sf.lit("not reproduced")))
        .otherwise(sf.coalesce(by_bounds, sf.lit("not reproduced")))
    )


def missed(comparisons: Sequence[Mapping[str, Any]]) -> list[str]:
    """The claims that the sweep did not bear out."""
    return [row["claim"] for row in comparisons if row["status"] in MISSED]
