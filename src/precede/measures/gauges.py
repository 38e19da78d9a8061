"""The sizes of registries and buffers of one run, from its gauges (docs/reference/formats.md)."""

from typing import Final

import numpy as np
import pyarrow as pa

from precede.core.errors import BadInput
from precede.measures.columns import Growing, Integers, Names, Source, batches_of, read_integers
from precede.measures.messages import Window
from precede.measures.statistics import Measures

COLUMNS = ("node", "at_us", "name", "value", "peak")
OCCUPANCY: Final = {"buffer": "messages", "cache": "messages", "buffer_bytes": "bytes", "cache_bytes": "bytes"}
"""The sizes of disseminations that are buffers of carried messages, with their units."""


def measure_gauges(source: Source, window: Window | None = None) -> Measures:
    """Return every measure of one run's gauges, as one flat mapping (see `GaugeMeasures`)."""
    gauges = GaugeMeasures(window)
    for batch in batches_of(source, COLUMNS):
        gauges.add(batch)
    return gauges.measures()


class GaugeMeasures:
    """Measures the sizes of one run from its gauges, batch by batch.

    For each size: `NAME_size_peak` is the highest peak of any node, `NAME_size_mean` the mean of the samples,
    and `NAME_size_final` the sum of the nodes' last samples, which is 0 if everything drained. Peak and mean
    are those of the samples in the window. `buffer_occupancy_messages_...` and `buffer_occupancy_bytes_...`
    have one name under all disseminations.
    """

    def __init__(self, window: Window | None = None) -> None:
        self.window = window or Window()
        self.names, self.nodes = Names(), Names()
        self.columns = {column: Growing() for column in COLUMNS}

    def add(self, batch: pa.RecordBatch) -> None:
        for column in COLUMNS:
            if column not in batch.schema.names:
                raise BadInput(f"not a table of gauges: no column {column!r}")
        self.columns["name"].add(self.names.read(batch, "name").astype(np.int64))
        self.columns["node"].add(self.nodes.read(batch, "node").astype(np.int64))
        for column in ("at_us", "value", "peak"):
            self.columns[column].add(read_integers(batch, column))

    def measures(self) -> Measures:
        """Return the measures of all batches added; call it once."""
        columns = {column: growing.take() for column, growing in self.columns.items()}
        measures: Measures = {}
        for name in sorted(self.names.codes):
            rows = np.flatnonzero(columns["name"] == self.names.codes[name])
            node, at, value = (columns[column][rows] for column in ("node", "at_us", "value"))
            inside = self.window.has(at)
            sampled = value[inside]
            if sampled.size:
                peak = int(max(columns["peak"][rows][inside].max(), sampled.max()))
                mean = int(sampled.sum()) / sampled.size
                measures |= {f"{name}_size_peak": peak, f"{name}_size_mean": mean}
                if name in OCCUPANCY:
                    occupancy = f"buffer_occupancy_{OCCUPANCY[name]}"
                    measures |= {f"{occupancy}_peak": peak, f"{occupancy}_mean": mean}
            measures[f"{name}_size_final"] = _final(node, at, value)
        return measures


def _final(node: Integers, at: Integers, value: Integers) -> int:
    """Return the sum of each node's last sample; of two samples at one instant the later row counts."""
    order = np.lexsort((np.arange(at.size), at, node))
    last = np.append(np.flatnonzero(np.diff(node[order])), node.size - 1)
    return int(value[order][last].sum())
