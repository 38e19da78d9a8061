"""The tables of a sweep, made while its measures are written.

The measures of 100,000 runs are millions of rows. They go to their file a block of runs at a time; what stays
in memory is one number for each of them, for the groups, and the rows that settings or claims compare.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from precede.experiments.grid import Grid
from precede.measures.paired import COMPARED
from precede.pipeline.sweeps.compare import claimed_measures, compare
from precede.pipeline.sweeps.differences import differences
from precede.pipeline.sweeps.groups import GroupedValues
from precede.pipeline.sweeps.results import result_blocks
from precede.reproduction.claims import Claims


class SweepTables:
    """Take all batches of `measures`, then the other tables with `others`."""

    def __init__(self, grid: Grid, marks: Mapping[str, Mapping[str, Any]], claims: Claims | None) -> None:
        self._grid, self._marks, self._claims = grid, marks, claims
        self._blocks: list[dict[str, pa.Table]] = []
        """The tables of each block of runs; `measures` has only the rows that are compared."""

    def measures(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `measures`: those of runs in the order of the grid, then those of groups."""
        names = {*COMPARED} if self._claims is None else {*COMPARED, *claimed_measures(self._claims)}
        compared, grouped = pa.array(sorted(names)), GroupedValues()
        for block in result_blocks(self._grid, self._marks):
            measures = block["measures"]
            grouped.add(measures)
            is_compared = pc.is_in(measures["measure"], compared)
            self._blocks.append({**block, "measures": measures.filter(is_compared)})
            yield from measures.to_batches()
        yield from grouped.rows().to_batches()

    def others(self) -> dict[str, pa.Table]:
        """Return the other tables, after `measures` has yielded everything."""
        tables = {name: pa.concat_tables([block[name] for block in self._blocks]) for name in self._blocks[0]}
        seeds = {point.id: point.run.seed for point in self._grid.points}
        measures = tables.pop("measures")
        tables["differences"] = differences(measures, seeds, self._grid.name)
        if self._claims is not None:
            tables["comparisons"] = compare(measures, seeds, self._claims, self._grid.name)
        return tables
