"""One order of many nodes, verified by many Spark tasks: `python -m benchmarks.one_order [--json] [--rows N]`.

`--rows 100000000` is the largest. It measures the CPU seconds of all processes, Java included, and the largest
resident memory of any Python worker, sampled four times a second. `ratio_` is over one process.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from benchmarks.family import Watched
from benchmarks.verify import check, write_log
from precede.pipeline.judging import files
from precede.pipeline.sessions.session import open_session

NODES = 2000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--rows", type=int, default=10_000_000, help="delivered rows")
    parser.add_argument("--folder", type=Path, help="where the log is kept, or stands already")
    parser.add_argument("--alone", action="store_true", help="also verify in one process, for the ratio")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = run(options.rows, options.folder or Path(folder), options.alone)
    print(json.dumps(results, indent=2) if options.json else "\n".join(f"{k}: {v}" for k, v in results.items()))


def run(rows: int, folder: Path, alone: bool) -> dict[str, Any]:
    log, small = folder / f"{NODES}-nodes-{rows}.parquet", folder / f"{NODES}-nodes-small.parquet"
    for path, count in ((small, 200_000), (log, rows)):
        if not path.is_file():
            write_log(path, NODES, count)
    files.HUGE_ROWS = 0  # type: ignore[misc]
    with open_session("local[2,4]", light=True) as session:
        files.verify_path(session, str(small), "causal")
        with Watched() as watched, Largest() as largest:
            verdict = files.verify_path(session, str(log), "causal")
    assert verdict.verdict == "holds", verdict
    results: dict[str, Any] = {
        "rows": verdict.rows,
        "cpu_s": round(watched.cpu_s, 1),
        "wall_s": round(watched.wall_s, 1),
        "largest_worker_gib": round(largest.peak_bytes / 2**30, 2),
    }
    if alone:
        results["one_process_cpu_s"] = check(str(small), str(log), "causal")["seconds"]
        results["ratio_cpu"] = round(results["cpu_s"] / results["one_process_cpu_s"], 2)
    return results


class Largest:
    """Samples the largest resident memory of any Python process that a descendant of this one started."""

    def __enter__(self) -> Largest:
        self.peak_bytes = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def _sample(self) -> None:
        while not self._over.wait(0.25):
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    if process.name().startswith("python"):
                        self.peak_bytes = max(self.peak_bytes, process.memory_info().rss)

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


if __name__ == "__main__":
    main()
