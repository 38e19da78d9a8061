"""Time in whole microseconds, and written durations: `250ms`, `20s`, `20min`, `2h`."""

import re
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from precede.core.errors import BadInput

Instant: TypeAlias = Annotated[int, Meta(ge=-(1 << 62), le=1 << 62)]
"""Microseconds of a clock. The range applies to decoded values (see `core.identity`)."""
Duration: TypeAlias = int

MICROSECOND: Final[Duration] = 1
MILLISECOND: Final[Duration] = 1_000
SECOND: Final[Duration] = 1_000_000
MINUTE: Final[Duration] = 60 * SECOND
HOUR: Final[Duration] = 60 * MINUTE
DAY: Final[Duration] = 24 * HOUR
LONGEST: Final[Duration] = 1_000_000 * DAY

UNITS: Final[dict[str, Duration]] = {
    "us": MICROSECOND,
    "ms": MILLISECOND,
    "s": SECOND,
    "min": MINUTE,
    "h": HOUR,
    "d": DAY,
}
_WRITTEN: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*")


def parse_duration(written: str | int | float) -> Duration:
    """Reads a written duration as microseconds; a bare number is seconds.

    >>> parse_duration("20min"), parse_duration("1.5s"), parse_duration(2)
    (1200000000, 1500000, 2000000)
    """
    if isinstance(written, bool) or not isinstance(written, (int, float, str)):
        raise BadInput(f"not a duration: {written!r} (write 250ms, 20s, 20min, 2h)")
    if isinstance(written, (int, float)):
        if written < 0:
            raise BadInput(f"not a duration: {written!r} is less than nothing")
        return _bounded(seconds(written), written)
    match = _WRITTEN.fullmatch(written)
    if match is None or match[2] not in UNITS:
        raise BadInput(f"not a duration: {written!r} (write 250ms, 20s, 20min, 2h)")
    try:
        return _bounded(round(float(match[1]) * UNITS[match[2]]), written)
    except OverflowError:
        raise BadInput(f"not a duration: {written[:40]!r}... is without end") from None


def _bounded(duration: Duration, written: str | int | float) -> Duration:
    """Returns the duration. Raises BadInput if it is too long: event logs have 64 bits for an instant."""
    if duration > LONGEST:
        raise BadInput(f"not a duration: {str(written)[:40]!r} is more than {LONGEST // DAY} days")
    return duration


def seconds(number: float) -> Duration:
    """Converts seconds to the nearest whole microsecond. Raises BadInput for infinity and NaN."""
    try:
        return round(number * SECOND)
    except (ValueError, OverflowError) as error:
        raise BadInput(f"not a time in seconds: {number!r}") from error


def format_duration(duration: Duration) -> str:
    """Writes a duration in the largest unit that keeps it exact.

    >>> format_duration(1_200_000_000), format_duration(250_000), format_duration(0)
    ('20min', '250ms', '0s')
    """
    if duration == 0:
        return "0s"
    for unit in ("h", "min", "s", "ms"):
        if duration % UNITS[unit] == 0:
            return f"{duration // UNITS[unit]}{unit}"
    return f"{duration}us"
