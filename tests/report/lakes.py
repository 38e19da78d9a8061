"""Small lakes for the tests of the site: real runs without Spark, and generated logs of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from precede.experiments.grid import read_grid
from precede.lake.layout import Lake
from precede.lake.schemas import COMPARISONS, RUNS
from precede.pipeline.mobility.contacts import compute_contacts
from precede.pipeline.mobility.generated import store_mobility
from precede.pipeline.sweeps.sweep import sweep
from precede.traces.city_bus import city_bus

OFFICE = """
[sweep]
name = "office"
scenario = "small-office"
protocol = ["vector_clock", "unordered"]
seeds = 2
[set]
"workload.until" = "8s"
"""
OFFICES = """
[sweep]
name = "offices"
scenario = ["small-office", "crowded-office.toml"]
protocol = ["causal_barrier", "unordered"]
seeds = 2
[set]
"workload.until" = "4s"
[grid]
"world.delay" = ["exponential(0.02)", "exponential(0.2)"]
"""
CROWDED_OFFICE = """
[world]
kind = "point_to_point"
nodes = 9
[workload]
every = "constant(1)"
until = "4s"
[run]
protocol = "unordered"
"""
BUSES = """
[sweep]
name = "buses"
scenario = "day.toml"
protocol = ["fifo", "delta_causal"]
seeds = 2
[grid]
"workload.lifetime" = ["5min", "20min"]
"""
DAY = """
[world]
kind = "contacts"
trace = "day"
range = 200
overhead = "250ms"
[workload]
poisson = "1h"
[run]
protocol = "delta_causal"
options = { order = "random" }
log = "messages"
"""
CELLS = """
[sweep]
name = "cells"
scenario = "cells.toml"
protocol = "was"
seeds = 1
"""
CELL_WORLD = """
[world]
kind = "cellular"
stations = 3
hosts = 6
radio = "lossy"
movement = "moves"
moves = [
  { host = "h0", at = "0s", cell = "s0" }, { host = "h1", at = "0s", cell = "s0" },
  { host = "h2", at = "0s", cell = "s1" }, { host = "h3", at = "0s", cell = "s1" },
  { host = "h4", at = "0s", cell = "s2" }, { host = "h5", at = "0s", cell = "s2" },
  { host = "h0", at = "2s", cell = "s1" }, { host = "h0", at = "4s", cell = "s2" },
]
[workload]
poisson = "2s"
until = "6s"
[run]
protocol = "was"
"""


def make_lake(folder: Path) -> Lake:
    """A lake with runs that violate an order, buses, hosts that change cells, and some claims."""
    lake = Lake(folder / "lake")
    store_mobility(lake, "day", city_bus(1, buses=14))
    compute_contacts(lake, "day", 200.0)
    for name, text in {"day": DAY, "cells": CELL_WORLD, "crowded-office": CROWDED_OFFICE}.items():
        (folder / f"{name}.toml").write_text(text)
    for name, text in {"office": OFFICE, "offices": OFFICES, "buses": BUSES, "cells-sweep": CELLS}.items():
        (folder / f"{name}-spec.toml").write_text(text)
        sweep_here(lake, folder / f"{name}-spec.toml")
    write_table(lake, COMPARISONS.name, "prs1997-quick", COMPARISONS.arrow(), comparisons())
    return lake


def sweep_here(lake: Lake, spec: Path) -> None:
    """Carry out a sweep in this process."""
    summary = sweep(lake, read_grid(spec, lake.root), None)
    assert not summary.failed, summary.first_failure


def comparisons() -> list[dict[str, Any]]:
    """Claims of one exhibit, one of each status."""
    rows = []
    for number, status in enumerate(("reproduced", "close", "not reproduced", "withheld")):
        rows.append(
            {
                "sweep": "prs1997-quick",
                "paper": "prs1997",
                "claim": f"figure4-claim-{number}",
                "place": "section 7.1, Figure 4",
                "says": f"the share is {number} & <more>",
                "measure": "tuple_share",
                "kind": "between",
                "published_low": 0.2 if status != "withheld" else None,
                "published_high": 0.4 if status != "withheld" else None,
                "ours_low": 0.3 + number / 10,
                "ours_high": 0.3 + number / 10,
                "interval_low": 0.25 + number / 10,
                "interval_high": 0.35 + number / 10,
                "points": 1,
                "status": status,
            }
        )
    return rows


def write_table(lake: Lake, table: str, unit: str, schema: pa.Schema, rows: list[dict[str, Any]]) -> None:
    path = lake.path(table, unit)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def made_up_log(lake: Lake, run_id: str, messages: int, nodes: int = 50) -> int:
    """Write a run with one broadcast and `nodes` deliveries for each message; returns its number of rows."""
    random = np.random.default_rng(messages)
    source = random.integers(0, nodes, messages)
    born = np.sort(random.integers(0, 3_600_000_000, messages))
    order = np.argsort(source * messages + np.arange(messages), kind="stable")
    number = np.empty(messages, dtype=np.int64)
    counts = np.bincount(source, minlength=nodes)
    number[order] = np.concatenate([np.arange(1, count + 1) for count in counts])
    who = np.tile(np.arange(nodes), messages)
    which = np.repeat(np.arange(messages), nodes)
    late = random.integers(1, 120_000_000, messages * nodes) * (who != source[which])
    node = np.concatenate([source, who])
    message = np.concatenate([np.arange(messages), which])
    at = np.concatenate([born, born[which] + late])
    kind = np.concatenate([np.zeros(messages, dtype=np.int64), np.ones(messages * nodes, dtype=np.int64)])
    by = np.lexsort((kind, at))
    node, message, at, kind = node[by], message[by], at[by], kind[by]
    step = np.empty(len(node), dtype=np.int64)
    for one in range(nodes):
        step[node == one] = np.arange(int((node == one).sum()))
    names = pa.array([f"n{k}" for k in range(nodes)])
    table = pa.table(
        {
            "node": names.take(pa.array(node)),
            "incarnation": np.zeros(len(node), dtype=np.int32),
            "step": step,
            "at_us": at,
            "kind": pa.array(["broadcast", "delivered"]).take(pa.array(kind)),
            "message_source": names.take(pa.array(source[message])),
            "message_incarnation": np.zeros(len(node), dtype=np.int32),
            "message_number": number[message],
            "peer": pa.nulls(len(node), pa.string()),
            "medium": pa.nulls(len(node), pa.string()),
        }
    )
    path = lake.path("events", run_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    empty = dict.fromkeys(("order", "error", "traceback", "events", "cpu_s"))
    row = {
        **{"sweep": run_id, "run_id": run_id, "scenario": "made-up", "protocol": "unordered", "options": "{}"},
        **{"seed": 1, "status": "finished", "nodes": nodes, "rows": len(node), "end_us": int(at[-1])},
        **{"attempt": 0, "worker": "", "finished_at": "", "version": "", "description": '{"world": {}}'},
        **empty,
    }
    write_table(lake, RUNS.name, run_id, RUNS.arrow(), [row])
    return len(node)
