"""Compares two event logs of one scenario, simulated and emulated: deliveries and ages."""

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Delivery: TypeAlias = tuple[str, str, int]
"""A delivery: the node, and the source and number of the message."""


def read_segments(folder: Path) -> pa.Table:
    """Read the event log that real nodes wrote, as one table of all its segments."""
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.rglob("events-*.parquet"))])


def compared(simulated: pa.Table, emulated: pa.Table) -> dict[str, Any]:
    """Compare two logs: broadcasts, deliveries, ages, and the first deliveries that only one log has."""
    in_simulation, in_emulation = _deliveries(simulated), _deliveries(emulated)
    only_simulated = sorted(set(in_simulation) - set(in_emulation))
    only_emulated = sorted(set(in_emulation) - set(in_simulation))
    ages = {"simulated": _ages(simulated, in_simulation), "emulated": _ages(emulated, in_emulation)}
    return {
        "broadcasts": {"simulated": _count(simulated, "broadcast"), "emulated": _count(emulated, "broadcast")},
        "deliveries": {"simulated": len(in_simulation), "emulated": len(in_emulation)},
        "age_s_median": {name: round(float(np.median(sample)), 3) for name, sample in ages.items()},
        "age_s_mean": {name: round(float(np.mean(sample)), 3) for name, sample in ages.items()},
        "delivered_in_both": len(set(in_simulation) & set(in_emulation)),
        "delivered_in_simulation_alone": len(only_simulated),
        "delivered_in_emulation_alone": len(only_emulated),
        "first_differences": [list(one) for one in (only_simulated + only_emulated)[:20]],
    }


def ages_of(events: pa.Table) -> list[float]:
    """Return the ages at delivery in seconds, own deliveries excluded; [0.0] if there are none."""
    return _ages(events, _deliveries(events))


def _rows(events: pa.Table, kind: str) -> list[tuple[str, str, int, int]]:
    rows = events.select(["node", "kind", "message_source", "message_number", "at_us"])
    rows = rows.filter(pa.compute.equal(rows["kind"].cast(pa.string()), kind))
    columns = [rows[name].to_pylist() for name in ("node", "message_source", "message_number", "at_us")]
    return list(zip(*columns, strict=True))


def _deliveries(events: pa.Table) -> dict[Delivery, int]:
    return {(node, source, number): at for node, source, number, at in _rows(events, "delivered")}


def _count(events: pa.Table, kind: str) -> int:
    return len(_rows(events, kind))


def _ages(events: pa.Table, deliveries: dict[Delivery, int]) -> list[float]:
    born = {(source, number): at for _, source, number, at in _rows(events, "broadcast")}
    return [
        (at - born[source, number]) / 1e6
        for (node, source, number), at in deliveries.items()
        if node != source and (source, number) in born
    ] or [0.0]
