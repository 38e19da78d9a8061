"""The numbers in the fields of trace files: instants, coordinates."""

import math
from typing import Final

from precede.core.instants import SECOND, Instant
from precede.files.lines import BadRow, shown

MAX_SECONDS: Final = float(2**52 // SECOND)
MOST_METRES: Final = 1e9


def instant(text: str) -> Instant:
    """Parse a number of seconds as an instant in whole microseconds; raises BadRow."""
    value = number(text, "time")
    if abs(value) > MAX_SECONDS:
        raise BadRow(f"time out of range: {shown(text)}")
    return round(value * SECOND)


def number(text: str, noun: str = "number") -> float:
    """Parse a finite number. Raises BadRow, in which `noun` names the field."""
    try:
        value = float(text)
    except ValueError:
        raise BadRow(f"{noun} is not a number: {shown(text)}") from None
    if not math.isfinite(value):
        raise BadRow(f"{noun} is not finite: {shown(text)}")
    return value


def coordinate(text: str, noun: str = "coordinate") -> float:
    """Parse a coordinate in metres, within a million kilometres of zero; raises BadRow."""
    value = number(text, noun)
    if abs(value) > MOST_METRES:
        raise BadRow(f"{noun} out of range: {shown(text)}")
    return value
