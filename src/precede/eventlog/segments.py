"""An event log in segments, for whoever watches a run while it goes on (docs/reference/formats.md)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


class SegmentSink:
    """Every block becomes a Parquet file of its own in a folder, under another name until it is whole.

    `writer` tells the writers of one folder apart (a node, a process of several nodes). Segments are numbered,
    and a writer that begins again goes on behind the ones it left. Gauges are not watched, and not written.
    """

    def __init__(self, folder: Path, writer: str) -> None:
        self._folder = folder
        self._writer = writer
        folder.mkdir(parents=True, exist_ok=True)
        self._number = 1 + max((_number(path) for path in folder.glob(f"{writer}-*.parquet")), default=0)

    def write_events(self, block: pa.RecordBatch) -> None:
        """Rows of some processes, each continuing where its last segment ended."""
        name = f"{self._writer}-{self._number:08}.parquet"
        temporary = self._folder / f".{name}.partial"
        pq.write_table(pa.Table.from_batches([block]), temporary, compression="zstd", compression_level=1)
        temporary.replace(self._folder / name)
        self._number += 1

    def write_gauges(self, block: pa.RecordBatch) -> None:
        """Not part of a segment."""


def _number(path: Path) -> int:
    digits = path.stem.rsplit("-", 1)[1]
    return int(digits) if digits.isdigit() else 0
