"""Single values of a log, checked: integers, names and destinations. Errors name the row and the column."""

import json
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from precede.core.errors import BadInput

Place: TypeAlias = Callable[[int], str]
"""Describes where a row stands: `log.csv, row 17 (line 18)`."""

_LARGEST: Final = (1 << 63) - 1
_SEPARATORS: Final = re.compile(r"[;,|\s]+")


def whole(value: Any, row: int, column: str, place: Place) -> int:
    """Convert an int, a whole float, a numpy integer or text to a 64-bit integer, or raise BadInput."""
    number: int | None = None
    if isinstance(value, str):
        try:
            number = int(value)
        except ValueError:
            number = None
    elif isinstance(value, float):
        number = int(value) if value.is_integer() else None
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif hasattr(value, "__index__") and not isinstance(value, bool):
        number = int(value)
    if number is None:
        cause = "is missing" if value is None or value == "" else f"is not a whole number: {_shown(value)}"
        raise BadInput(f"{place(row)}: {column} {cause}")
    if not -_LARGEST <= number <= _LARGEST:
        raise BadInput(f"{place(row)}: {column} is too large: {_shown(value)}")
    return number


def text(value: Any, row: int, column: str, place: Place) -> str:
    """Convert text or a number to a name. Raises BadInput for any other value.

    2.0 becomes `2`, because pandas stores integers as floats if some are missing.
    """
    if isinstance(value, str):
        if value == "":
            raise BadInput(f"{place(row)}: {column} is missing")
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if value is None or isinstance(value, (float, list, dict)):
        cause = "is missing" if value is None else f"is not a name: {_shown(value)}"
        raise BadInput(f"{place(row)}: {column} {cause}")
    return str(value)


def destinations(value: Any, row: int, place: Place) -> frozenset[str] | None:
    """Read destinations: a list, or names separated by spaces, commas, semicolons or bars; None: all nodes."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            raise BadInput(f"{place(row)}: destinations are not a list: {_shown(value)}") from None
    if isinstance(value, str):
        return frozenset(part for part in _SEPARATORS.split(value) if part)
    if isinstance(value, (list, tuple)):
        return frozenset(text(part, row, "destinations", place) for part in value)
    raise BadInput(f"{place(row)}: destinations are not a list: {_shown(value)}")


def _shown(value: Any) -> str:
    written = repr(value)
    return written if len(written) <= 60 else written[:57] + "..."
