"""A block of rows as columns of numbers, however they were written down: what the recorder makes Arrow of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from precede.eventlog.rows import CONTINUED
from precede.eventlog.schema import PACKET_RECEIVED, SENT

Integers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_UNIT: Final = np.dtype(
    [
        ("at", "<i8"),
        ("process", "<i4"),
        ("source", "<i4"),
        ("number", "<u4"),
        ("incarnation", "<u2"),
        ("kind", "u1"),
        ("small", "u1"),
        ("clock", "<i8"),
    ]
)


class Block(NamedTuple):
    """The first eight columns have a value for every row, the other four for every packet row.

    In a packet row `source` is the peer, `number` the size, `incarnation` the kind's code, `small` the medium.
    """

    at: Integers
    clock: Integers
    number: Integers
    process: Integers
    source: Integers
    incarnation: Integers
    kind: Integers
    small: Integers
    control_bytes: Integers
    control_entries: Integers
    wire_bytes: Integers
    messages: Integers
    packets: Integers
    """Which rows are about packets."""
    places: Integers | None
    """Where each row began, in units, if not at its own number."""


TYPES: Final = ("<i8", "<i8", "<i8", "<i4", "<i4", "<i4", "<i4", "<i4", "<i8", "<i8", "<i8", "<i4")
"""Of the first twelve, in their order."""
_OF_ROWS: Final = ("at", "clock", "number", "process", "source", "incarnation", "kind", "small")
_OF_PACKETS: Final = ("at", "number", "source", "process")
"""Where the same twelve stand in units."""


def block_of_columns(taken: Sequence[bytes]) -> Block:
    """From `MachineRows`, which writes them apart."""
    columns = [np.frombuffer(column, kind) for column, kind in zip(taken, TYPES, strict=True)]
    return Block._make([*columns, _about_packets(columns[6]), None])


def block_of_units(taken: Sequence[bytes]) -> Block:
    """From `Rows`, which writes row after row."""
    units: Integers = np.frombuffer(taken[0], _UNIT)
    places = np.flatnonzero(units["kind"] != CONTINUED)
    rows = _taken(units, places) if len(places) < len(units) else units
    packets = _about_packets(rows["kind"])
    more = _taken(units, places[packets] + 1)
    fields = [rows[name] for name in _OF_ROWS] + [more[name] for name in _OF_PACKETS]
    columns = [np.ascontiguousarray(field, kind) for field, kind in zip(fields, TYPES, strict=True)]
    return Block._make([*columns, packets, places])


def _about_packets(kind: Integers) -> Integers:
    return np.flatnonzero((kind == SENT) | (kind == PACKET_RECEIVED))


def _taken(units: Integers, places: Integers) -> Integers:
    """Some units, copied whole: numpy picks records field by field otherwise, at fifty times the cost."""
    return units.view("V32").take(places).view(_UNIT)
