"""The experiments of section 7 of Prakash, Raynal, Singhal (1997): how large causal barriers are.

`read_experiments` turns `papers/prs1997/experiments.toml` into points; a point and a seed are one `Run`;
`measure_run` simulates it, verifies it, and measures what the paper measures: the tuples that each message
carries over N squared, after the warm-up.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct

from precede.core.errors import BadInput
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.experiments.tables import read_toml
from precede.reproduction.units import ENGINE, Finding, Unit, expand, finding_about, plain, seeds_of
from precede.witness.verify import verify

_LENGTH: Final = ("warm_up_deliveries", "deliveries")
WORD_BITS: Final = 32
"""Bits per integer in the bit map form of the algorithm (W in section 7.1)."""


class Precision(Struct, frozen=True):
    """The length of a run and the number of runs, which does not depend on what the runs show."""

    warm_up_deliveries: int
    deliveries: int
    runs: int


class Point(Struct, frozen=True, forbid_unknown_fields=True):
    """One point of one curve. Times are in the paper's time units, which are seconds in the run."""

    experiment: str
    nodes: int
    propagation: float
    gap: float
    to: tuple[int, int] | None = None
    groups: int = 1
    selectivity: float = 0.0
    rates: tuple[float, ...] = (1.0,)
    protocol: str = "prs"
    options: Mapping[str, Any] = {}

    def run(self, seed: int, precision: Precision) -> Run:
        """Describe the simulation: the paper's settings, long enough for the required deliveries."""
        receivers = sum(self.to) / 2 if self.to else self.nodes - 1
        deliveries = precision.warm_up_deliveries + precision.deliveries
        lasts = 1.15 * deliveries * self.gap / (self.nodes * receivers) + 10 * self.propagation + 5 * self.gap
        workload: dict[str, Any] = {"poisson": f"{self.gap}s", "until": f"{lasts:.3f}s", "size": 0}
        if self.to:
            workload |= {"to": list(self.to), "groups": self.groups, "selectivity": self.selectivity}
        return Run(
            world={
                "kind": "point_to_point",
                "nodes": self.nodes,
                "delay": f"exponential({self.propagation})",
            },
            workload=workload | {"rates": list(self.rates)},
            protocol=self.protocol,
            options={"rto": "0s", **self.options},
            seed=seed,
            gauges="none",
            log="messages",
        )


def read_experiments(
    tables: Mapping[str, Any], scale: str = "paper"
) -> tuple[dict[str, list[Point]], Precision]:
    """Return every experiment of the file as points, and the length and number of runs at this scale."""
    measured = tables["measured"] | (tables["quick"] if scale == "quick" else {})
    experiments = {
        name: list(expand(name, table, scale == "quick", lambda given: msgspec.convert(given, Point)))
        for name, table in tables["experiment"].items()
    }
    return experiments, Precision(**measured)


def units(folder: Path, scale: str, more: bool = False) -> list[Unit]:
    tables, _ = read_toml(folder / "experiments.toml")
    experiments, precision = read_experiments(tables, scale)
    return [
        Unit(
            paper="prs1997",
            experiment=point.experiment,
            varied=plain(point),
            seed=seed,
            replicate=str(seed),
            given={"point": plain(point, ())}
            | {name: tables["experiment"][own].get(name, getattr(precision, name)) for name in _LENGTH},
        )
        for own, points in experiments.items()
        for point in points
        for seed in seeds_of(tables, precision.runs, more)
    ]


def runs(unit: Unit) -> list[Run]:
    point, precision = _read(unit)
    return [point.run(unit.seed, precision)]


def measure(unit: Unit) -> Finding:
    point, precision = _read(unit)
    return measure_run(point, unit.seed, precision)


def _read(unit: Unit) -> tuple[Point, Precision]:
    length = {name: int(unit.given[name]) for name in _LENGTH}
    return (
        msgspec.convert(unit.given["point"], Point),
        Precision(**length, runs=1),
    )


def measure_run(point: Point, seed: int, precision: Precision) -> Finding:
    """Carry out one run, verify it, and measure what its messages carry."""
    sink = TableSink()
    carry_out(point.run(seed, precision), sink)
    log = sink.events()
    verdict = verify(log, "multicast", engine=ENGINE)
    entries, sizes = _carried_by_message(log, precision)
    share = float(entries.mean()) / point.nodes**2
    measures = {
        "messages": float(len(entries)),
        "tuple_share": share,
        "saving": 1 - share,
        "bitmap_share": share + 1 / WORD_BITS,
        "entries": float(entries.mean()),
        "control_bytes": float(sizes.mean()),
    }
    return finding_about(measures, verdict)


def _carried_by_message(
    log: pa.Table, precision: Precision
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return entries and control bytes of each message sent while the measured deliveries happened.

    A node's packets at one instant are the copies of one message; they count once, with their mean.
    """
    at = log["at_us"].to_numpy()
    kind = np.asarray(log["kind"].cast(pa.string()).to_numpy(zero_copy_only=False))
    delivered = np.sort(at[kind == "delivered"])
    last = precision.warm_up_deliveries + precision.deliveries
    if delivered.size < last:
        raise BadInput(f"{delivered.size} deliveries, expected {last}: the run is too short")
    begin, end = delivered[precision.warm_up_deliveries - 1], delivered[last - 1]
    sent = (kind == "sent") & (at > begin) & (at <= end)
    node = np.asarray(log["node"].combine_chunks().indices.to_numpy())[sent]
    _, message = np.unique(np.stack([node.astype(np.int64), at[sent]]), axis=1, return_inverse=True)
    message = message.reshape(-1)
    copies = np.bincount(message)
    entries = np.bincount(message, log["control_entries"].to_numpy()[sent]) / copies
    return entries, np.bincount(message, log["control_bytes"].to_numpy()[sent]) / copies
