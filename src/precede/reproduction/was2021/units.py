"""was2021 as units, and its claims in the common form: those about CK once for each form of CK.

The paper does not say whether its CK sends a message once to a cell (`ck`) or to each host (`ck_host`); both
are readings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from precede.core.errors import BadInput
from precede.experiments.run import Run
from precede.experiments.tables import read_toml
from precede.reproduction.claims import Claim, Claims
from precede.reproduction.judging import Sample
from precede.reproduction.units import Finding, Paper, Unit, unit_of
from precede.reproduction.was2021 import comparison as was2021
from precede.reproduction.was2021 import points as buffers

_RIVALS: Final = ("ck", "ck_host")
_CLOSE: Final = 2.0


class _Was:
    def claims(self, folder: Path) -> Claims:
        path = folder / "claims.toml"
        tables, _ = read_toml(path)
        try:
            claims = tuple(claim for table in tables["claim"] for claim in _claims(table))
        except msgspec.ValidationError as error:
            raise BadInput(f"{path}: {error}") from None
        return Claims(tables["paper"], claims, close=_CLOSE)

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
        found = was2021.measure_run(msgspec.convert(unit.given, was2021.Point), unit.seed)
        return Finding(measures=found.measures, violations=found.violations, order="causal")


def _varied(point: was2021.Point) -> dict[str, Any]:
    return {"protocol": point.protocol, "hosts": point.hosts, **point.options}


def _claims(table: Mapping[str, Any]) -> Iterator[Claim]:
    """`hosts` picks points, `ratio` compares WAS with each form of CK, `relative` of a trend is its slack."""
    written = dict(table)
    ratio, hosts = str(written.pop("ratio", "")), written.pop("hosts", None)
    where = {} if hosts is None else {"hosts": hosts}
    if written["kind"] in ("rises", "falls"):
        written |= {"along": "hosts", "slack_relative": written.pop("relative", 0.0)}
    if not ratio:
        yield msgspec.convert({**written, "where": {**where, "protocol": "was"}}, Claim)
        return
    for rival in _RIVALS:
        first, second = (rival, "was") if ratio == "ck/was" else ("was", rival)
        compared = {
            "where": {**where, "protocol": first},
            "against": {"protocol": second},
            "pair_by": ("hosts",),
            "compare": "ratio",
            "reading": rival,
        }
        yield msgspec.convert({**written, **compared}, Claim)


PAPER: Final[Paper] = _Was()
