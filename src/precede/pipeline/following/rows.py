"""The columns of a batch of rows, and its rows as the live verifier takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa

from precede.core.errors import BadInput
from precede.witness.live.intake import LEFT, STARTED
from precede.witness.live.state import LiveRow
from precede.witness.reading.column_names import BROADCAST, DELIVERED, OTHER
from precede.witness.reading.values import destinations

ABSENT: Final = -(1 << 63)
"""Stands for an integer that a row does not have."""

BUCKET: Final = "bucket"
WORDS: Final = {"started": STARTED, "left": LEFT}

COLUMNS: Final = (
    *(("node", "string"), ("incarnation", "int"), ("step", "bigint"), ("kind", "int"), ("source", "string")),
    *(("source_incarnation", "int"), ("number", "bigint"), ("to", "string"), ("deadline", "bigint")),
    *(("clock", "bigint"), ("written", "double"), ("place", "string"), ("cause", "string")),
)
"""The columns after those that name the run. A rejected row has a `cause`, and `place` says where it stood."""

_ARROW: Final = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "double": pa.float64()}

NodeRow: TypeAlias = tuple[str, int, LiveRow]
"""A node, its incarnation, and one of its rows."""


def run_columns(by: Sequence[str]) -> list[str]:
    """The names of the columns that name the run."""
    return [f"by{index}" for index in range(len(by))]


def arrow_schema(by: Sequence[str]) -> pa.Schema:
    """The columns of a batch of rows as an Arrow schema."""
    named = [(name, "string") for name in run_columns(by)]
    return pa.schema([(name, _ARROW[kind]) for name, kind in (*named, *COLUMNS)])


def ddl(by: Sequence[str]) -> str:
    """The columns of a batch of rows in SQL."""
    named = [(name, "string") for name in run_columns(by)]
    return ", ".join(f"`{name}` {kind}" for name, kind in (*named, *COLUMNS))


def live_rows(table: pa.Table) -> Iterator[NodeRow]:
    """Yield the rows of one run, checked, by node and step: the result does not depend on how they arrived.

    Raises BadInput if a row lacks what it needs.
    """
    names = (
        *("node", "incarnation", "step", "kind", "source", "source_incarnation"),
        *("number", "to", "deadline", "clock"),
    )
    columns = [table[name].to_pylist() for name in names]
    for row in sorted(zip(*columns, strict=True)):
        yield _live_row(*row)


def _live_row(
    node: str,
    incarnation: int,
    step: int,
    kind: int,
    source: str,
    source_incarnation: int,
    number: int,
    to: str,
    deadline: int,
    clock: int,
) -> NodeRow:
    if node == "" or step < 0:
        raise BadInput(f"a row without {'step' if node else 'node'} (node {node!r})")
    moment = _value(clock)
    if kind not in (BROADCAST, DELIVERED):
        return node, incarnation, LiveRow(step, kind, clock=moment)
    if number == ABSENT or (source == "" and kind == DELIVERED):
        raise BadInput(f"step {step} of node {node!r}: message_source or message_number is missing")
    if kind == DELIVERED:
        stream = (source, max(source_incarnation, 0), number)
        return node, incarnation, LiveRow(step, kind, *stream, clock=moment)
    addressed = destinations(to, 0, lambda _: f"step {step} of node {node!r}")
    own = incarnation if source_incarnation < 0 else source_incarnation
    return (
        node,
        incarnation,
        LiveRow(
            *(step, kind, source or node, own, number),
            to=None if addressed is None else sorted(addressed),
            deadline=_value(deadline),
            clock=moment,
        ),
    )


def kind_of(word: Any, kinds: dict[str, int]) -> int:
    """The kind of a row by the word in its column `kind`."""
    return kinds.get(word, WORDS.get(word, OTHER))


def _value(number: int) -> int | None:
    return None if number == ABSENT else number
