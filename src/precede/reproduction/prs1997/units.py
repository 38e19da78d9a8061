"""prs1997 as units of work: runs are added to a point until the interval of its mean is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from precede.experiments.run import Run
from precede.reproduction.judging import Sample
from precede.reproduction.prs1997 import points as prs1997
from precede.reproduction.units import Finding, Paper, Unit, plain

_LENGTH: Final = ("warm_up_deliveries", "deliveries")


class _Prs:
    def units(self, folder: Path, scale: str, samples: Sequence[Sample]) -> list[Unit]:
        experiments, precision = prs1997.read_experiments(folder / "experiments.toml", scale)
        shares: dict[bytes, list[float]] = {}
        for sample in samples:
            shares.setdefault(_key(sample.experiment, sample.varied), []).append(sample.measures["tuple_share"])
        units = []
        for point in (point for points in experiments.values() for point in points):
            varied = plain(point)
            made = shares.get(_key(point.experiment, varied), [])
            count = len(made) if prs1997.narrow_enough(made, precision) else len(made) + 1
            for seed in range(1, max(precision.fewest_runs, count) + 1):
                description = {"point": plain(point, ())} | {name: getattr(precision, name) for name in _LENGTH}
                units.append(
                    Unit(
                        paper="prs1997",
                        experiment=point.experiment,
                        varied=varied,
                        seed=seed,
                        replicate=str(seed),
                        given=description,
                    )
                )
        return units

    def runs(self, unit: Unit) -> list[Run]:
        point, precision = _read(unit)
        return [point.run(unit.seed, precision)]

    def measure(self, unit: Unit) -> Finding:
        point, precision = _read(unit)
        return prs1997.measure_run(point, unit.seed, precision)


def _key(experiment: str, varied: object) -> bytes:
    return msgspec.json.encode([experiment, varied], order="sorted")


def _read(unit: Unit) -> tuple[prs1997.Point, prs1997.Precision]:
    length = {name: int(unit.given[name]) for name in _LENGTH}
    return (
        msgspec.convert(unit.given["point"], prs1997.Point),
        prs1997.Precision(**length, fewest_runs=1, most_runs=1),
    )


PAPER: Final[Paper] = _Prs()
