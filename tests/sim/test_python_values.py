"""Columns of Arrow as Python values: the same as those of `to_pylist`."""

import datetime

import pyarrow as pa
import pytest

from precede.eventlog.python_values import python_values

COLUMNS = {
    "numbers": pa.array([1, -2, 1 << 62]),
    "numbers with nulls": pa.array([1, None, -(1 << 62)]),
    "unsigned numbers with nulls": pa.array([None, (1 << 64) - 1], pa.uint64()),
    "only nulls": pa.array([None, None], pa.int32()),
    "no rows": pa.array([], pa.int64()),
    "part of an array": pa.array([1, None, 3, 4]).slice(1, 2),
    "names": pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "part of the names": pa.array(["a", None, "b", "a"]).dictionary_encode().slice(2),
    "a null as a name": pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None])),
    "text": pa.array(["a", None, ""]),
    "lists": pa.array([["a", "b"], None, []]),
    "truth": pa.array([True, None, False]),
    "fractions": pa.array([1.5, None, -0.0]),
    "dates": pa.array([datetime.date(2026, 1, 2), None]),
    "chunks": pa.chunked_array([pa.array([1, None]), pa.array([], pa.int64()), pa.array([2])]),
    "no chunks": pa.chunked_array([], pa.int64()),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_python_values_equal_those_of_to_pylist(name: str) -> None:
    column = COLUMNS[name]
    values = python_values(column)
    assert values == column.to_pylist()
    assert list(map(type, values)) == list(map(type, column.to_pylist()))
