"""What drift2006 claims beside what we measure: `papers/drift2006/claims.toml` judged, and every curve.

python -m precede.experiments.drift2006_claims papers/drift2006 --scale quick
python -m precede.experiments.drift2006_claims papers/drift2006 --results runs.jsonl     (resumes what is there)
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.experiments.drift2006 import Experiment, Measured, Point, measure_run, read_experiments
from precede.experiments.tables import read_toml
from precede.measures.statistics import confidence_interval

Status: TypeAlias = Literal["reproduced", "close", "not reproduced", "not run at this scale"]
Kind: TypeAlias = Literal[
    "at_least", "at_most", "greatest", "rises", "falls", "flat", "greater", "linear", "sublinear"
]
CURVES: Final = (
    "tof_latency_s",
    "tovf_latency_s",
    "speedup",
    "speedup_by_source",
    "speedup_of_means",
    "packet_bytes_mean",
    "floods_mean",
    "floods_max",
    "floods_min",
)


class Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """One number or sentence of the paper, as `claims.toml` writes it."""

    id: str
    place: str
    says: str
    experiment: str
    measure: str
    kind: Kind
    where: Mapping[str, Any] = {}
    against: Mapping[str, Any] = {}
    along: str = ""
    value: float = 0.0
    tolerance: float = 0.0


class Estimate(Struct, frozen=True):
    """All runs of a point."""

    point: Point
    runs: tuple[Measured, ...]

    def mean(self, measure: str) -> float:
        return fmean(self.values(measure))

    def values(self, measure: str) -> list[float]:
        return [run.measures[measure] for run in self.runs if measure in run.measures]


class Judged(Struct, frozen=True):
    """A claim, our value (with its 95 % interval where it is one point's), how many runs, the status."""

    claim: Claim
    status: Status
    ours: float | None = None
    interval: tuple[float, float] | None = None
    runs: int = 0


def read_claims(path: Path) -> list[Claim]:
    """The claims of a file."""
    tables, _ = read_toml(path)
    return [msgspec.convert(table, Claim) for table in tables["claim"]]


def judge(claims: Iterable[Claim], estimates: Sequence[Estimate]) -> list[Judged]:
    """Each claim with its status."""
    return [_judge(claim, estimates) for claim in claims]


def _judge(claim: Claim, estimates: Sequence[Estimate]) -> Judged:
    chosen = _chosen(claim.experiment, claim.where, estimates)
    if not chosen or (claim.along and len(chosen) < 2):
        return Judged(claim, "not run at this scale")
    if claim.kind == "greater":
        return _judge_greater(claim, chosen, estimates)
    if claim.kind in ("at_least", "at_most", "greatest"):
        best = max(chosen, key=lambda found: found.mean(claim.measure))
        return _judge_value(claim, best)
    return _judge_curve(claim, chosen)


def _chosen(experiment: str, where: Mapping[str, Any], estimates: Sequence[Estimate]) -> list[Estimate]:
    return [
        found
        for found in estimates
        if found.point.experiment == experiment
        and all(getattr(found.point, key) == value for key, value in where.items())
    ]


def _judge_value(claim: Claim, found: Estimate) -> Judged:
    values = found.values(claim.measure)
    ours = fmean(values)
    off = ours - claim.value if claim.kind == "at_most" else claim.value - ours
    near = 2 * claim.value / 3 if claim.kind == "greatest" else claim.tolerance
    status: Status = "reproduced" if off <= 0 else "close" if off <= near else "not reproduced"
    return Judged(claim, status, ours, confidence_interval(values), len(values))


def _judge_greater(claim: Claim, chosen: Sequence[Estimate], estimates: Sequence[Estimate]) -> Judged:
    """Seed by seed: here over there."""
    where = dict(claim.against)
    measure = where.pop("measure", claim.measure)
    others = _chosen(where.pop("experiment", claim.experiment), where, estimates)
    if not others:
        return Judged(claim, "not run at this scale")
    if len(chosen) > 1 or len(others) > 1:
        raise BadInput(f"claim {claim.id!r} fits {len(chosen)} and {len(others)} points, one each is wanted")
    theirs = {run.seed: run.measures[measure] for run in others[0].runs}
    ratios = [run.measures[claim.measure] / theirs[run.seed] for run in chosen[0].runs if run.seed in theirs]
    ours = fmean(ratios)
    status: Status = "reproduced" if ours > 1 else "close" if ours > 1 - claim.tolerance else "not reproduced"
    return Judged(claim, status, ours, confidence_interval(ratios), len(ratios))


def _judge_curve(claim: Claim, chosen: Sequence[Estimate]) -> Judged:
    """The shape of the means along one axis; ours is what the shape was judged by."""
    points = sorted((float(getattr(found.point, claim.along)), found.mean(claim.measure)) for found in chosen)
    curve = [mean for _, mean in points]
    runs = sum(len(found.runs) for found in chosen)
    if claim.kind in ("rises", "falls"):
        sign = 1 if claim.kind == "rises" else -1
        ours = min(sign * (after - before) / abs(before) for before, after in pairwise(curve))
        good, near = ours > 0, ours > -claim.tolerance
    elif claim.kind == "flat":
        ours = (max(curve) - min(curve)) / fmean(curve)
        good, near = ours <= claim.tolerance, ours <= 2 * claim.tolerance
    elif claim.kind == "linear":
        ours = _off_the_line(points)
        good, near = ours <= claim.tolerance, ours <= 2 * claim.tolerance
    else:
        (first, low), (last, high) = points[0], points[-1]
        ours = high / low / (last / first)
        good = near = ours < 1
    return Judged(claim, "reproduced" if good else "close" if near else "not reproduced", ours, None, runs)


def _off_the_line(points: Sequence[tuple[float, float]]) -> float:
    """How far a point is off the straight line between the first and the last, as a share of the rise."""
    (first, low), (last, high) = points[0], points[-1]
    line = [low + (high - low) * (x - first) / (last - first) for x, _ in points]
    return max(abs(y - on) for (_, y), on in zip(points, line, strict=True)) / abs(high - low)


class _Line(Struct):
    """One run in the results file."""

    point: Point
    run: Measured


def run_missing(
    folder: Path,
    scale: str = "paper",
    results: Sequence[Path] = (),
    only: str | None = None,
    most_s: float = float("inf"),
    share: tuple[int, int] = (1, 1),
) -> list[Estimate]:
    """Every point's runs, one experiment or all; what the results files have is not run again.

    The first file is continued. After `most_s` seconds no further run is begun. `share` (k, n): every n-th run
    only, from the k-th on, so that n processes with a file each can divide them.
    """
    began = time.monotonic()
    experiments = read_experiments(folder / "experiments.toml", scale)
    done = _read_results(results)
    jobs = [
        (point, seed)
        for experiment in experiments
        if only in (None, experiment.name)
        for seed in range(1, experiment.runs + 1)
        for point in experiment.points
    ]
    jobs = jobs[share[0] - 1 :: share[1]]
    missing = [(point, seed) for point, seed in jobs if (_key(point), seed) not in done]
    for place, (point, seed) in enumerate(missing, 1):
        if time.monotonic() - began > most_s:
            break
        done[_key(point), seed] = run = measure_run(point, seed)
        print(f"{place}/{len(missing)} {describe(point)} seed {seed}", file=sys.stderr, flush=True)
        if results:
            with results[0].open("ab") as file:
                file.write(msgspec.json.encode(_Line(point, run)) + b"\n")
    return _estimates(experiments, done)


def read_estimates(folder: Path, results: Sequence[Path], scale: str = "paper") -> list[Estimate]:
    """What results files have of the experiments, finished or not."""
    return _estimates(read_experiments(folder / "experiments.toml", scale), _read_results(results))


def _estimates(experiments: Sequence[Experiment], done: Mapping[tuple[bytes, int], Measured]) -> list[Estimate]:
    found = []
    for experiment in experiments:
        for point in experiment.points:
            keys = [(_key(point), seed) for seed in range(1, experiment.runs + 1)]
            runs = tuple(done[key] for key in keys if key in done)
            if runs:
                found.append(Estimate(point, runs))
    return found


def _read_results(results: Sequence[Path]) -> dict[tuple[bytes, int], Measured]:
    texts = [path.read_bytes() for path in results if path.exists()]
    lines = [msgspec.json.decode(line, type=_Line) for text in texts for line in text.splitlines()]
    return {(_key(line.point), line.run.seed): line.run for line in lines}


def _key(point: Point) -> bytes:
    return msgspec.json.encode(point, order="sorted")


def describe(point: Point) -> str:
    """A point by what is not usual about it."""
    usual = Point(experiment=point.experiment)
    said = [
        f"{name}={getattr(point, name)}"
        for name in point.__struct_fields__
        if getattr(point, name) != getattr(usual, name)
    ]
    return f"{point.experiment}: {' '.join(said) or 'as usual'}"


def curve_lines(estimates: Sequence[Estimate]) -> list[str]:
    """Every point with its means and 95 % intervals."""
    lines = []
    for found in estimates:
        lines.append(f"{describe(found.point)} ({len(found.runs)} runs)")
        for measure in CURVES:
            values = found.values(measure)
            if values:
                interval = confidence_interval(values)
                between = "" if interval is None else f" [{interval[0]:.4g}, {interval[1]:.4g}]"
                lines.append(f"    {measure:20} {fmean(values):.4g}{between}")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, judge, print; 1 when a run broke the order."""
    parser = argparse.ArgumentParser(description="what drift2006 claims beside what we measure")
    parser.add_argument("folder", type=Path, help="the folder of claims.toml and experiments.toml")
    parser.add_argument("--scale", choices=("quick", "paper"), default="paper")
    parser.add_argument(
        "--results", type=Path, nargs="*", default=[], help="files of runs; the first is continued"
    )
    parser.add_argument("--only", help="one experiment")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no run after so long")
    parser.add_argument("--share", default="1/1", help="k/n: only every n-th run, from the k-th on")
    parser.add_argument("--read", action="store_true", help="judge what the results file has, run nothing")
    parser.add_argument("--curves", action="store_true", help="print every point with its intervals too")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    if given.read:
        if not given.results:
            parser.error("--read needs --results")
        estimates = read_estimates(given.folder, given.results, given.scale)
    else:
        place, _, parts = given.share.partition("/")
        share = (int(place), int(parts))
        estimates = run_missing(given.folder, given.scale, given.results, given.only, given.seconds, share)
    judged = judge(read_claims(given.folder / "claims.toml"), estimates)
    if given.json:
        print(msgspec.json.encode(judged).decode())
    else:
        for line in [*(curve_lines(estimates) if given.curves else ()), *map(_line, judged)]:
            print(line)
    return 1 if any(run.violations for found in estimates for run in found.runs) else 0


def _line(one: Judged) -> str:
    ours = "-" if one.ours is None else f"{one.ours:.4g}"
    between = "" if one.interval is None else f"[{one.interval[0]:.4g}, {one.interval[1]:.4g}]"
    return f"{one.status:22} {one.claim.id:40} ours {ours:>8} {between:20} {one.claim.says}"


if __name__ == "__main__":
    sys.exit(main())
