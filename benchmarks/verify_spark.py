"""Verdicts over large logs on Spark: `python -m benchmarks.verify_spark [--json] [--rows N] [--orders N]`.

The default is a tenth of the largest: `--orders 10000` has a hundred million rows. `--folder` keeps the logs.

One log of many independent orders, the rows of many orders interleaved in every file, so that Spark must bring
each order together; a known few of the orders are wrong, and exactly those must be found. Beside it one single
order of many nodes. CPU seconds and memory are of all processes, Java included.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.family import Watched
from benchmarks.verify import write_log
from precede.pipeline.judging.files import verify_path
from precede.pipeline.sessions.session import open_session
from precede.witness.verdict import Part

NODES = 10
ORDERS_A_FILE = 200
WRONG_EVERY = 997


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--orders", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=10_010, help="rows of one order")
    parser.add_argument("--single", type=int, default=10_000_000, help="delivered rows of the single order")
    parser.add_argument("--folder", type=Path, help="where the logs are kept, or stand already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = run(options.orders, options.rows, options.single, options.folder or Path(folder))
    print(json.dumps(results, indent=2) if options.json else "\n".join(f"{k}: {v}" for k, v in results.items()))


def run(orders: int, rows: int, single: int, folder: Path) -> dict[str, Any]:
    results: dict[str, Any] = {}
    many, small = folder / f"{orders}-orders-of-{rows}", folder / "small"
    if not many.is_dir():
        for begin in range(0, orders, ORDERS_A_FILE):
            write_orders(many, begin, min(begin + ORDERS_A_FILE, orders), rows)
    write_orders(small, 0, 4, 2_000)
    log = folder / f"single-of-{single}.parquet"
    if not log.is_file():
        write_log(log, 2000, single)
    wrong = {order for order in range(orders) if order % WRONG_EVERY == WRONG_EVERY - 1}
    with open_session("local[2,4]") as session:
        verify_path(session, str(small), "causal", by="topic,partition")
        with Watched() as watched:
            verdict = verify_path(session, str(many), "causal", by="topic,partition")
        assert len(verdict.parts) == orders, len(verdict.parts)
        assert {order_of(part) for part in verdict.parts if part.verdict == "violated"} == wrong
        assert sum(part.verdict == "holds" for part in verdict.parts) == orders - len(wrong)
        results |= measured("orders", watched, verdict.rows) | {"orders": orders, "orders_wrong": len(wrong)}
        with Watched() as watched:
            verdict = verify_path(session, str(log), "causal")
        assert verdict.verdict == "holds", verdict
        results |= measured("single", watched, verdict.rows) | {"single_nodes": 2000}
    return results


def order_of(part: Part) -> int:
    """The number of an order, by its topic and partition."""
    named = dict(part.group)
    return int(named["topic"]) + 100 * int(named["partition"])


def measured(name: str, watched: Watched, rows: int) -> dict[str, Any]:
    return {
        f"{name}_rows": rows,
        f"{name}_cpu_s": round(watched.cpu_s, 1),
        f"{name}_wall_s": round(watched.wall_s, 1),
        f"{name}_rows_per_cpu_s": round(rows / watched.cpu_s),
        f"{name}_rows_per_wall_s": round(rows / watched.wall_s),
        f"{name}_peak_gib": round(watched.peak_bytes / 2**30, 2),
    }


def write_orders(folder: Path, begin: int, end: int, rows: int) -> None:
    """One file of orders `begin` up to `end`, a row of each in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    right, wrong = template(rows, swap=False), template(rows, swap=True)
    numbers = np.arange(begin, end)
    bad = numbers % WRONG_EVERY == WRONG_EVERY - 1
    columns: dict[str, Any] = {
        "topic": pa.array(np.tile(numbers % 100, len(right["step"]))),
        "partition": pa.array(np.tile(numbers // 100, len(right["step"]))),
    }
    for name, values in right.items():
        table = np.repeat(values, len(numbers)).reshape(len(values), len(numbers))
        table[:, bad] = wrong[name][:, None]
        columns[name] = table.ravel()
    for name in ("node", "message_source"):
        names = pa.array([f"n{node}" for node in range(NODES)])
        columns[name] = pa.DictionaryArray.from_arrays(pa.array(columns[name], pa.int32()), names)
    kinds = pa.array(["broadcast", "delivered"])
    columns["kind"] = pa.DictionaryArray.from_arrays(pa.array(columns["kind"], pa.int32()), kinds)
    pq.write_table(pa.table(columns), folder / f"{begin}.parquet", compression="zstd", row_group_size=1 << 18)


def template(rows: int, swap: bool) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    """One order: nodes broadcast in turn and all deliver at once; with `swap` two deliveries are exchanged."""
    messages = rows // (NODES + 1)
    message = np.repeat(np.arange(messages), NODES + 1)
    place = np.tile(np.arange(NODES + 1), messages)
    source = message % NODES
    node = np.where(place == 0, source, place - 1)
    columns = {
        "node": node,
        "step": np.zeros(len(node), np.int64),
        "kind": (place > 0).astype(np.int64),
        "message_source": source,
        "message_number": message // NODES + 1,
    }
    if swap:
        mine = np.flatnonzero((node == NODES - 1) & (place > 0) & (source == 0))
        one, other = mine[3], mine[7]
        for name in ("message_source", "message_number"):
            columns[name][[one, other]] = columns[name][[other, one]]
    for number in range(NODES):
        here = node == number
        columns["step"][here] = np.arange(1, here.sum() + 1)
    return columns


if __name__ == "__main__":
    main()
