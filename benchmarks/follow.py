"""Whether `precede verify --follow` keeps up: `python -m benchmarks.follow [--json] [--rate N] [--seconds S]`.

Each node writes a segment every second; `--rate` is the number of events per second of all nodes together. Some
deliveries of one node are swapped, and exactly these must be reported. The lag of a row is the time from
writing its segment to reporting its batch; the first minute, in which Java compiles, is left out of the median.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.family import Watched
from precede.eventlog.schema import event_schema
from precede.eventlog.segments import SegmentSink
from precede.pipeline.following.follow import follow
from precede.pipeline.following.standings import BatchReport
from precede.pipeline.sessions.session import open_session

NODES = 20
WARM_S = 60
FAULT_EVERY_S = 10
ROWS_A_MESSAGE = NODES + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--rate", type=int, default=4_000, help="events a second")
    parser.add_argument("--seconds", type=int, default=150)
    options = parser.parse_args()
    results = run(options.rate, options.seconds)
    print(json.dumps(results, indent=2) if options.json else "\n".join(f"{k}: {v}" for k, v in results.items()))


def run(rate: int, seconds: int) -> dict[str, Any]:
    heard: list[tuple[float, BatchReport]] = []
    with tempfile.TemporaryDirectory() as folder, open_session("local[2,4]") as session:
        nodes = Nodes(Path(folder), rate, seconds)
        nodes.write_second(0)
        with Watched() as watched:
            nodes.start()
            verdict = follow(
                session,
                folder,
                "causal",
                idle_s=15,
                report=lambda reports: heard.extend((time.time(), one) for one in reports),
            )
            nodes.join()
    raised = {(v.node, v.step) for _, one in heard for v in one.standing.violations}
    assert raised == nodes.faults, (len(raised), len(nodes.faults))
    assert verdict.rows == nodes.rows, (verdict.rows, nodes.rows)
    lags = sorted(
        now - float(at)
        for now, one in heard
        for at, count in one.standing.written.items()
        for _ in range(count)
        if float(at) > nodes.began + WARM_S
    )
    batches = [one.standing.rows for _, one in heard]
    return {
        "events_per_s_offered": rate,
        "rows": verdict.rows,
        "violations_planted_and_raised": len(raised),
        "batches": len(batches),
        "lag_s_median": round(statistics.median(lags), 2),
        "lag_s_p95": round(lags[len(lags) * 95 // 100], 2),
        "lag_s_max": round(lags[-1], 2),
        "cpu_s": round(watched.cpu_s, 1),
        "peak_gib": round(watched.peak_bytes / 2**30, 2),
        "ratio_lag_median_to_3_s": round(statistics.median(lags) / 3, 3),
    }


class Nodes(threading.Thread):
    """Twenty nodes that write a segment of rows once a second."""

    def __init__(self, folder: Path, rate: int, seconds: int) -> None:
        super().__init__(daemon=True)
        self.messages, self.seconds = rate // ROWS_A_MESSAGE, seconds
        self.sinks = [SegmentSink(folder, f"n{node}") for node in range(NODES)]
        self.steps = [0] * NODES
        self.numbers = [0] * NODES
        self.faults: set[tuple[str, int]] = set()
        self.rows = 0
        self.began = time.time()

    def run(self) -> None:
        self.began = time.time()
        for second in range(1, self.seconds):
            time.sleep(max(0.0, self.began + second - time.time()))
            self.write_second(second)

    def write_second(self, second: int) -> None:
        """Writes messages, each delivered by all nodes; sometimes the last node swaps two deliveries."""
        rows: list[list[tuple[str, int, int]]] = [[] for _ in range(NODES)]
        for message in range(self.messages):
            source = message % (NODES - 1)
            self.numbers[source] += 1
            rows[source].append(("broadcast", source, self.numbers[source]))
            for own in rows:
                own.append(("delivered", source, self.numbers[source]))
        if second % FAULT_EVERY_S == FAULT_EVERY_S - 1:
            last = rows[-1]
            last[-2], last[-1] = last[-1], last[-2]
            self.faults.add((f"n{NODES - 1}", self.steps[-1] + len(last) - 1))
        for node, own in enumerate(rows):
            self.sinks[node].write_events(self._block(node, own, second))
            self.steps[node] += len(own)
            self.rows += len(own)

    def _block(self, node: int, rows: list[tuple[str, int, int]], second: int) -> pa.RecordBatch:
        schema, count = event_schema(), len(rows)
        first = self.steps[node]
        given: dict[str, list[Any]] = {
            "run_id": ["bench"] * count,
            "node": [f"n{node}"] * count,
            "incarnation": [0] * count,
            "step": list(range(first, first + count)),
            "at_us": [second * 1_000_000] * count,
            "clock_us": [second * 1_000_000] * count,
            "kind": [kind for kind, _, _ in rows],
            "message_source": [f"n{source}" for _, source, _ in rows],
            "message_incarnation": [0] * count,
            "message_number": [number for _, _, number in rows],
        }
        columns = [pa.array(given.get(field.name, [None] * count), field.type) for field in schema]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


if __name__ == "__main__":
    main()
