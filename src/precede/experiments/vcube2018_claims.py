"""What vcube2018 claims beside what we measure: `papers/vcube2018/claims.toml` judged for each start process.

python -m precede.experiments.vcube2018_claims papers/vcube2018 --scale quick
python -m precede.experiments.vcube2018_claims papers/vcube2018 --results runs.jsonl     (resumes what is there)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.experiments.tables import read_toml
from precede.experiments.vcube2018 import Measured, Point, measure_run, read_experiments
from precede.measures.statistics import confidence_interval

Status: TypeAlias = Literal[
    "reproduced", "close", "better than published", "not reproduced", "withheld", "not run at this scale"
]
DEPENDENCIES: Final = tuple(f"dependencies_{name}_percent" for name in ("0", "1_to_4", "5_to_9", "over_12"))


class Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """One number or sentence of the paper, as `claims.toml` writes it."""

    id: str
    place: str
    says: str
    experiment: str
    kind: Literal["about", "at_most", "at_least", "between", "greatest", "rises", "withheld"]
    measure: str
    where: Mapping[str, Any] = {}
    against: Mapping[str, Any] | None = None
    compare: Literal["ratio", "change"] = "change"
    along: str = ""
    low: float = 0.0
    high: float = 0.0
    value: float = 0.0
    tolerance: float = 0.0
    relative: float = 0.0
    smaller_is_better: bool = False
    larger_is_better: bool = False


class Estimate(Struct, frozen=True):
    """All runs of a point."""

    point: Point
    runs: tuple[Measured, ...]

    def values(self, measure: str) -> list[float]:
        return [run.measures[measure] for run in self.runs if measure in run.measures]


class Judged(Struct, frozen=True):
    """A claim for one start process: our value with its 95 % interval, how many runs, the status."""

    claim: Claim
    start: str
    status: Status
    ours: float | None = None
    interval: tuple[float, float] | None = None
    runs: int = 0


def read_claims(path: Path) -> list[Claim]:
    """The claims of a file."""
    tables, _ = read_toml(path)
    return [msgspec.convert(table, Claim) for table in tables["claim"]]


def judge(claims: Iterable[Claim], estimates: Sequence[Estimate]) -> list[Judged]:
    """Each claim with its status, for each start process that was run."""
    starts = list(dict.fromkeys(found.point.start for found in estimates))
    return [_judge(claim, start, estimates) for claim in claims for start in starts]


def _judge(claim: Claim, start: str, estimates: Sequence[Estimate]) -> Judged:
    chosen = _chosen(claim.experiment, start, claim.where, estimates)
    if claim.kind in ("rises", "greatest"):
        return _judge_many(claim, start, chosen)
    if len(chosen) > 1:
        raise BadInput(f"claim {claim.id!r} fits {len(chosen)} points, one is wanted")
    values = _values(claim, start, chosen, estimates)
    if not values:
        return Judged(claim, start, "not run at this scale")
    ours = fmean(values)
    return Judged(claim, start, _by_bounds(claim, ours), ours, confidence_interval(values), len(values))


def _chosen(
    experiment: str, start: str, where: Mapping[str, Any], estimates: Sequence[Estimate]
) -> list[Estimate]:
    return [
        found
        for found in estimates
        if found.point.experiment == experiment
        and found.point.start == start
        and all(getattr(found.point, key) == value for key, value in where.items())
    ]


def _values(claim: Claim, start: str, chosen: Sequence[Estimate], estimates: Sequence[Estimate]) -> list[float]:
    """The claim's measure for each run; a comparison is made seed by seed."""
    if not chosen:
        return []
    if claim.against is None:
        return chosen[0].values(claim.measure)
    where = dict(claim.against)
    others = _chosen(where.pop("experiment", claim.experiment), start, where, estimates)
    if len(others) > 1:
        raise BadInput(f"claim {claim.id!r}: `against` fits {len(others)} points, one is wanted")
    if not others:
        return []
    theirs = {run.seed: run.measures for run in others[0].runs}
    pairs = [(run.measures, theirs[run.seed]) for run in chosen[0].runs if run.seed in theirs]
    return [found for ours, other in pairs if (found := _compare(claim, ours, other)) is not None]


def _compare(claim: Claim, ours: Mapping[str, float], theirs: Mapping[str, float]) -> float | None:
    if claim.measure == "dependencies_apart":
        return max(abs(ours[name] - theirs[name]) for name in DEPENDENCIES)
    if not theirs.get(claim.measure):
        return None
    ratio = ours[claim.measure] / theirs[claim.measure]
    return ratio if claim.compare == "ratio" else 100 * (ratio - 1)


def _by_bounds(claim: Claim, ours: float) -> Status:
    """Within the tolerance, within twice of it, on the good side of it, or none of these."""
    if claim.kind == "withheld":
        return "withheld"
    low, high = {
        "about": (claim.value, claim.value),
        "greatest": (claim.value, claim.value),
        "at_most": (float("-inf"), claim.value),
        "at_least": (claim.value, float("inf")),
        "between": (claim.low, claim.high),
    }[claim.kind]
    tolerance = claim.tolerance or claim.relative * abs(claim.value)
    off = max(low - ours, ours - high, 0.0)
    if off <= tolerance:
        return "reproduced"
    if off <= 2 * tolerance:
        return "close"
    if (claim.smaller_is_better and ours < low) or (claim.larger_is_better and ours > high):
        return "better than published"
    return "not reproduced"


def _judge_many(claim: Claim, start: str, chosen: Sequence[Estimate]) -> Judged:
    """A sentence about all points of an experiment: the greatest mean, or that means rise along an axis."""
    means = [(found, fmean(values)) for found in chosen if (values := found.values(claim.measure))]
    if not means:
        return Judged(claim, start, "not run at this scale")
    if claim.kind == "greatest":
        found, greatest = max(means, key=lambda one: one[1])
        values = found.values(claim.measure)
        return Judged(
            claim, start, _by_bounds(claim, greatest), greatest, confidence_interval(values), len(values)
        )
    curve = [mean for _, mean in sorted(means, key=lambda one: float(getattr(one[0].point, claim.along)))]
    least_step = min((after - before for before, after in pairwise(curve)), default=0.0)
    status: Status = "not reproduced"
    if least_step > -claim.tolerance:
        status = "reproduced" if least_step >= 0 else "close"
    return Judged(claim, start, status, least_step, None, len(curve))


class _Line(Struct):
    """One run in the results file."""

    point: Point
    run: Measured


def run_missing(folder: Path, scale: str, results: Path | None, nodes: int | None = None) -> list[Estimate]:
    """Every point's runs; what the results file already has is not run again."""
    points, wanted = read_experiments(folder / "experiments.toml", scale)
    points = [point for point in points if nodes is None or point.nodes <= nodes]
    done: dict[tuple[bytes, int], Measured] = {}
    if results is not None and results.exists():
        for line in results.read_bytes().splitlines():
            read = msgspec.json.decode(line, type=_Line)
            done[_key(read.point), read.run.seed] = read.run
    jobs = [(point, seed) for point in points for seed in range(1, wanted.runs_of(point) + 1)]
    missing = sorted(
        ((point, seed) for point, seed in jobs if (_key(point), seed) not in done),
        key=lambda job: (job[1], job[0].nodes),
    )
    for place, (point, seed) in enumerate(missing, 1):
        done[_key(point), seed] = run = measure_run(point, seed)
        print(f"{place}/{len(missing)} {_describe(point)} seed {seed}", file=sys.stderr, flush=True)
        if results is not None:
            with results.open("ab") as file:
                file.write(msgspec.json.encode(_Line(point, run)) + b"\n")
    return [
        Estimate(point, tuple(done[_key(point), seed] for one, seed in jobs if one is point))
        for point in points
    ]


def _key(point: Point) -> bytes:
    return msgspec.json.encode(point, order="sorted")


def _describe(point: Point) -> str:
    options = f"aggregation={point.aggregation} tree={point.tree} unpack={point.unpack} drawn={point.drawn}"
    return f"{point.experiment}: N={point.nodes} start={point.start} {point.propagation} {options}"


def _line(one: Judged) -> str:
    ours = "-" if one.ours is None else f"{one.ours:.6g}"
    interval = "" if one.interval is None else f"[{one.interval[0]:.6g}, {one.interval[1]:.6g}]"
    return f"{one.status:22} {one.start:12} {one.claim.id:36} ours {ours:>9} {interval:24} {one.claim.says}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, judge, print; 1 when a run broke the order."""
    parser = argparse.ArgumentParser(description="what vcube2018 claims beside what we measure")
    parser.add_argument("folder", type=Path, help="the folder of claims.toml and experiments.toml")
    parser.add_argument("--scale", choices=("quick", "paper"), default="paper")
    parser.add_argument("--results", type=Path, help="a file of runs, made and continued")
    parser.add_argument("--nodes", type=int, help="only points with at most so many nodes")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    estimates = run_missing(given.folder, given.scale, given.results, given.nodes)
    judged = judge(read_claims(given.folder / "claims.toml"), estimates)
    if given.json:
        print(msgspec.json.encode(judged).decode())
    else:
        for one in judged:
            print(_line(one))
    return 1 if any(run.violations for found in estimates for run in found.runs) else 0


if __name__ == "__main__":
    sys.exit(main())
