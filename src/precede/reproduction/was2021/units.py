"""was2021 as units of work: one unit for each point of an experiment and seed, of one protocol."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from precede.experiments.run import Run
from precede.reproduction.judging import Sample
from precede.reproduction.units import Finding, Paper, Unit, unit_of
from precede.reproduction.was2021 import comparison as was2021
from precede.reproduction.was2021 import points as buffers


class _Was:
    def units(self, folder: Path, scale: str, samples: Sequence[Sample]) -> list[Unit]:
        return [
            unit_of("was2021", point, seed, _varied(point))
            for point, runs in was2021.read_experiments(folder / "experiments.toml", scale)
            for seed in range(1, runs + 1)
        ]

    def runs(self, unit: Unit) -> list[Run]:
        point = msgspec.convert(unit.given, was2021.Point)
        if point.load in buffers.RATES:
            seconds = round(point.seconds)
            return [buffers.describe(point.load, unit.seed, seconds, point.hosts, options=point.options)]
        return [was2021.describe(point, unit.seed)]

    def measure(self, unit: Unit) -> Finding:
        return was2021.measure_run(msgspec.convert(unit.given, was2021.Point), unit.seed)


def _varied(point: was2021.Point) -> dict[str, Any]:
    return {"protocol": point.protocol, "hosts": point.hosts, **point.options}


PAPER: Final[Paper] = _Was()
