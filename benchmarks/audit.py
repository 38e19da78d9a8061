"""The speed of an audit: `python -m benchmarks.audit [--json] [--copies N] [--spark]`.

A generated deployment: nodes create messages and receive others', each by its own clock in whole seconds, so
that many instants are equal. The first copies are counted by the kernel in this process; with `--spark` also
from a DataFrame of events, in groups, on the machine's own session. Seconds are CPU seconds of this process (of
the kernel) and wall-clock seconds of the Spark job, which runs in other processes. Both must count the same.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from precede.audit.bounds import bound_all
from precede.audit.copies import encode_table

GROUPS, SOURCES = 20, 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--copies", type=int, default=1_000_000, help="first copies in the log")
    parser.add_argument("--spark", action="store_true", help="also count from a DataFrame")
    options = parser.parse_args()
    results = run(options.copies, options.spark)
    print(json.dumps(results, indent=2) if options.json else "\n".join(f"{k}: {v}" for k, v in results.items()))


def run(count: int, spark: bool) -> dict[str, Any]:
    """Generate a log, count it in one order and by groups, and compare."""
    copies = generate(count)
    began = time.process_time()
    encoded = encode_table(copies)
    whole = bound_all(encoded, [0])
    seconds = time.process_time() - began
    results: dict[str, Any] = {
        "copies": len(encoded.node),
        "messages": len(encoded.labels),
        "nodes": len(encoded.names),
        "cpu_seconds_one_order": round(seconds, 2),
        "copies_per_cpu_second": round(len(encoded.node) / seconds),
        **{f"{bounds.order}_at_least": bounds.at_least for bounds in whole},
        **{f"{bounds.order}_at_most": bounds.at_most for bounds in whole},
    }
    began = time.process_time()
    groups = sorted(set(copies["room"].to_pylist()))
    alone = {
        (group, bounds.order): (bounds.at_least, bounds.at_most)
        for group in groups
        for bounds in bound_all(encode_table(copies.filter(pa.compute.equal(copies["room"], group))), [0])
    }
    results["cpu_seconds_in_groups"] = round(time.process_time() - began, 2)
    if spark:
        results |= _on_spark(copies, alone)
    return results


def generate(count: int, seed: int = 1) -> pa.Table:
    """Return first copies: 100 sources, messages to rooms, receivers by chance, delays of minutes."""
    random = np.random.default_rng(seed)
    receivers = 200
    messages = max(SOURCES, count // receivers)
    nodes = 2 * SOURCES + receivers
    source = random.integers(0, SOURCES, messages)
    created = np.sort(random.integers(0, 86_400 * 3, messages))
    room = source % GROUPS
    chosen = np.stack([random.permutation(nodes)[: receivers + 1] for _ in range(messages)])
    message = np.repeat(np.arange(messages), receivers + 1)
    node = chosen.ravel()
    at = created[message] + random.exponential(1200, len(message)).astype(np.int64) + 1
    kept = node != source[message]
    message, node, at = message[kept][:count], node[kept][:count], at[kept][:count]
    names = np.array([f"n{index}" for index in range(nodes)], object)
    instants = pa.array(at * 1_000_000)
    return pa.table(
        {
            "room": pa.array([f"room {index}" for index in room[message]]),
            "node": pa.array(names[node]),
            "message": pa.array([f"m{index}" for index in message]),
            "source": pa.array(names[source[message]]),
            "created_us": pa.array(created[message] * 1_000_000),
            "earliest_us": instants,
            "latest_us": instants,
        }
    )


def _on_spark(copies: pa.Table, alone: dict[tuple[str, str], tuple[int, int]]) -> dict[str, Any]:
    import precede.spark
    from precede.pipeline.sessions.session import open_session

    received = copies.select(["room", "node", "message", "earliest_us"]).rename_columns(
        ["room", "node", "message", "at_us"]
    )
    created = copies.group_by(["room", "message", "source"]).aggregate([("created_us", "min")])
    created = created.rename_columns(["room", "message", "node", "at_us"]).select(
        ["room", "node", "message", "at_us"]
    )
    with TemporaryDirectory() as folder:
        for kind, table in (("received", received), ("created", created)):
            column = pa.array([kind] * table.num_rows)
            pq.write_table(table.append_column("kind", column), Path(folder) / f"{kind}.parquet")
        with open_session("local[2]") as session:
            began = time.perf_counter()
            rows = precede.spark.audit(session.read.parquet(folder), by="room").collect()
            seconds = time.perf_counter() - began
    counted = {(row["room"], row["order"]): (row["at_least"], row["at_most"]) for row in rows}
    assert counted == alone, "Spark and one process count differently"
    return {"spark_seconds": round(seconds, 1), "spark_rows": received.num_rows + created.num_rows}


if __name__ == "__main__":
    main()
