"""Reads large CSV logs in blocks of several megabytes with pyarrow.

A block is read by pyarrow only where it gives the same cells as the row reader: ASCII without quotes, carriage
returns, NULs or blank lines, every row as wide as the header. At the first block that is different, the row
reader takes over. It names row, line and cause of every mistake.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pacsv

from precede.witness.reading.streams import LineStream

BLOCK_BYTES: Final = 8 << 20
_IRREGULAR: Final = (b'"', b"\r", b"\0", b"\n\n")


def next_block(stream: LineStream) -> bytes:
    """Read whole lines of about `BLOCK_BYTES`; at the end of the stream whatever is left."""
    data = stream.read(BLOCK_BYTES)
    if len(data) < BLOCK_BYTES:
        return data
    end = data.rfind(b"\n") + 1
    stream.put_back(data[end:])
    return data[:end]


def parse_block(block: bytes, columns: Sequence[str], requested: Sequence[str], separator: str) -> Any:
    """Return the requested columns of a block as strings, empty cells null; None if it is irregular."""
    if not block.endswith(b"\n") or block.startswith(b"\n") or not block.isascii():
        return None
    if any(mark in block for mark in _IRREGULAR):
        return None
    try:
        table = pacsv.read_csv(
            pa.BufferReader(block),
            pacsv.ReadOptions(use_threads=False, block_size=len(block), column_names=list(columns)),
            pacsv.ParseOptions(delimiter=separator, quote_char=False, ignore_empty_lines=False),
            pacsv.ConvertOptions(
                column_types=dict.fromkeys(requested, pa.string()),
                include_columns=list(requested),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid:
        return None
    return table if table.num_rows == block.count(b"\n") else None


def batches(
    stream: LineStream, columns: Sequence[str], requested: Sequence[str], separator: str
) -> Iterator[tuple[Any, int]]:
    """Yield Arrow batches with their rows up to the first irregular block, which stays in the stream."""
    while block := next_block(stream):
        table = parse_block(block, columns, requested, separator)
        if table is None:
            stream.put_back(block)
            return
        for batch in table.combine_chunks().to_batches():
            yield batch, batch.num_rows
