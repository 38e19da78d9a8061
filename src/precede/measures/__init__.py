"""The measures of a run, from its rows: transit, wait, age, traffic, sizes, buffers.

`measure_run(directory)` returns every measure of one run as one flat mapping. `measure_events` and
`measure_gauges` take a Parquet file or Arrow batches. They are the only definition of a measure: simulating
tasks and Spark jobs call them too. In reading order: `columns`, `statistics`, `paired`, `messages`, `delivery`,
`copies`, `energy`, `events`, `gauges`, `one_stats`.

May import: core, eventlog
"""

from __future__ import annotations

from pathlib import Path

from precede.measures.energy import Energy
from precede.measures.events import EventMeasures, measure_events
from precede.measures.gauges import GaugeMeasures, measure_gauges
from precede.measures.messages import Window
from precede.measures.statistics import Measures, Number, confidence_interval, student_quantile, summarise

__all__ = [
    "Energy",
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


def measure_run(directory: str | Path, window: Window | None = None, energy: Energy | None = None) -> Measures:
    """Return every measure of a run's directory: of `events.parquet`, and of `gauges.parquet` if it exists."""
    measures = measure_events(Path(directory) / "events.parquet", window, energy)
    gauges = Path(directory) / "gauges.parquet"
    return measures | measure_gauges(gauges, window) if gauges.exists() else measures
