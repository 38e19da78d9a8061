"""The tables and figures of a reproduction as plain values: which rows, curves and published values they show.

`papers/<key>/figures.toml` has one table for each figure:

    [[figure]]
    name = "figure4"
    title = "Tuples carried over the propagation time"
    experiment = "figure4"
    x = "propagation"                 # an axis of the experiment
    y = "tuple_share"                 # a measure, or several, a curve each: ["tof_latency_s", "tovf_latency_s"]
    curves = ["nodes"]                # the axes that distinguish curves; `where` fixes the other axes
    where = { }
    x_label = "propagation time"
    y_label = "tuples / N²"

A distribution has `bins` instead of `x` and `y`: the measure of each place on the x axis, by its label. With
several experiments (`experiment = ["main", "single_tree"]`) each has its own curves.

A cumulated distribution has the places `at` which its measures were taken instead of `x`:

    at = [60, 600, 3600]              # one measure for each place
    y = "transit_within_{at}s_percent"
    x_per = 60                        # so much of the measured unit is one unit of the x axis; `y_per` likewise
    names = { "main, nodes 8" = "eight nodes" }   # other names for curves

What one run went through is a `series` of columns, drawn from the first replicate that has it:

    series = "registries"
    x = "at_s"                        # a column
    y = ["pending", "co_delivered"]   # columns, a curve each; of `segments`: where each line begins and ends
    shape = "line"                    # or "dots", "segments"

`published` adds values that the paper states in other words than a claim's measure; a name is a claim's value:

    published = [{ x = "figure5b-p90", y = 90 }]      # 90 % of the waits are below the value of this claim
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.experiments.tables import read_toml
from precede.measures.statistics import confidence_interval
from precede.reproduction.claims import Claim
from precede.reproduction.estimates import cluster_means
from precede.reproduction.judging import STATUSES, Comparison, Sample, place_on


class PublishedSpec(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published value or range of a figure: numbers as on its axes, or names of claims that have them."""

    x: float | str | None = None
    y: float | str | None = None
    low: float | str | None = None
    high: float | str | None = None


class FigureSpec(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One `[[figure]]` of `figures.toml`. `marks`: show what the paper published."""

    name: str
    title: str
    experiment: str | tuple[str, ...]
    x: str = ""
    y: str | tuple[str, ...] = ()
    bins: Mapping[str, str] = {}
    curves: tuple[str, ...] = ()
    where: Mapping[str, Any] = {}
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False
    marks: bool = True
    at: tuple[float, ...] = ()
    x_per: float = 1.0
    y_per: float = 1.0
    names: Mapping[str, str] = {}
    series: str = ""
    shape: Literal["points", "line", "dots", "segments"] = "points"
    published: tuple[PublishedSpec, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """What the y axis shows: measures, or columns of a series."""
        return (self.y,) if isinstance(self.y, str) else self.y

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that the figure needs; none if it shows a series."""
        if self.bins:
            return tuple(self.bins.values())
        if self.at:
            return tuple(self.columns[0].replace("{at}", f"{place:g}") for place in self.at)
        return () if self.series else self.columns

    @property
    def experiments(self) -> tuple[str, ...]:
        return (self.experiment,) if isinstance(self.experiment, str) else self.experiment

    def place(self, measure: str, axes: Mapping[str, Any]) -> float | None:
        """Return the place of a measure at a point on the x axis; None if the point does not fix it."""
        if self.bins:
            return float(self.measures.index(measure))
        if self.at:
            return self.at[self.measures.index(measure)] / self.x_per
        return _place(axes[self.x]) if self.x in axes else None


class CurvePoint(NamedTuple):
    """The mean of a measure at one x value of a curve, with its 95 % interval if there are several runs."""

    x: float
    mean: float
    low: float | None
    high: float | None


class PublishedValue(NamedTuple):
    """A published value or range (open at one end) of a figure's measure; `x` None: for the whole axis."""

    x: float | None
    value: float | None
    low: float | None
    high: float | None
    says: str


class MeasuredMean(NamedTuple):
    """One measure at one point of an experiment: its mean over the runs and its 95 % interval."""

    point: str
    measure: str
    mean: float
    low: float | None
    high: float | None
    runs: int


def read_figures(path: Path) -> list[FigureSpec]:
    if not path.is_file():
        return []
    tables, _ = read_toml(path)
    try:
        return msgspec.convert(tables.get("figure", []), list[FigureSpec])
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: {error}") from None


def count_statuses(comparisons: Sequence[Comparison]) -> dict[str, int]:
    """Count the claims with each status, in the order of `STATUSES`; a status without claims is left out.

    Automatic identities are not counted (`count_automatic`).
    """
    counts = Counter(one.status for one in comparisons if not one.claim.automatic)
    return {status: counts[status] for status in STATUSES if counts[status]}


def count_automatic(comparisons: Sequence[Comparison]) -> tuple[int, int]:
    """Return how many automatic identities hold, and how many there are; they are counted apart."""
    automatic = [
        one for one in comparisons if one.claim.automatic and one.status not in ("paper scale only", "withheld")
    ]
    return sum(one.status == "reproduced" for one in automatic), len(automatic)


def read_findings(path: Path) -> dict[str, str]:
    """Return the sentence about each exhibit: `[findings]` of `figures.toml`."""
    if not path.is_file():
        return {}
    findings = read_toml(path)[0].get("findings", {})
    return {str(exhibit): str(sentence) for exhibit, sentence in findings.items()}


def by_exhibit(comparisons: Sequence[Comparison]) -> dict[str, list[Comparison]]:
    """Group comparisons by the table, figure or section of the paper that has the claim."""
    exhibits: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        exhibits.setdefault(comparison.claim.exhibit, []).append(comparison)
    return exhibits


def measured_means(samples: Sequence[Sample]) -> Iterator[MeasuredMean]:
    """Yield the mean of every measure at every point, for an experiment that no claim is about."""
    for point in _points(samples):
        name = _distinguishing_axes(point[0].varied, samples)
        for measure in point[0].measures:
            runs = sum(measure in sample.measures for sample in point)
            yield MeasuredMean(name, measure, *_mean_and_interval(_values(point, measure)), runs)


def curves_of(spec: FigureSpec, samples: Sequence[Sample]) -> dict[str, list[CurvePoint]]:
    """Return the curves of a figure by name, each ordered by x; empty when no sample belongs to the figure."""
    belonging = [sample for sample in samples if _belongs(spec, sample)]
    if spec.series:
        drawn = [one.series[spec.series] for one in belonging if spec.series in one.series]
        return _series(spec, drawn[0]) if drawn else {}
    curves: dict[str, list[CurvePoint]] = {}
    for point in _points(belonging):
        for measure in spec.measures:
            values = _values(point, measure)
            if not values:
                continue
            x = spec.place(measure, point[0].varied)
            assert x is not None, "a point has every axis of its experiment"
            name = _curve_name(spec, point[0], measure)
            curves.setdefault(name, []).append(CurvePoint(x, *_mean_and_interval(values)))
    return {spec.names.get(name, name): sorted(points) for name, points in curves.items()}


def _series(spec: FigureSpec, columns: Mapping[str, Sequence[float]]) -> dict[str, list[CurvePoint]]:
    """Return the curves of a series; of segments one curve, in which two points are one line."""
    if spec.shape == "segments":
        begin, end = (columns[name] for name in spec.columns)
        points = [
            CurvePoint(x / spec.x_per, number, None, None)
            for number, line in enumerate(zip(begin, end, strict=True), start=1)
            for x in line
        ]
        return {spec.names.get(spec.series, spec.series): points}
    return {
        spec.names.get(name, name): [
            CurvePoint(x / spec.x_per, y / spec.y_per, None, None)
            for x, y in zip(columns[spec.x], columns[name], strict=True)
        ]
        for name in spec.columns
    }


def _curve_name(spec: FigureSpec, sample: Sample, measure: str) -> str:
    names = [sample.experiment] if len(spec.experiments) > 1 else []
    names += [f"{axis} {_plain(sample.varied[axis])}" for axis in spec.curves if axis in sample.varied]
    if not spec.bins and not spec.at and (len(spec.measures) > 1 or not names):
        names.append(measure)
    return ", ".join(names) or sample.experiment


def published_values(spec: FigureSpec, claims: Sequence[Claim]) -> list[PublishedValue]:
    """Return the means that the paper published for a figure, values or ranges; empty if `marks` is off."""
    if not spec.marks:
        return []
    values = (_published_value(spec, claim) for claim in claims)
    by_claim = [value for value in values if value is not None]
    return by_claim + [_stated_value(spec, stated, claims) for stated in spec.published]


def _stated_value(spec: FigureSpec, stated: PublishedSpec, claims: Sequence[Claim]) -> PublishedValue:
    """Return a value of `published`. Raise `BadInput` if a claim that it names has none."""
    by_id = {claim.id: claim for claim in claims}
    says: dict[str, None] = {}

    def read(given: float | str | None, per: float) -> float | None:
        if not isinstance(given, str):
            return given
        claim = by_id.get(given)
        if claim is None or claim.value is None:
            raise BadInput(f"figure {spec.name!r}: no claim {given!r} with a published value")
        says[claim.says] = None
        return claim.value / per

    x = read(stated.x, spec.x_per)
    y, low, high = (read(given, spec.y_per) for given in (stated.y, stated.low, stated.high))
    return PublishedValue(x, y, low, high, "; ".join(says))


def _published_value(spec: FigureSpec, claim: Claim) -> PublishedValue | None:
    is_about = claim.experiment in spec.experiments and claim.measure in spec.measures and claim.against is None
    if not is_about or claim.statistic != "mean":
        return None
    if any(spec.where.get(key, value) != value for key, value in claim.where.items()):
        return None
    low, high = claim.bounds
    if not (math.isfinite(low) or math.isfinite(high)):
        return None
    x = spec.place(claim.measure, claim.where)
    if low == high:
        return PublishedValue(x, low, None, None, claim.says)
    ends = [end if math.isfinite(end) else None for end in (low, high)]
    return PublishedValue(x, None, ends[0], ends[1], claim.says)


def _points(samples: Sequence[Sample]) -> list[list[Sample]]:
    """Group samples by point. Those of one point differ in nothing but the replicate."""
    points: dict[str, list[Sample]] = {}
    for sample in samples:
        points.setdefault(repr((sample.experiment, sorted(sample.varied.items()))), []).append(sample)
    return list(points.values())


def _distinguishing_axes(varied: Mapping[str, Any], samples: Sequence[Sample]) -> str:
    """Return the axes that vary among the samples, with this point's values: "loss 0.1, nodes 5"; or "all"."""
    axes = [key for key in varied if len({repr(sample.varied.get(key)) for sample in samples}) > 1]
    return ", ".join(f"{key} {varied[key]}" for key in axes) or "all"


def _values(point: Sequence[Sample], measure: str) -> list[float]:
    """Return the mean of each independent group of runs: claims are judged by these, too."""
    measured = [(one.independent, one.measures[measure]) for one in point if measure in one.measures]
    return list(cluster_means(measured).values())


def _mean_and_interval(values: Sequence[float]) -> tuple[float, float | None, float | None]:
    low, high = (confidence_interval(values) if len(values) > 1 else None) or (None, None)
    return fmean(values), low, high


def _belongs(spec: FigureSpec, sample: Sample) -> bool:
    matches = all(sample.varied.get(key) == value for key, value in spec.where.items())
    return sample.experiment in spec.experiments and matches


def _plain(value: Any) -> str:
    return "–".join(map(str, value)) if isinstance(value, list) else str(value)


def _place(value: Any) -> float:
    """Return the position of a value on the x axis; durations count in minutes."""
    return place_on(value) / 60e6 if isinstance(value, str) else place_on(value)
