"""Rows of a world's event log as Python values, from which the swarm judges it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from precede.core.instants import Instant
from precede.eventlog.python_values import python_values
from precede.eventlog.schema import KINDS

Process: TypeAlias = tuple[str, int]
"""A node's name and incarnation."""
Message: TypeAlias = tuple[str, int, int]
"""Source, incarnation and number of a message."""

_COLUMNS: Final = (
    "node",
    "incarnation",
    "at_us",
    "clock_us",
    "kind",
    "message_source",
    "message_incarnation",
    "message_number",
    "destinations",
    "deadline_us",
    "peer",
    "reason",
)
"""The columns of a log that are read to judge a world."""


def events_of(log: pa.Table, *kinds: str) -> list[dict[str, Any]]:
    """Return the rows of some kinds as dictionaries, in the order of the log. For small logs."""
    assert all(kind in KINDS for kind in kinds)
    columns = [python_values(column) for column in rows_of(log.select(_COLUMNS), *kinds).columns]
    return [dict(zip(_COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]


def count_events(log: pa.Table, kind: str) -> int:
    """Count the rows of a kind."""
    assert kind in KINDS
    return sum(int(chosen.sum()) for chosen in _chosen(log, (kind,)))


def rows_of(log: pa.Table, *kinds: str) -> pa.Table:
    """Return the rows of some kinds as a table, in the order of the log."""
    masks = [pa.array(chosen) for chosen in _chosen(log, kinds)]
    return log.filter(pa.chunked_array(masks, pa.bool_()))


def _chosen(log: pa.Table, kinds: Sequence[str]) -> Iterator[np.ndarray[Any, np.dtype[np.bool_]]]:
    """Yield for each chunk of a log which of its rows have one of these kinds. Reads codes, not words."""
    for chunk in log["kind"].chunks:
        names = chunk.dictionary.to_pylist()
        chosen = np.array([name in kinds for name in names], np.bool_)
        yield chosen[chunk.indices.to_numpy()]


def message_of(row: Mapping[str, Any]) -> Message:
    return row["message_source"], row["message_incarnation"], row["message_number"]


def broadcasts_and_deliveries(log: pa.Table) -> tuple[dict[Message, Instant], dict[Process, list[Message]]]:
    """Return when each message was broadcast, and what each process delivered, in its order."""
    broadcasts: dict[Message, Instant] = {}
    deliveries: dict[Process, list[Message]] = {}
    for row in events_of(log, "broadcast", "delivered"):
        if row["kind"] == "broadcast":
            broadcasts[message_of(row)] = row["at_us"]
        else:
            deliveries.setdefault((row["node"], row["incarnation"]), []).append(message_of(row))
    return broadcasts, deliveries
