"""The experiments of guidec2021 (section VI), run here and held against `papers/guidec2021/claims.toml`.

python -m precede.experiments.guidec2021 papers/guidec2021 --scale quick --only pedestrians
python -m precede.experiments.guidec2021 papers/guidec2021 --results results.jsonl   (resumes what is there)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.eventlog.sinks import TableSink
from precede.experiments.runs import prepare
from precede.experiments.scenario import read_scenario
from precede.experiments.tables import read_toml
from precede.measures.events import measure_events
from precede.measures.gauges import measure_gauges

Status: TypeAlias = Literal["reproduced", "not reproduced", "withheld", "no points"]
_DELAYS: Final = ("transit", "wait", "age")
_STATISTICS: Final = ("mean", "sd", "min", "max", "p50", "p95", "p99")


class Point(Struct, frozen=True):
    """One run: which experiment, what its grid varied, in which town, with which seed."""

    experiment: str
    varied: Mapping[str, str]
    layout: str
    seed: int
    scenario: str
    protocol: str
    settings: Mapping[str, str]


class Result(Struct, frozen=True):
    """A point and what it measured."""

    point: Point
    measures: Mapping[str, float]


class Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """One number of the paper, as `claims.toml` writes it."""

    id: str
    place: str
    says: str
    experiment: str
    measure: str
    kind: Literal["about", "at_most", "withheld"]
    where: Mapping[str, str] = {}
    value: float = 0.0
    tolerance: float = 0.0


class Judged(Struct, frozen=True):
    """A claim, the mean of ours over the points it picks, their range, and the status of the mean."""

    claim: Claim
    status: Status
    ours: float | None
    least: float | None
    most: float | None


def read_points(path: Path, scale: str) -> list[Point]:
    """Every run that `experiments.toml` asks for at a scale."""
    tables, _ = read_toml(path)
    if scale not in tables:
        raise BadInput(f"{path}: no scale [{scale}]")
    points = []
    for name, experiment in tables["experiment"].items():
        grid = experiment.get("grid", {})
        for values in product(*grid.values()):
            varied = dict(zip(grid, values, strict=True))
            for layout, seed in product(tables[scale]["layouts"], tables[scale]["seeds"]):
                settings = {"layout": layout, **experiment.get("set", {}), **varied}
                made = Point(
                    name, varied, layout, seed, experiment["scenario"], experiment["protocol"], settings
                )
                points.append(made)
    return points


def run_point(point: Point) -> Result:
    """One run and its measures, delays in seconds, ratios in percent."""
    settings = {"log": "messages", **point.settings}
    sink = TableSink()
    ready = prepare(read_scenario(point.scenario, point.protocol, point.seed, settings), sink)
    ready.world.run(ready.end)
    ready.recorder.flush()
    found = measure_events(sink.events().to_batches())
    measures = {name: float(value) for name, value in found.items() if value is not None}
    for delay, statistic in product(_DELAYS, _STATISTICS):
        if f"{delay}_us_{statistic}" in measures:
            measures[f"{delay}_s_{statistic}"] = measures.pop(f"{delay}_us_{statistic}") / 1e6
    receptions, deliveries = measures["receptions"], measures["deliveries"]
    measures["co_delivery_percent"] = 100 * deliveries / max(1.0, measures["broadcasts"] + receptions)
    measures["expired_percent"] = 100 * measures["expired"] / max(1.0, receptions)
    measures["barrier_entries_mean"] = measures["control_entries"] / max(1.0, measures["messages_in_packet"])
    gauges = measure_gauges(sink.gauges().to_batches())
    measures |= {name: float(value) for name, value in gauges.items() if value is not None}
    return Result(point, measures | _world_statistics(ready))


def _world_statistics(ready: Any) -> dict[str, float]:
    """Tables I and IV: contacts and stays, in seconds."""
    contacts = [end - start for _, _, start, end in ready.built.network.contact_list()]
    stays = [stay.leave - stay.enter for stay in ready.built.presence if stay.leave is not None]
    found = {"contacts": float(len(contacts))}
    for name, lengths in (("contact", contacts), ("stay", stays)):
        if lengths:
            mean = sum(lengths) / len(lengths)
            found[f"{name}_s_mean"] = mean / 1e6
            found[f"{name}_s_sd"] = (sum((x - mean) ** 2 for x in lengths) / len(lengths)) ** 0.5 / 1e6
    return found


def judge(claim: Claim, results: Sequence[Result]) -> Judged:
    """Beside the mean over layouts and seeds of the points a claim picks."""
    found = [
        result.measures[claim.measure]
        for result in results
        if result.point.experiment == claim.experiment
        and claim.measure in result.measures
        and all(result.point.varied.get(key) == value for key, value in claim.where.items())
    ]
    if not found:
        return Judged(claim, "no points", None, None, None)
    ours = sum(found) / len(found)
    met = ours <= claim.value if claim.kind == "at_most" else abs(ours - claim.value) <= claim.tolerance
    status: Status = "withheld" if claim.kind == "withheld" else "reproduced" if met else "not reproduced"
    return Judged(claim, status, ours, min(found), max(found))


def read_claims(path: Path) -> list[Claim]:
    tables, _ = read_toml(path)
    return [msgspec.convert(claim, Claim) for claim in tables["claim"]]


def run_all(points: Sequence[Point], kept: Path | None) -> Iterator[Result]:
    """What is in the file already is not run again; what is run is added to it."""
    before: list[Result] = []
    if kept is not None and kept.exists():
        lines = kept.read_bytes().splitlines()
        before = [msgspec.json.decode(line, type=Result) for line in lines if line.strip()]
    for place, point in enumerate(points, 1):
        done = next((result for result in before if result.point == point), None)
        if done is None:
            print(
                f"{place}/{len(points)} {point.experiment} {dict(point.varied)} {point.layout}", file=sys.stderr
            )
            done = run_point(point)
            if kept is not None:
                with kept.open("ab") as file:
                    file.write(msgspec.json.encode(done) + b"\n")
        yield done


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder of claims.toml and experiments.toml")
    parser.add_argument("--scale", choices=("quick", "paper"), default="quick")
    parser.add_argument("--only", action="append", help="an experiment; may be repeated")
    parser.add_argument("--results", type=Path, help="a file of results, one per line, to resume from")
    given = parser.parse_args(arguments)
    points = read_points(given.folder / "experiments.toml", given.scale)
    points = [point for point in points if not given.only or point.experiment in given.only]
    results = list(run_all(points, given.results))
    judged = [judge(claim, results) for claim in read_claims(given.folder / "claims.toml")]
    for found in judged:
        if found.ours is not None:
            said = "" if found.claim.kind == "withheld" else f"{found.claim.value:g}"
            print(f"{found.claim.id:32} {said:>10} {found.ours:12.4g}  {found.status}")
    return 1 if any(found.status == "not reproduced" for found in judged) else 0


if __name__ == "__main__":
    sys.exit(main())
