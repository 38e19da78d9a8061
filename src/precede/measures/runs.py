"""All measures of a run's directory."""

from pathlib import Path

from precede.measures.energy import Energy
from precede.measures.events import measure_events
from precede.measures.gauges import measure_gauges
from precede.measures.messages import Window
from precede.measures.statistics import Measures


def measure_run(directory: str | Path, window: Window | None = None, energy: Energy | None = None) -> Measures:
    """Return every measure of a run's directory: of `events.parquet`, and of `gauges.parquet` if it exists."""
    measures = measure_events(Path(directory) / "events.parquet", window, energy)
    gauges = Path(directory) / "gauges.parquet"
    return measures | measure_gauges(gauges, window) if gauges.exists() else measures
