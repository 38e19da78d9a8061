"""Two event logs of one scenario, simulated and emulated: what agrees (who got what), what differs (when)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Delivery: TypeAlias = tuple[str, str, int]
"""A node, a source, a number."""


def read_segments(folder: Path) -> pa.Table:
    """The event log that nodes wrote in segments."""
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.rglob("events-*.parquet"))])


def compared(simulated: pa.Table, emulated: pa.Table) -> dict[str, Any]:
    """Counts, ages and the sets of deliveries."""
    here, there = _deliveries(simulated), _deliveries(emulated)
    only_here = sorted(set(here) - set(there))
    only_there = sorted(set(there) - set(here))
    ages = {"simulated": _ages(simulated, here), "emulated": _ages(emulated, there)}
    return {
        "broadcasts": {"simulated": _count(simulated, "broadcast"), "emulated": _count(emulated, "broadcast")},
        "deliveries": {"simulated": len(here), "emulated": len(there)},
        "age_s_median": {name: round(float(np.median(found)), 3) for name, found in ages.items()},
        "age_s_mean": {name: round(float(np.mean(found)), 3) for name, found in ages.items()},
        "delivered_in_both": len(set(here) & set(there)),
        "delivered_in_simulation_alone": len(only_here),
        "delivered_in_emulation_alone": len(only_there),
        "first_differences": [list(one) for one in (only_here + only_there)[:20]],
    }


def ages_of(events: pa.Table) -> list[float]:
    """How old messages were where others than their sources delivered them, in seconds of the scenario."""
    return _ages(events, _deliveries(events))


def _rows(events: pa.Table, kind: str) -> list[tuple[str, str, int, int]]:
    wanted = events.select(["node", "kind", "message_source", "message_number", "at_us"])
    wanted = wanted.filter(pa.compute.equal(wanted["kind"].cast(pa.string()), kind))
    columns = [wanted[name].to_pylist() for name in ("node", "message_source", "message_number", "at_us")]
    return list(zip(*columns, strict=True))


def _deliveries(events: pa.Table) -> dict[Delivery, int]:
    return {(node, source, number): at for node, source, number, at in _rows(events, "delivered")}


def _count(events: pa.Table, kind: str) -> int:
    return len(_rows(events, kind))


def _ages(events: pa.Table, deliveries: dict[Delivery, int]) -> list[float]:
    """From broadcast to delivery at others, in seconds of the scenario."""
    born = {(source, number): at for _, source, number, at in _rows(events, "broadcast")}
    return [
        (at - born[source, number]) / 1e6
        for (node, source, number), at in deliveries.items()
        if node != source and (source, number) in born
    ] or [0.0]
