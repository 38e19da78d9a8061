r"""Reads logs for ShiViz: an event, and on the next line its host and its vector clock; GoVector swaps the two.

ShiViz's own expression is `(?<event>.*)\n(?<host>\S*) (?<clock>{.*})`; GoVector writes the host first. Users
give another one with `--pattern`, in ShiViz's syntax; groups `kind` and `message`, if there are any, name them.
An expression in the first line of a file is not run unless it is the usual one: it could take for ever.
"""

import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from precede.core.errors import BadInput
from precede.files.lines import BadRow, shown
from precede.files.rejects import Reject
from precede.witness.foreign.events import Context, Event, Item, Lines, counted, event_of

EVENT_FIRST: Final = r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"
HOST_FIRST: Final = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)"
MOST_MATCHED: Final = 1 << 14
"""The most characters of a record that an expression of the user is tried on."""
_MOST_SECONDS: Final = 60.0
_MOST_LINES: Final = 20


def read_shiviz(lines: Lines, context: Context) -> Iterator[Item]:
    """Yield the events of a log for ShiViz."""
    return _read(lines, context, EVENT_FIRST)


def read_govector(lines: Lines, context: Context) -> Iterator[Item]:
    """Yield the events of a log that GoVector wrote."""
    return _read(lines, context, HOST_FIRST)


def _read(lines: Lines, context: Context, usual: str) -> Iterator[Item]:
    rows = ((number, line) for number, line in lines if line.strip())
    if context.pattern is not None:
        height, parse = _matching(context.pattern, context.counts.file)
    else:
        height, parse = 2, _event_first if usual == EVENT_FIRST else _host_first
    return _records(_without_header(rows, usual, context), height, parse, context)


def _event_first(record: str) -> Iterable[Event]:
    event, _, who = record.partition("\n")
    return [_pair(event, who)]


def _host_first(record: str) -> Iterable[Event]:
    who, _, event = record.partition("\n")
    return [_pair(event, who)]


def _pair(event: str, who: str) -> Event:
    """Read an event, and its host and clock."""
    host, _, clock = who.strip().partition(" ")
    if not (clock.startswith("{") and clock.endswith("}")):
        raise BadRow(f"no host with a vector clock: {shown(who)}")
    return event_of(host, event, clock)


def _matching(pattern: str, file: str) -> tuple[int, Callable[[str], Iterable[Event]]]:
    """Return how many lines a record has, and the function that reads one with the expression of the user."""
    try:
        expression = re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", pattern))
    except (re.error, OverflowError, RecursionError) as error:
        raise BadInput(f"--pattern {shown(pattern)}: {error}") from None
    missing = [name for name in ("host", "clock") if name not in expression.groupindex]
    if missing or not {"event", "kind"} & set(expression.groupindex):
        raise BadInput(f"--pattern: no group named {(missing or ['event'])[0]!r}")
    height = pattern.count(r"\n") + 1
    if height > _MOST_LINES:
        raise BadInput(f"--pattern: a record of more than {_MOST_LINES} lines")
    spent = [0.0, 0.0]

    def read(record: str) -> Iterable[Event]:
        if len(record) > MOST_MATCHED:
            raise BadRow(f"a record of more than {MOST_MATCHED:,} characters")
        begun = time.process_time()
        match = expression.match(record)
        spent[0] += time.process_time() - begun
        spent[1] += 1
        if spent[0] > _MOST_SECONDS and spent[0] > 0.01 * spent[1]:
            raise BadInput(
                f"{file}: --pattern took {spent[0]:.0f} s for {spent[1]:.0f} records; not read further"
            )
        if match is None:
            raise BadRow(f"no match: {shown(record)}")
        fields = match.groupdict()
        what = fields.get("kind") or fields.get("event") or ""
        return [event_of(fields["host"] or "", what, fields["clock"], fields.get("message"))]

    return height, read


def _records(
    rows: Iterator[tuple[int, str]], height: int, parse: Callable[[str], Iterable[Event]], context: Context
) -> Iterator[Item]:
    """Yield the events of records of several lines. After a bad record the next one begins one line later."""
    window: deque[tuple[int, str]] = deque()
    for row in rows:
        window.append(row)
        if len(window) < height:
            continue
        record = "\n".join(line for _, line in window)
        items = list(counted(window[0][0], context.counts, parse, record))
        yield from items
        if isinstance(items[0], Reject):
            window.popleft()
        else:
            window.clear()
    for number, line in window:
        context.counts.rows_read += 1
        yield context.counts.reject(number, f"no record: {shown(line)}")


def _without_header(rows: Iterator[tuple[int, str]], usual: str, context: Context) -> Iterator[tuple[int, str]]:
    """Yield the rows without the expression that a file for ShiViz may begin with."""
    for place, (number, line) in enumerate(rows):
        if place == 0 and "(?<" in line:
            if context.pattern is None and line.strip() != usual:
                raise BadInput(
                    f"{context.counts.file}:{number}: begins with an expression of its own; "
                    "if you trust it, give it with --pattern"
                )
            continue
        yield number, line
