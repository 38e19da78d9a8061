"""drift2006 as units of work: one unit for each point of an experiment and seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from precede.experiments.run import Run
from precede.reproduction.drift2006 import points as drift2006
from precede.reproduction.judging import Sample
from precede.reproduction.units import Finding, Paper, Unit, unit_of


class _Drift:
    def units(self, folder: Path, scale: str, samples: Sequence[Sample]) -> list[Unit]:
        return [
            unit_of("drift2006", point, seed)
            for experiment in drift2006.read_experiments(folder / "experiments.toml", scale)
            for point in experiment.points
            for seed in range(1, experiment.runs + 1)
        ]

    def runs(self, unit: Unit) -> list[Run]:
        return [msgspec.convert(unit.given, drift2006.Point).run(unit.seed)]

    def measure(self, unit: Unit) -> Finding:
        return drift2006.measure_run(msgspec.convert(unit.given, drift2006.Point), unit.seed)


PAPER: Final[Paper] = _Drift()
