"""What prs1997 claims beside what we measure: `papers/prs1997/claims.toml` judged over the estimates.

python -m precede.experiments.prs1997_claims papers/prs1997 --scale quick
python -m precede.experiments.prs1997_claims papers/prs1997 --results results.jsonl     (resumes what is there)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.experiments.prs1997 import Estimate, Point, estimate, read_experiments
from precede.experiments.tables import read_toml

Status: TypeAlias = Literal["reproduced", "close", "better than published", "not reproduced", "withheld"]
Along: TypeAlias = Callable[["Claim", Sequence[Estimate]], tuple[bool, bool]]
WORD_BITS: Final = 32


class Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """One sentence of the paper, as `claims.toml` writes it."""

    id: str
    place: str
    says: str
    experiment: str
    kind: str
    measure: str = "tuple_share"
    where: Mapping[str, Any] = {}
    along: str = ""
    over: str = ""
    at: tuple[float, ...] = ()
    beside: str = ""
    low: float = 0.0
    high: float = 0.0
    value: float = 0.0
    tolerance: float = 0.0
    smaller_is_better: bool = False
    larger_is_better: bool = False


class Judged(Struct, frozen=True):
    """A claim with what we found: the smallest and the largest of our means, and the status."""

    claim: Claim
    status: Status
    ours: tuple[float, float]
    points: int


def read_claims(path: Path) -> list[Claim]:
    """The claims of a file."""
    tables, _ = read_toml(path)
    return [msgspec.convert(table, Claim) for table in tables["claim"]]


def judge(claims: Iterable[Claim], estimates: Sequence[Estimate]) -> list[Judged]:
    """Each claim with its status."""
    return [_judge(claim, estimates) for claim in claims]


def _judge(claim: Claim, estimates: Sequence[Estimate]) -> Judged:
    chosen = [found for found in estimates if _is_meant(claim, found.point)]
    if not chosen:
        raise BadInput(f"claim {claim.id!r}: no point of experiment {claim.experiment!r} fits")
    values = [_measured(claim, found) for found in chosen]
    ours = (min(values), max(values))
    status: Status
    if claim.kind == "withheld":
        status = "withheld"
    elif claim.kind in ("between", "about", "at_most"):
        status = _by_bounds(claim, ours)
    elif claim.kind == "same":
        status = _as_beside(claim, chosen, estimates)
    else:
        status = _by_shape(claim, chosen)
    return Judged(claim, status, ours, len(chosen))


def _is_meant(claim: Claim, point: Point) -> bool:
    if claim.experiment not in ("*", point.experiment):
        return False
    return all(getattr(point, key) == value for key, value in claim.where.items())


def _measured(claim: Claim, found: Estimate) -> float:
    if claim.measure == "saving":
        return 1 - found.mean
    if claim.measure == "bitmap_share":
        return found.mean + 1 / WORD_BITS
    if claim.measure == "tuple_share":
        return found.mean
    value: float = getattr(found, claim.measure)
    return value


def _by_bounds(claim: Claim, ours: tuple[float, float]) -> Status:
    bounds = {
        "between": (claim.low, claim.high),
        "about": (claim.value - claim.tolerance, claim.value + claim.tolerance),
        "at_most": (float("-inf"), claim.value),
    }
    low, high = bounds[claim.kind]
    if low <= ours[0] and ours[1] <= high:
        return "reproduced"
    if low - claim.tolerance <= ours[0] and ours[1] <= high + claim.tolerance and claim.kind == "between":
        return "close"
    if (claim.smaller_is_better and ours[1] <= high) or (claim.larger_is_better and low <= ours[0]):
        return "better than published"
    return "not reproduced"


def _as_beside(claim: Claim, chosen: Sequence[Estimate], estimates: Sequence[Estimate]) -> Status:
    """The same as another experiment at every point, within the tolerance relative to it."""
    others = {_axes(found.point): found.mean for found in estimates if found.point.experiment == claim.beside}
    apart = [abs(found.mean / others[_axes(found.point)] - 1) for found in chosen]
    if max(apart) <= claim.tolerance:
        return "reproduced"
    return "close" if max(apart) <= 2 * claim.tolerance else "not reproduced"


def _by_shape(claim: Claim, chosen: Sequence[Estimate]) -> Status:
    """A sentence about curves: reproduced when all have the shape, close when all have it within tolerance."""
    curves = _curves(claim.over or claim.along, chosen)
    if claim.kind == "range_rises":
        ranges = [max(curve) / min(curve) for curve in curves]
        return _status([_climbs(ranges, claim.tolerance)])
    if claim.kind == "steeper_last":
        return _status([_steeper_last(curve, claim, chosen) for curve in curves])
    if claim.kind not in ("rises", "falls"):
        raise BadInput(f"claim {claim.id!r}: unknown kind {claim.kind!r}")
    sign = 1 if claim.kind == "rises" else -1
    return _status([_climbs([sign * value for value in curve], claim.tolerance) for curve in curves])


def _curves(axis: str, chosen: Sequence[Estimate]) -> list[list[float]]:
    """The means along one axis, one curve for each setting of the others, both ascending."""
    curves: dict[tuple[Any, ...], list[tuple[Any, float]]] = {}
    for found in sorted(chosen, key=lambda found: _axes(found.point)):
        others = _axes(msgspec.structs.replace(found.point, **{axis: _NOWHERE[axis]}))
        curves.setdefault(others, []).append((getattr(found.point, axis), found.mean))
    return [[mean for _, mean in sorted(curve)] for curve in curves.values()]


_NOWHERE: Final[dict[str, Any]] = {"propagation": 0.0, "gap": 0.0, "selectivity": 0.0, "to": None}


def _axes(point: Point) -> tuple[Any, ...]:
    return (point.nodes, point.to or (0, 0), point.selectivity, point.propagation, point.gap)


def _climbs(values: Sequence[float], tolerance: float) -> tuple[bool, bool]:
    """Does it climb at every step: strictly; within a tolerance?"""
    steps = list(pairwise(values))
    return all(a < b for a, b in steps), all(b > a - tolerance * abs(a) for a, b in steps)


def _steeper_last(curve: Sequence[float], claim: Claim, chosen: Sequence[Estimate]) -> tuple[bool, bool]:
    """Of three places on a curve the last two are further apart than the first two."""
    places = sorted({getattr(found.point, claim.along) for found in chosen})
    first, second, third = (curve[places.index(place)] for place in claim.at)
    found = second - third > first - second
    return found, found


def _status(shapes: Sequence[tuple[bool, bool]]) -> Status:
    if all(strictly for strictly, _ in shapes):
        return "reproduced"
    return "close" if all(nearly for _, nearly in shapes) else "not reproduced"


def run_missing(folder: Path, scale: str, results: Path | None) -> list[Estimate]:
    """Every point's estimate; what the results file already has is not run again."""
    experiments, precision = read_experiments(folder / "experiments.toml", scale)
    done = _read_results(results)
    points = [point for chosen in experiments.values() for point in chosen]
    for place, point in enumerate(points, 1):
        key = _key(point)
        if key in done:
            continue
        done[key] = found = estimate(point, precision)
        print(f"{place}/{len(points)} {_describe(found)}", file=sys.stderr, flush=True)
        if results is not None:
            with results.open("ab") as file:
                file.write(msgspec.json.encode(found) + b"\n")
    return [done[_key(point)] for point in points]


def _read_results(results: Path | None) -> dict[bytes, Estimate]:
    if results is None or not results.exists():
        return {}
    lines = results.read_bytes().splitlines()
    found = [msgspec.json.decode(line, type=Estimate) for line in lines]
    return {_key(one.point): one for one in found}


def _key(point: Point) -> bytes:
    return msgspec.json.encode(point, order="sorted")


def _describe(found: Estimate) -> str:
    point = found.point
    options = " ".join(f"{key}={value}" for key, value in point.options.items())
    return (
        f"{point.experiment}: N={point.nodes} to={point.to} propagation={point.propagation} gap={point.gap}"
        f" selectivity={point.selectivity} {point.protocol} {options}: {found.mean:.4f}"
        f" (95 %: {found.low:.4f} to {found.high:.4f}, {found.runs} runs, {found.violations} violations)"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, judge, print; 1 when a run broke the order."""
    parser = argparse.ArgumentParser(description="what prs1997 claims beside what we measure")
    parser.add_argument("folder", type=Path, help="the folder of claims.toml and experiments.toml")
    parser.add_argument("--scale", choices=("quick", "paper"), default="paper")
    parser.add_argument("--results", type=Path, help="a file of estimates, made and continued")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    estimates = run_missing(given.folder, given.scale, given.results)
    judged = judge(read_claims(given.folder / "claims.toml"), estimates)
    if given.json:
        print(msgspec.json.encode(judged).decode())
    else:
        for one in judged:
            ours = f"{one.ours[0]:.3f} to {one.ours[1]:.3f}"
            print(f"{one.status:24} {one.claim.id:32} ours {ours:18} {one.claim.says}")
    return 1 if any(found.violations for found in estimates) else 0


if __name__ == "__main__":
    sys.exit(main())
