"""The measures of a run, from its rows: transit, wait, age, traffic, sizes, buffers.

`measure_run(directory)` returns every measure of one run as one flat mapping. `measure_events` and
`measure_gauges` take a Parquet file or Arrow batches. They are the only definition of a measure: simulating
tasks and Spark jobs call them too.

columns      Arrow columns as numpy arrays
statistics   summaries, Student's t, confidence intervals
delivery     delivery ratio, hops, relayed copies, overhead ratio
events       the measures of an event log
gauges       the measures of sampled sizes

May import: core, eventlog
"""

from __future__ import annotations

from pathlib import Path

from precede.measures.events import EventMeasures, Window, measure_events
from precede.measures.gauges import GaugeMeasures, measure_gauges
from precede.measures.statistics import Measures, Number, confidence_interval, student_quantile, summarise

__all__ = [
    "EventMeasures",
    "GaugeMeasures",
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
    """Return every measure of a run's directory: of `events.parquet`, and of `gauges.parquet` if it exists."""
    measures = measure_events(Path(directory) / "events.parquet", window)
    gauges = Path(directory) / "gauges.parquet"
    return measures | measure_gauges(gauges) if gauges.exists() else measures
