"""An event log as a folder of segments, readable while the run goes on (docs/reference/formats.md)."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


class SegmentSink:
    """Writes every block to a Parquet file of its own, under a temporary name until the file is complete.

    `writer` distinguishes the writers of one folder (a node, a process with several nodes). Segments are
    numbered; a writer that starts again continues after its last segment. Gauges are not written.
    """

    def __init__(self, folder: Path, writer: str) -> None:
        self._folder = folder
        self._writer = writer
        folder.mkdir(parents=True, exist_ok=True)
        self._number = 1 + max((_number(path) for path in folder.glob(f"{writer}-*.parquet")), default=0)

    def write_events(self, block: pa.RecordBatch) -> None:
        name = f"{self._writer}-{self._number:08}.parquet"
        temporary = self._folder / f".{name}.partial"
        pq.write_table(pa.Table.from_batches([block]), temporary, compression="zstd", compression_level=1)
        temporary.replace(self._folder / name)
        self._number += 1

    def write_gauges(self, block: pa.RecordBatch) -> None:
        """Does nothing, because segments have no gauges."""


def _number(path: Path) -> int:
    digits = path.stem.rsplit("-", 1)[1]
    return int(digits) if digits.isdigit() else 0
