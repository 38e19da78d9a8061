"""drift2006 as units, and its claims, which are written in the words of that paper, in the common form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from precede.core.errors import BadInput
from precede.experiments.run import Run
from precede.experiments.tables import read_toml
from precede.reproduction.claims import Claim, Claims
from precede.reproduction.drift2006 import points as drift2006
from precede.reproduction.judging import Sample
from precede.reproduction.units import Finding, Paper, Unit, unit_of

_KINDS: Final[dict[str, str]] = {"greater": "at_least", "greatest": "greatest_at_least"}


class _Drift:
    def claims(self, folder: Path) -> Claims:
        path = folder / "claims.toml"
        tables, _ = read_toml(path)
        try:
            return Claims(tables["paper"], tuple(_claim(table) for table in tables["claim"]))
        except msgspec.ValidationError as error:
            raise BadInput(f"{path}: {error}") from None

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
        found = drift2006.measure_run(msgspec.convert(unit.given, drift2006.Point), unit.seed)
        return Finding(measures=found.measures, violations=found.violations, order="total")


def _claim(table: Mapping[str, Any]) -> Claim:
    """What that file calls tolerance is, but for `flat` and `linear`, how far off is still close."""
    kind = str(table["kind"])
    written = {**table, "kind": _KINDS.get(kind, kind)}
    tolerance = float(written.pop("tolerance", 0.0))
    if str(table["place"]) == "abstract":  # of a hundred nodes; the quick scale has fifty
        written["scale"] = "paper"
    if kind == "greater":
        written |= {"value": 1.0, "compare": "ratio", "strict": True, "slack": tolerance}
    elif kind == "greatest":
        written["slack"] = 2 / 3 * float(table["value"])
    elif kind in ("rises", "falls"):
        written["slack_relative"] = tolerance
    elif kind in ("flat", "linear"):
        written["tolerance"] = tolerance
    else:
        written["slack"] = tolerance
    return msgspec.convert(written, Claim)


PAPER: Final[Paper] = _Drift()
