"""The Parquet files of the event log: Arrow reads back the rows that were written, whatever they are."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precede.eventlog.parquet import file
from precede.eventlog.parquet.file import ParquetFile

NAME = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("name", NAME, nullable=False),
        pa.field("other", NAME),
        pa.field("step", pa.int64(), nullable=False),
        pa.field("at_us", pa.int64(), nullable=False),
        pa.field("size", pa.int64()),
        pa.field("count", pa.int32()),
        pa.field("destinations", pa.list_(pa.string())),
    ]
)
IN_FILE = pa.schema(
    [pa.field(f.name, pa.string() if f.type == NAME else f.type, nullable=f.nullable) for f in SCHEMA]
)
WORDS = st.sampled_from(["", "a", "bus-7", "Zoë", "x" * 300])
LONG = st.one_of(st.integers(0, 9), st.integers(-(2**63), 2**63 - 1))
SHORT = st.one_of(st.integers(0, 9), st.integers(-(2**31), 2**31 - 1))
ROW = st.tuples(
    WORDS,
    st.none() | WORDS,
    LONG,
    LONG,
    st.none() | LONG,
    st.none() | SHORT,
    st.none() | st.lists(WORDS, max_size=3),
)


def block(rows: list[tuple[object, ...]], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    return pa.record_batch(
        [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def written(path: Path, blocks: list[pa.RecordBatch]) -> pq.ParquetFile:
    out = ParquetFile(path, SCHEMA, rising=("step", "at_us"), measured=("name", "at_us"))
    for one in blocks:
        out.write(one)
    out.close({b"key": b"value"})
    return pq.ParquetFile(path, page_checksum_verification=True)


@settings(deadline=None)
@given(
    blocks=st.lists(st.lists(ROW, max_size=20), max_size=6), group=st.integers(1, 40), offset=st.integers(0, 3)
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[list[tuple[object, ...]]], group: int, offset: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "GROUP_ROWS", group)
        read = written(path, [block(rows).slice(min(offset, len(rows))) for rows in blocks])
    rows = [row for rows in blocks for row in rows[min(offset, len(rows)) :]]
    assert read.schema_arrow.equals(IN_FILE)
    assert read.read().equals(pa.Table.from_batches([block(rows, IN_FILE)]))
    assert read.metadata.metadata == {b"key": b"value"}


@settings(deadline=None)
@given(rows=st.lists(ROW, max_size=60), group=st.integers(1, 40), cuts=st.sets(st.integers(0, 60)))
def test_the_bytes_of_a_file_do_not_depend_on_where_its_blocks_end(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[object, ...]], group: int, cuts: set[int]
) -> None:
    path = tmp_path_factory.getbasetemp() / "blocks.parquet"
    ends = [0, *sorted(cuts), len(rows)]
    divided = [rows[begin:end] for begin, end in pairwise(ends)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "GROUP_ROWS", group)
        written(path, [block(rows)])
        whole = path.read_bytes()
        written(path, [block(part) for part in divided])
    assert path.read_bytes() == whole


@pytest.mark.parametrize("different", [1, 2, 257, 65_537, 70_000])
def test_many_different_values(tmp_path: Path, different: int) -> None:
    rows = [
        (
            f"n{row % different}",
            f"o{row % different}",
            row,
            row * row,
            row % different << 20,
            row % different,
            None,
        )
        for row in range(140_001)
    ]
    read = written(tmp_path / "rows.parquet", [block(rows[:70_000]), block(rows[70_000:])]).read()
    assert read.equals(pa.Table.from_batches([block(rows, IN_FILE)]))


def test_row_groups_have_bounds(tmp_path: Path) -> None:
    rows = [("b", None, 0, at, None, None, None) for at in (3, 9, 4)] + [("a", None, 0, 5, None, None, None)]
    group = written(tmp_path / "rows.parquet", [block(rows)]).metadata.row_group(0)
    bounds = {place: group.column(place).statistics for place in (0, 3)}
    assert {place: (both.min, both.max) for place, both in bounds.items()} == {0: ("a", "b"), 3: (3, 9)}
    assert group.column(2).statistics is None
    assert group.sorting_columns == (pq.SortingColumn(3),)
