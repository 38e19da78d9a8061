"""The overview of a group as lines of text, cut to the width of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from precede.cli.field.lines import printable
from precede.runtime.observe.overview import MemberRow, Overview

_HEAD: Final = ("member", "order", "hears", "delivered", "lag", "waits", "oldest", "in/s", "out/s", "refused")
_MOST_WAITS: Final = 8
_LONGEST_NAME: Final = 24


def lines(shown: Overview, width: int, height: int | None = None) -> list[str]:
    """Write an overview as lines of at most `width` characters; at most `height` lines, if given."""
    rows = [_cells(row) for row in shown.members if not row.problem]
    rows = [_HEAD, *rows] if rows else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = ["  ".join(_padded(cell, widths[n], n < 2) for n, cell in enumerate(row)).rstrip() for row in rows]
    text += [f"{printable(row.address)}: {row.problem}" for row in shown.members if row.problem]
    text += _hearing(shown.members) + _trouble(shown.members) + _waits(shown) + _followed(shown)
    if text[:1] == [""]:
        del text[0]
    cut = [line if len(line) <= width else line[: width - 1] + "…" for line in text]
    return cut if height is None else cut[:height]


def _cells(row: MemberRow) -> tuple[str, ...]:
    hears = f"{len(row.hears)} of {len(row.hears) + len(row.not_heard)}"
    return (
        *(name(row.member), row.order, hears, f"{row.deliveries:,}", f"{row.lag:,}", f"{row.waiting:,}"),
        *(duration(row.oldest_wait_s) if row.waiting else "-", rate(row.bytes_in_s), rate(row.bytes_out_s)),
        f"{row.refused:,}",
    )


def _padded(cell: str, width: int, left: bool) -> str:
    return cell.ljust(width) if left else cell.rjust(width)


def _hearing(members: Sequence[MemberRow]) -> list[str]:
    """Name for each member the members of the overview that it does not hear."""
    return [
        f"{name(row.member)} does not hear {', '.join(map(name, row.not_heard))}"
        for row in members
        if row.not_heard
    ]


def _trouble(members: Sequence[MemberRow]) -> list[str]:
    failed = [f"{name(row.member)}: its store failed, it has stopped" for row in members if row.failed]
    warned = [
        f"{name(row.member)}: {row.warnings} warning{'s' * (row.warnings > 1)} (in its log)"
        for row in members
        if row.warnings
    ]
    return failed + warned


def _waits(shown: Overview) -> list[str]:
    text = [
        f"{name(member)}: {printable(wait.message)} has waited {duration(wait.since_s)} for "
        + (", ".join(map(printable, wait.waits_for)) or "?")
        for member, wait in shown.waits[:_MOST_WAITS]
    ]
    more = len(shown.waits) - _MOST_WAITS
    return ["", *text, *([f"and {more} more that wait"] if more > 0 else [])] if text else []


def _followed(shown: Overview) -> list[str]:
    followed = shown.followed
    if followed is None:
        return []
    counts = [f"{count:,} {kind} violation{'s' * (count != 1)}" for kind, count in followed.violations.items()]
    counted = ", ".join(counts) or "no violations"
    text = f"{followed.order} order, {followed.deliveries:,} deliveries verified: {counted}"
    behind = [f"{followed.waiting:,} rows are not judged yet", *followed.waits_for] if followed.waiting else []
    return [
        "",
        text,
        *map(printable, behind),
        *(printable(line) for story in followed.latest for line in story.splitlines()),
    ]


def name(text: str) -> str:
    """Write a name that cannot change the screen: controls escaped, at most 24 characters."""
    shown = printable(text)
    return shown if len(shown) <= _LONGEST_NAME else shown[: _LONGEST_NAME - 1] + "…"


def duration(seconds: float) -> str:
    """Write a duration in few characters.

    >>> duration(0.25), duration(75), duration(7300)
    ('0.2 s', '1.2 min', '2.0 h')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def rate(bytes_per_s: float | None) -> str:
    return "-" if bytes_per_s is None else size(bytes_per_s)


def size(count: float) -> str:
    """Write a number of bytes in few characters.

    >>> size(12), size(34_567), size(8.9e6)
    ('12 B', '34.6 kB', '8.9 MB')
    """
    if count < 1000:
        return f"{count:.0f} B"
    return f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"
