"""vcube2018 as units of work: each point once for each start process, which is a reading of the text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from precede.experiments.run import Run
from precede.reproduction.judging import Sample
from precede.reproduction.units import Finding, Paper, Unit, unit_of
from precede.reproduction.vcube2018 import points as vcube2018


class _VCube:
    def units(self, folder: Path, scale: str, samples: Sequence[Sample]) -> list[Unit]:
        points, repetitions = vcube2018.read_experiments(folder / "experiments.toml", scale)
        return [
            unit_of("vcube2018", point, seed)
            for point in points
            for seed in range(1, repetitions.runs_of(point) + 1)
        ]

    def runs(self, unit: Unit) -> list[Run]:
        point = msgspec.convert(unit.given, vcube2018.Point)
        if point.experiment in vcube2018.PAIRED:
            return [point.run(unit.seed), point.run(unit.seed, aggregation=False)]
        return [point.run(unit.seed)]

    def measure(self, unit: Unit) -> Finding:
        return vcube2018.measure_run(msgspec.convert(unit.given, vcube2018.Point), unit.seed)


PAPER: Final[Paper] = _VCube()
