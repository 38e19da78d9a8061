"""The measures of a run, from its rows: transit, wait, age, traffic, sizes, buffers.

`measure_run(directory)` returns every measure of one run as one flat mapping. `measure_events` and
`measure_gauges` take a Parquet file or Arrow batches. They are the only definition of a measure: simulating
tasks and Spark jobs call them too.

columns      Arrow columns as numpy arrays
statistics   summaries, Student's t, confidence intervals
paired       differences between settings over shared seeds, Holm's correction
messages     rows about messages, resolved to their broadcasts; the window to measure
delivery     delivery ratio, distribution of the age, hops
copies       transfers, overhead ratio, drops, buffer times
energy       the energy of radios, by a linear model
events       the measures of an event log
gauges       the measures of sampled sizes
one_stats    the measures in the format of The ONE's MessageStatsReport

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
