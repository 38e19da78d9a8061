"""Units that people read: measures are in microseconds and bytes, pages show minutes and kilobytes."""

from typing import Final, NamedTuple

from precede.report.tables import Cell, shown


class Unit(NamedTuple):
    """A unit with its size in the unit of the measure."""

    name: str
    size: float


_TIMES: Final = (Unit("h", 3.6e9), Unit("min", 6e7), Unit("s", 1e6), Unit("ms", 1e3), Unit("µs", 1.0))
_BYTES: Final = (Unit("GB", 1e9), Unit("MB", 1e6), Unit("kB", 1e3), Unit("bytes", 1.0))
_LEAST: Final = 2.0
"""A unit is used from two of it on: 90 s, not 1.5 min."""


def unit_of(measure: str, largest: float) -> Unit | None:
    """Return the unit in which values up to `largest` of a measure are shown; None for a plain number.

    >>> unit_of("age_us_mean", 4.2e9).name, unit_of("packet_bytes", 30_000).name, unit_of("packets", 5)
    ('min', 'kB', None)
    """
    words = measure.split("_")
    units = _TIMES if "us" in words else _BYTES if "bytes" in words else ()
    if not units or words[-1] == "share":
        return None
    return next((unit for unit in units if abs(largest) >= _LEAST * unit.size), units[-1])


def readable(measure: str, value: float | None) -> Cell:
    """Return a value of a measure with its unit, as text; a plain number stays a number.

    >>> readable("wait_us_mean", 90e6), readable("end_us", 7.3e9), readable("packets", 7)
    ('90 s', '2.028 h', 7)
    """
    unit = None if value is None else unit_of(measure, value)
    if unit is None or value is None:
        return value
    return f"{shown(value / unit.size)} {unit.name}"
