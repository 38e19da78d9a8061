"""Verdicts over large logs on Spark: `python -m benchmarks.verify_spark [--json] [--rows N] [--orders N]`.

`--orders 5000` has fifty million rows. `--folder` keeps the logs.

One log of many independent orders, the rows of many orders interleaved in every file, so that Spark must bring
each order together; a known few of the orders are wrong, and exactly those must be found. It is verified by one
process, by Spark from its files, and by Spark from a DataFrame. As many rows in files of one order each are
verified by one process and by Spark. CPU seconds and memory are of all processes, Java included, after start
and warm-up; `ratio_` is over one process.
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

import precede.spark
from benchmarks.family import Watched
from precede.pipeline.judging.files import verify_path
from precede.pipeline.sessions.session import open_session
from precede.witness.verdict import Part
from precede.witness.verify import verify

NODES = 10
ORDERS_A_FILE = 200
WRONG_EVERY = 97
BY = "topic,partition"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--orders", type=int, default=500)
    parser.add_argument("--rows", type=int, default=10_010, help="rows of one order")
    parser.add_argument("--folder", type=Path, help="where the logs are kept, or stand already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = run(options.orders, options.rows, options.folder or Path(folder))
    print(json.dumps(results, indent=2) if options.json else "\n".join(f"{k}: {v}" for k, v in results.items()))


def run(orders: int, rows: int, folder: Path) -> dict[str, Any]:
    files = orders // 10
    many, alone = folder / f"{orders}-orders-of-{rows}", folder / f"{files}-files-of-{10 * rows}"
    small, small_alone = folder / "small", folder / "small-files"
    if not many.is_dir():
        for begin in range(0, orders, ORDERS_A_FILE):
            write_orders(many, begin, min(begin + ORDERS_A_FILE, orders), rows)
    if not alone.is_dir():
        for order in range(files):
            write_orders(alone, order, order + 1, 10 * rows)
    write_orders(small, 0, 4, 40_000)
    for order in range(4):
        write_orders(small_alone, order, order + 1, 40_000)
    results: dict[str, Any] = {"orders": orders}
    for name, log, count in (("one_process", many, orders), ("one_process_files", alone, files)):
        verify(str(small), "causal", by=BY)
        with Watched() as watched:
            verdict = verify(str(log), "causal", by=BY)
        check([(order_of(part), part.verdict) for part in verdict.parts], count)
        results |= measured(name, watched, verdict.rows)
    with open_session("local[2,4]", light=True) as session:
        logs = (("paths", many, small, orders), ("files", alone, small_alone, files))
        for name, log, warm, count in logs:
            verify_path(session, str(warm), "causal", by=BY)
            with Watched() as watched:
                verdict = verify_path(session, str(log), "causal", by=BY)
            check([(order_of(part), part.verdict) for part in verdict.parts], count)
            results |= measured(name, watched, verdict.rows)
    with open_session("local[2,4]") as session:
        verify_frame(session, small)
        with Watched() as watched:
            answers = verify_frame(session, many)
        check(answers, orders)
        results |= measured("frame", watched, results["paths_rows"])
    for name, base in (("paths", "one_process"), ("frame", "one_process"), ("files", "one_process_files")):
        results[f"ratio_cpu_{name}"] = round(results[f"{name}_cpu_s"] / results[f"{base}_cpu_s"], 2)
    return results


def verify_frame(session: Any, log: Path) -> list[tuple[int, str]]:
    """Verifies a log as the DataFrame of a caller. Returns the number and the verdict of each order."""
    answers = precede.spark.verify(session.read.parquet(str(log)), "causal", by=BY.split(",")).toArrow()
    columns = (answers[name].to_pylist() for name in ("topic", "partition", "verdict"))
    return [(int(topic) + 100 * int(part), verdict) for topic, part, verdict in zip(*columns, strict=True)]


def check(answers: list[tuple[int, str]], orders: int) -> None:
    """Asserts that exactly the wrong orders were found."""
    wrong = {order for order in range(orders) if order % WRONG_EVERY == WRONG_EVERY - 1}
    assert len(answers) == orders, len(answers)
    assert {order for order, verdict in answers if verdict == "violated"} == wrong
    assert sum(verdict == "holds" for _, verdict in answers) == orders - len(wrong)


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
