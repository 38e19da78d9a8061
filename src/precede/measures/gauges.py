"""Registry and buffer sizes of one run from its `gauges` (DESIGN section 5)."""

from __future__ import annotations

import numpy as np

from precede.core.errors import BadInput
from precede.measures.columns import Growing, Integers, Names, Source, batches_of, read_integers
from precede.measures.statistics import Measures

_COLUMNS = ("node", "at_us", "name", "value", "peak")


def measure_gauges(source: Source) -> Measures:
    """For each size: the highest `peak` of any node, the mean of the sampled values, what was left at the end.

    `NAME_size_final` adds every node's last sample: 0 where everything drained.
    """
    names, nodes = Names(), Names()
    kept = {column: Growing() for column in _COLUMNS}
    for batch in batches_of(source, _COLUMNS):
        for column in _COLUMNS:
            if column not in batch.schema.names:
                raise BadInput(f"not a table of gauges: no column {column!r}")
        kept["name"].add(names.read(batch, "name").astype(np.int64))
        kept["node"].add(nodes.read(batch, "node").astype(np.int64))
        for column in ("at_us", "value", "peak"):
            kept[column].add(read_integers(batch, column))
    columns = {column: growing.take() for column, growing in kept.items()}
    found: Measures = {}
    for name in sorted(names.codes):
        rows = np.flatnonzero(columns["name"] == names.codes[name])
        value = columns["value"][rows]
        found[f"{name}_size_peak"] = int(max(columns["peak"][rows].max(), value.max()))
        found[f"{name}_size_mean"] = int(value.sum()) / rows.size
        found[f"{name}_size_final"] = _final(columns["node"][rows], columns["at_us"][rows], value)
    return found


def _final(node: Integers, at: Integers, value: Integers) -> int:
    """The sum over nodes of the value sampled last; of two samples at one instant the later row counts."""
    order = np.lexsort((np.arange(at.size), at, node))
    last = np.append(np.flatnonzero(np.diff(node[order])), node.size - 1)
    return int(value[order][last].sum())
