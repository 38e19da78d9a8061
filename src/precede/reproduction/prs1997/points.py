"""The experiments of section 7 of Prakash, Raynal, Singhal (1997): how large causal barriers are.

`read_experiments` turns `papers/prs1997/experiments.toml` into points; a point and a seed are one `Run`;
`measure_run` simulates it, verifies it, and measures what the paper measures: the tuples that each message
carries over N squared, after the warm-up. Runs are added until the interval of the mean is narrow enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
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
from precede.measures.statistics import confidence_interval
from precede.reproduction.units import Finding, finding_about
from precede.witness.verify import verify

WORD_BITS: Final = 32
"""Bits per integer in the bit map form of the algorithm (W in section 7.1)."""


class Precision(Struct, frozen=True):
    """The length and number of runs. Enough: the interval's half width is at most `interval` times the mean."""

    warm_up_deliveries: int
    deliveries: int
    fewest_runs: int
    most_runs: int
    interval: float = 0.03


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


def read_experiments(path: Path, scale: str = "paper") -> tuple[dict[str, list[Point]], Precision]:
    """Read every experiment of the file as points, and the length and number of runs at this scale."""
    tables, _ = read_toml(path)
    measured = tables["measured"] | (tables["quick"] if scale == "quick" else {})
    experiments = {name: list(_points(name, table, scale)) for name, table in tables["experiment"].items()}
    return experiments, Precision(**measured)


def _points(name: str, table: Mapping[str, Any], scale: str) -> Iterator[Point]:
    grid = table.get("quick_grid" if scale == "quick" else "grid", table.get("grid", {}))
    for case in table.get("cases", [{}]):
        for values in product(*grid.values()):
            settings = {**table.get("set", {}), **case, **dict(zip(grid, values, strict=True))}
            try:
                yield msgspec.convert({"experiment": name, **settings}, Point)
            except msgspec.ValidationError as error:
                raise BadInput(f"experiment {name!r}: {error}") from error


def measure_run(point: Point, seed: int, precision: Precision) -> Finding:
    """Carry out one run, verify it, and measure what its messages carry."""
    sink = TableSink()
    carry_out(point.run(seed, precision), sink)
    log = sink.events()
    verdict = verify(log, "multicast")
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


def narrow_enough(shares: Sequence[float], precision: Precision) -> bool:
    """Is the interval of the mean narrow? Never before `fewest_runs`, always at `most_runs`."""
    if len(shares) < precision.fewest_runs:
        return False
    interval = confidence_interval(shares)
    if len(shares) >= precision.most_runs or interval is None:
        return len(shares) >= precision.most_runs
    return (interval[1] - interval[0]) / 2 <= precision.interval * sum(shares) / len(shares)
