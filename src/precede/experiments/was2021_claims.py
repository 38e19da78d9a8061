"""What was2021 claims beside what we measure: `papers/was2021/claims.toml` judged over the runs.

python -m precede.experiments.was2021_claims papers/was2021 --scale quick
python -m precede.experiments.was2021_claims papers/was2021 --results runs.jsonl     (resumes what is there)
python -m precede.experiments.was2021_claims papers/was2021 --results runs.jsonl --only growth --points
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.experiments.tables import read_toml
from precede.experiments.was2021_comparison import Measured, Point, measure_run, read_experiments
from precede.measures.statistics import confidence_interval

Status: TypeAlias = Literal["reproduced", "close", "not reproduced", "withheld", "not run"]
RIVALS: Final = ("ck", "ck_host")


class Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """One number or sentence of the paper, as `claims.toml` writes it."""

    id: str
    place: str
    says: str
    experiment: str
    measure: str
    kind: Literal["about", "at_least", "between", "rises", "falls", "withheld"]
    hosts: int | None = None
    ratio: Literal["", "ck/was", "was/ck"] = ""
    low: float = 0.0
    high: float = 0.0
    value: float = 0.0
    relative: float = 0.0


class Judged(Struct, frozen=True):
    """A claim, for one form of CK where it is about CK: our means with their 95 % intervals, by hosts."""

    claim: Claim
    rival: str
    status: Status
    ours: tuple[float, ...] = ()
    intervals: tuple[tuple[float, float] | None, ...] = ()
    hosts: tuple[int, ...] = ()
    runs: int = 0


class Ran(Struct, frozen=True):
    """One run of a point; a line of the results file."""

    point: Point
    run: Measured


def read_claims(path: Path) -> list[Claim]:
    """The claims of a file."""
    tables, _ = read_toml(path)
    return [msgspec.convert(table, Claim) for table in tables["claim"]]


def judge(claims: Iterable[Claim], ran: Sequence[Ran]) -> list[Judged]:
    """Each claim with its status; one that compares, once for each form of CK."""
    return [_judge(claim, rival, ran) for claim in claims for rival in (RIVALS if claim.ratio else ("",))]


def _judge(claim: Claim, rival: str, ran: Sequence[Ran]) -> Judged:
    hosts = sorted({one.point.hosts for one in ran if one.point.experiment == claim.experiment})
    chosen = [count for count in hosts if claim.hosts in (None, count)]
    by_hosts = {count: values for count in chosen if (values := _values(claim, rival, count, ran))}
    if not by_hosts:
        return Judged(claim, rival, "not run")
    means = tuple(fmean(values) for values in by_hosts.values())
    return Judged(
        claim,
        rival,
        _along_hosts(claim, means) if claim.kind in ("rises", "falls") else _by_bounds(claim, means[0]),
        means,
        tuple(confidence_interval(values) for values in by_hosts.values()),
        tuple(by_hosts),
        min(map(len, by_hosts.values())),
    )


def _values(claim: Claim, rival: str, hosts: int, ran: Sequence[Ran]) -> list[float]:
    """The measure, or the ratio of two protocols', seed by seed."""
    ours = _by_seed(claim, "was", hosts, ran)
    if not claim.ratio:
        return list(ours.values())
    theirs = _by_seed(claim, rival, hosts, ran)
    above, below = (theirs, ours) if claim.ratio == "ck/was" else (ours, theirs)
    return [above[seed] / below[seed] for seed in above if below.get(seed)]


def _by_seed(claim: Claim, protocol: str, hosts: int, ran: Sequence[Ran]) -> dict[int, float]:
    return {
        one.run.seed: one.run.measures[claim.measure]
        for one in ran
        if (one.point.experiment, one.point.protocol, one.point.hosts) == (claim.experiment, protocol, hosts)
    }


def _along_hosts(claim: Claim, means: Sequence[float]) -> Status:
    sign = 1 if claim.kind == "rises" else -1
    steps = [sign * (after - before) / before for before, after in pairwise(means)]
    if not steps:
        return "not run"
    if min(steps) > 0:
        return "reproduced"
    return "close" if min(steps) > -claim.relative else "not reproduced"


def _by_bounds(claim: Claim, ours: float) -> Status:
    if claim.kind == "withheld":
        return "withheld"
    low, high = {
        "about": (claim.value, claim.value),
        "at_least": (claim.value, float("inf")),
        "between": (claim.low, claim.high),
    }[claim.kind]
    off = max((low - ours) / low, (ours - high) / high if high != float("inf") else 0.0, 0.0)
    if off <= claim.relative:
        return "reproduced"
    return "close" if off <= 2 * claim.relative else "not reproduced"


def run_missing(folder: Path, scale: str, results: Path | None, only: str = "") -> list[Ran]:
    """Every run of every point, seed after seed; what the results file already has is not run again."""
    wanted = [
        (point, seed)
        for point, runs in read_experiments(folder / "experiments.toml", scale)
        if only in ("", point.experiment)
        for seed in range(1, runs + 1)
    ]
    if not wanted:
        raise BadInput(f"no experiment {only!r} in {folder / 'experiments.toml'}")
    wanted.sort(key=lambda job: job[1])
    done = _read_results(results)
    missing = [job for job in wanted if _key(*job) not in done]
    for place, (point, seed) in enumerate(missing, 1):
        one = done[_key(point, seed)] = Ran(point, measure_run(point, seed))
        print(f"{place}/{len(missing)} {_describe(one)}", file=sys.stderr, flush=True)
        if results is not None:
            with results.open("ab") as file:
                file.write(msgspec.json.encode(one) + b"\n")
    return [done[_key(point, seed)] for point, seed in wanted]


def _read_results(results: Path | None) -> dict[bytes, Ran]:
    if results is None or not results.exists():
        return {}
    read = [msgspec.json.decode(line, type=Ran) for line in results.read_bytes().splitlines()]
    return {_key(one.point, one.run.seed): one for one in read}


def _key(point: Point, seed: int) -> bytes:
    return msgspec.json.encode([point, seed])


def _describe(one: Ran) -> str:
    point, run = one.point, one.run
    told = " ".join(f"{name}={value:.4g}" for name, value in run.measures.items())
    return f"{point.experiment} {point.protocol} {point.stations}/{point.hosts} seed {run.seed}: {told}"


def line(one: Judged) -> str:
    """A claim in one line: status, ours with intervals (by hosts where several), what the paper says."""
    told = []
    for hosts, ours, interval in zip(one.hosts, one.ours, one.intervals, strict=True):
        bounds = f" [{interval[0]:.4g}, {interval[1]:.4g}]" if interval is not None else ""
        told.append(f"{f'{hosts}: ' if len(one.hosts) > 1 else ''}{ours:.4g}{bounds}")
    ours_told = "; ".join(told) or "-"
    return f"{one.status:15} {one.claim.id:30} {one.rival:8} ours {ours_told} | {one.claim.says}"


def point_lines(ran: Sequence[Ran]) -> list[str]:
    """The figures themselves: each measure of each point, as a mean over the seeds with its 95 % interval."""
    runs: dict[Point, list[Measured]] = {}
    for one in ran:
        runs.setdefault(one.point, []).append(one.run)
    lines = []
    for point, found in runs.items():
        lines.append(f"{point.experiment} {point.protocol}, {point.hosts} hosts, {point.stations} stations:")
        for name in found[0].measures:
            values = [run.measures[name] for run in found]
            interval = confidence_interval(values)
            bounds = f" [{interval[0]:.5g}, {interval[1]:.5g}]" if interval is not None else ""
            lines.append(f"  {name} {fmean(values):.5g}{bounds}, {len(values)} runs")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, judge, print; 1 when a run broke the order."""
    parser = argparse.ArgumentParser(description="what was2021 claims beside what we measure")
    parser.add_argument("folder", type=Path, help="the folder of claims.toml and experiments.toml")
    parser.add_argument("--scale", choices=("quick", "paper"), default="paper")
    parser.add_argument("--results", type=Path, help="a file of runs, made and continued")
    parser.add_argument("--only", default="", help="one experiment of experiments.toml")
    parser.add_argument("--points", action="store_true", help="print every point's measures instead")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    ran = run_missing(given.folder, given.scale, given.results, given.only)
    judged = judge(read_claims(given.folder / "claims.toml"), ran)
    judged = [one for one in judged if given.only in ("", one.claim.experiment)]
    if given.json:
        print(msgspec.json.encode(judged).decode())
    elif given.points:
        print("\n".join(point_lines(ran)))
    else:
        for one in judged:
            print(line(one))
    return 1 if any(one.run.violations for one in ran) else 0


if __name__ == "__main__":
    sys.exit(main())
