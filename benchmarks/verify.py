"""The speed at which the witness reads and checks a log: `python -m benchmarks.verify [--json] [--rows N]`.

Logs are written with the event log's own schema: rounds in which some nodes broadcast and everybody delivers in
an order of its own, rows of all nodes interleaved as a simulator writes them. Each measurement is a process of
its own that checks a small log first, so kernels are compiled and process start is not counted. A file is read
from the page cache, on one thread. Seconds are CPU seconds of that process, minimum of a few runs, because they
mean the same on a busy machine; wall clock seconds are reported too. Memory is the process's peak.

At the end the whole command `precede verify` is timed, with its start: the large log, and 500,000 rows of CSV.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from precede.eventlog.schema import KINDS, event_schema

BROADCASTERS = 20
REPEATS = 3
CSV_ROWS = 500_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--rows", type=int, default=10_000_000, help="delivered rows of the large logs")
    parser.add_argument("--order", default="causal")
    parser.add_argument("--check", nargs=2, metavar=("SMALL", "LOG"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.check:
        print(json.dumps(check(*options.check, options.order)))
        return
    with tempfile.TemporaryDirectory() as folder:
        results = run(Path(folder), options.rows, options.order)
    print(json.dumps(results, indent=2) if options.json else "\n".join(f"{k}: {v}" for k, v in results.items()))


def run(folder: Path, rows: int, order: str) -> dict[str, Any]:
    """Three logs, each checked in a process of its own."""
    small = write_log(folder / "small.parquet", 20, 20_000)
    results: dict[str, Any] = {"order": order}
    logs = {"tenth": (100, rows // 10), "nodes_100": (100, rows), "nodes_2000": (2000, rows)}
    for name, (nodes, count) in logs.items():
        log = write_log(folder / f"{name}.parquet", nodes, count)
        measured = measure(small, log, order)
        assert measured["verdict"] == "holds", measured
        results |= {f"{key}_{name}": value for key, value in measured.items() if key != "verdict"}
        if name == "nodes_100":
            results["seconds_command_parquet"] = command_s(log, order)
        log.unlink()
    results["seconds_command_csv"] = command_s(write_csv(folder / "log.csv", 100, CSV_ROWS), order)
    growth = results["seconds_nodes_100"] / results["seconds_tenth"]
    more = results["rows_nodes_100"] / results["rows_tenth"]
    results["ratio_growth_tenth_to_whole"] = round(growth / more, 3)
    for name in ("nodes_100", "nodes_2000"):
        bare = results[f"seconds_bare_read_{name}"]
        results[f"ratio_time_to_bare_read_{name}"] = round(results[f"seconds_{name}"] / bare, 2)
    return results


def measure(small: Path, log: Path, order: str) -> dict[str, Any]:
    """The best of a few processes, each of which verifies one log, as a user would."""
    command = [sys.executable, "-m", "benchmarks.verify", "--order", order, "--check", str(small), str(log)]
    found = []
    for _ in range(REPEATS):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        found.append(json.loads(done.stdout))
    best: dict[str, Any] = min(found, key=lambda run: run["seconds"])
    best["rows_per_second"] = round(best["deliveries"] / best["seconds"])
    for name in ("seconds_wall", "seconds_bare_read"):
        best[name] = min(run[name] for run in found)
    return best


def command_s(log: Path, order: str) -> float:
    """The CPU seconds of the whole command, the least of a few runs."""
    command = [sys.executable, "-m", "precede", "verify", str(log), "--order", order]
    found = []
    for _ in range(REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return round(min(found), 3)


def check(small: str, log: str, order: str) -> dict[str, Any]:
    """Verifies the log, in the measured process."""
    from precede.witness.verify import verify

    verify(small, order, engine="numba")
    begin, began = time.process_time(), time.perf_counter()
    verdict = verify(log, order, engine="numba")
    seconds, wall = time.process_time() - begin, time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    begin = time.process_time()
    bare_read(log)
    return {
        "verdict": verdict.verdict,
        "rows": verdict.rows,
        "deliveries": verdict.deliveries_checked,
        "seconds": round(seconds, 3),
        "seconds_wall": round(wall, 3),
        "seconds_bare_read": round(time.process_time() - begin, 3),
        "peak_bytes": peak,
    }


def bare_read(log: str) -> None:
    """Reads the same columns with pyarrow on one thread, and does nothing with them."""
    columns = ["run_id", "node", "incarnation", "step", "kind", "message_source", "message_incarnation"]
    for _ in pq.ParquetFile(log).iter_batches(
        1 << 18, columns=[*columns, "message_number", "destinations"], use_threads=False
    ):
        pass


def write_log(path: Path, nodes: int, deliveries: int, seed: int = 1) -> Path:
    """A log in causal order with about this many deliveries."""
    random = np.random.Generator(np.random.PCG64(seed))
    schema = event_schema()
    broadcasters = min(BROADCASTERS, nodes)
    sent, steps = np.zeros(nodes, np.int64), np.ones(nodes, np.int64)
    names = pa.array([f"n{i}" for i in range(nodes)])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        pending: list[pa.RecordBatch] = []
        for turn in range(max(1, deliveries // (nodes * broadcasters))):
            who = random.permutation(nodes)[:broadcasters]
            sent[who] += 1
            pending.append(_broadcasts(schema, names, who, steps[who], sent[who], turn))
            steps[who] += 1
            pending.append(_deliveries(schema, names, who, steps, sent, turn, random))
            steps += broadcasters
            if sum(batch.num_rows for batch in pending) > 1_000_000:
                writer.write_table(pa.Table.from_batches(pending))
                pending = []
        if pending:
            writer.write_table(pa.Table.from_batches(pending))
    return path


def write_csv(path: Path, nodes: int, deliveries: int) -> Path:
    """The same log as CSV, without the column of lists."""
    table = pq.read_table(write_log(path.with_suffix(".parquet"), nodes, deliveries)).drop_columns(
        ["destinations"]
    )
    words = [
        pa.field(field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type)
        for field in table.schema
    ]
    pacsv.write_csv(table.cast(pa.schema(words)), path, pacsv.WriteOptions(quoting_style="none"))
    return path


def _broadcasts(schema: Any, names: Any, who: Any, steps: Any, sent: Any, turn: int) -> pa.RecordBatch:
    return _batch(schema, names, who, steps, "broadcast", who, sent, turn)


def _deliveries(
    schema: Any, names: Any, who: Any, steps: Any, sent: Any, turn: int, random: np.random.Generator
) -> pa.RecordBatch:
    """All nodes deliver the messages of one round, each in its own order."""
    nodes = len(steps)
    orders = random.permuted(np.tile(who, (nodes, 1)), axis=1)
    source = orders.T.ravel()
    node = np.tile(np.arange(nodes), len(who))
    step = (steps[None, :] + np.arange(len(who))[:, None]).ravel()
    return _batch(schema, names, node, step, "delivered", source, sent[source], turn)


def _batch(
    schema: Any, names: Any, node: Any, step: Any, kind: str, source: Any, number: Any, turn: int
) -> pa.RecordBatch:
    count = len(node)
    at = np.full(count, turn * 1000, np.int64)
    given = {
        "run_id": _name(pa.array(["bench"]), np.zeros(count)),
        "node": _name(names, node),
        "incarnation": pa.array(np.zeros(count, np.int32)),
        "step": pa.array(step),
        "at_us": pa.array(at),
        "clock_us": pa.array(at),
        "kind": _name(pa.array(KINDS), np.full(count, KINDS.index(kind))),
        "message_source": _name(names, source),
        "message_incarnation": pa.array(np.zeros(count, np.int32)),
        "message_number": pa.array(number),
    }
    columns = [given.get(field.name, pa.nulls(count, field.type)) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _name(names: Any, codes: Any) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(np.asarray(codes, np.int32)), names)


if __name__ == "__main__":
    main()
