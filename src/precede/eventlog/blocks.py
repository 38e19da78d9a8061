"""A block of rows as columns of numbers: the step between packed rows and Arrow."""

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
    """Holds one block of rows as columns: eight with a value per row, then four with a value per packet row.

    In a packet row `source` is the peer, `number` the packet's size, `incarnation` the code of the packet's
    kind, and `small` the medium.
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
    """The positions of the packet rows."""
    places: Integers | None
    """The unit of 32 bytes at which each row begins; None if row n begins at unit n."""


TYPES: Final = ("<i8", "<i8", "<i8", "<i4", "<i4", "<i4", "<i4", "<i4", "<i8", "<i8", "<i8", "<i4")
"""The number types of the first twelve columns of a `Block`."""
_OF_ROWS: Final = ("at", "clock", "number", "process", "source", "incarnation", "kind", "small")
_OF_PACKETS: Final = ("at", "number", "source", "process")
"""The fields in the second half of a packet row that hold the last four columns of numbers in a `Block`.

`_OF_ROWS` names the fields of a row's first 32 bytes that hold the first eight columns.
"""


def block_of_columns(taken: Sequence[bytes]) -> Block:
    """Makes a block from the columns that `MachineRows.take` returned."""
    columns = [np.frombuffer(column, kind) for column, kind in zip(taken, TYPES, strict=True)]
    return Block._make([*columns, _about_packets(columns[6]), None])


def block_of_units(taken: Sequence[bytes]) -> Block:
    """Makes a block from the packed rows that `Rows.take` returned."""
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
    """Copies some units as opaque bytes; numpy would copy records field by field, fifty times slower."""
    return units.view("V32").take(places).view(_UNIT)
