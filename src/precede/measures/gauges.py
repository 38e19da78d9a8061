"""The sizes of registries and buffers of one run, from its gauges (docs/reference/formats.md)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from precede.core.errors import BadInput
from precede.measures.columns import Growing, Integers, Names, Source, batches_of, read_integers
from precede.measures.statistics import Measures

COLUMNS = ("node", "at_us", "name", "value", "peak")


def measure_gauges(source: Source) -> Measures:
    """Return every measure of one run's gauges, as one flat mapping (see `GaugeMeasures`)."""
    gauges = GaugeMeasures()
    for batch in batches_of(source, COLUMNS):
        gauges.add(batch)
    return gauges.measures()


class GaugeMeasures:
    """Measures the sizes of one run from its gauges, batch by batch.

    For each size: `NAME_size_peak` is the highest peak of any node, `NAME_size_mean` the mean of the samples,
    and `NAME_size_final` the sum of the nodes' last samples, which is 0 if everything drained.
    """

    def __init__(self) -> None:
        self.names, self.nodes = Names(), Names()
        self.columns = {column: Growing() for column in COLUMNS}

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch of gauges."""
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
            value = columns["value"][rows]
            measures[f"{name}_size_peak"] = int(max(columns["peak"][rows].max(), value.max()))
            measures[f"{name}_size_mean"] = int(value.sum()) / rows.size
            measures[f"{name}_size_final"] = _final(columns["node"][rows], columns["at_us"][rows], value)
        return measures


def _final(node: Integers, at: Integers, value: Integers) -> int:
    """Return the sum of each node's last sample; of two samples at one instant the later row counts."""
    order = np.lexsort((np.arange(at.size), at, node))
    last = np.append(np.flatnonzero(np.diff(node[order])), node.size - 1)
    return int(value[order][last].sum())
