"""guidec2021 as units of work: towns (layouts) and seeds are the repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from precede.experiments.run import Run
from precede.reproduction.guidec2021 import points as guidec2021
from precede.reproduction.judging import Sample
from precede.reproduction.units import Finding, Paper, Unit, unit_of


class _Guidec:
    def units(self, folder: Path, scale: str, samples: Sequence[Sample]) -> list[Unit]:
        points, seeds = guidec2021.read_experiments(folder / "experiments.toml", scale)
        return [
            msgspec.structs.replace(
                unit_of("guidec2021", point, seed, point.varied), replicate=f"{point.layout}{seed}"
            )
            for point in points
            for seed in seeds
        ]

    def runs(self, unit: Unit) -> list[Run]:
        return [msgspec.convert(unit.given, guidec2021.Point).run(unit.seed)]

    def measure(self, unit: Unit) -> Finding:
        return guidec2021.measure_run(msgspec.convert(unit.given, guidec2021.Point), unit.seed)


PAPER: Final[Paper] = _Guidec()
