"""The order in which people sort names: `n2` before `n10`."""

import re


def natural(name: str) -> tuple[tuple[int, int, str, str], ...]:
    """Return a sort key that compares runs of digits by their value and everything else as text.

    Digits are compared as text of equal length, because converting thousands of digits to a number is slow.

    >>> sorted(["n10", "n2", "m", "7"], key=natural)
    ['7', 'm', 'n2', 'n10']
    """
    return tuple(
        (0, len(part.lstrip("0")), part.lstrip("0"), part) if part.isdigit() else (1, 0, part, "")
        for part in re.findall(r"[0-9]+|[^0-9]+", name)
    )
