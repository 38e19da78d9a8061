"""Numbers from rows: transit, wait, age, traffic, sizes, buffers.

`measure_run(directory)` gives every measure of one run as one flat mapping; `measure_events` and
`measure_gauges` take a Parquet file or Arrow batches. Spark is not needed for any of them.

May import: core, eventlog
"""

from __future__ import annotations

from pathlib import Path

from precede.measures.events import Window, measure_events
from precede.measures.gauges import measure_gauges
from precede.measures.statistics import Measures, Number, confidence_interval, student_quantile, summarise

__all__ = [
    "Measures",
    "Number",
    "Window",
    "confidence_interval",
    "measure_events",
    "measure_gauges",
    "measure_run",
    "student_quantile",
    "summarise",
]


def measure_run(directory: str | Path, window: Window | None = None) -> Measures:
    """Every measure of a run's directory: `events.parquet`, and `gauges.parquet` where there is one."""
    found = measure_events(Path(directory) / "events.parquet", window)
    gauges = Path(directory) / "gauges.parquet"
    return found | measure_gauges(gauges) if gauges.exists() else found
