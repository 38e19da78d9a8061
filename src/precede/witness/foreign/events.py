"""What a converter yields: the events of a foreign log; and how it reads lines, names and clocks.

A converter is a function of the lines of a file and a `Context`. It yields each event with the line it is in,
and a reject for each row that it cannot use. `by_line` makes a converter from a function that reads one line.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from precede.files.lines import BadRow, data_lines, name_of, shown
from precede.files.rejects import Reject, RowCounts

Clock: TypeAlias = Mapping[str, int]
"""A vector clock: how many events of each node are in the past, the event itself included."""

Lines: TypeAlias = Iterable[tuple[int, str]]

MOST_CLOCK_ENTRIES: Final = 10_000
_LARGEST: Final = (1 << 63) - 1
_ENTRY: Final = re.compile(r"([^:=]+)[:=]\s*(\d+)")
SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "node": ("node", "host", "process", "process_id", "processId", "pid"),
    "kind": ("kind", "event", "type"),
    "message": ("message", "message_id", "messageId", "msg", "id"),
    "clock": ("clock", "vector_clock", "vectorClock", "vc", "VCString"),
}
"""The names under which a field is looked for, unless --columns names it."""


class Event(NamedTuple):
    """An event at a node. `kind` is the log's own word; `message` is None if the event is about none."""

    node: str
    kind: str
    message: str | None = None
    clock: Clock | None = None


class Context(Struct):
    """What a converter needs beside the lines: counts, the name of the file, and the options of the user."""

    counts: RowCounts
    node: str = ""
    columns: Mapping[str, str] = {}
    pattern: str | None = None


Item: TypeAlias = tuple[int, Event] | Reject
Converter: TypeAlias = Callable[[Lines, Context], Iterator[Item]]


def by_line(parse: Callable[[str, Context], Iterable[Event]]) -> Converter:
    """Return a converter for a format in which every line is a row. `parse` raises BadRow for a bad one."""

    def convert(lines: Lines, context: Context) -> Iterator[Item]:
        for number, line in data_lines(lines):
            yield from counted(number, context.counts, parse, line, context)

    return convert


def counted(
    line: int, counts: RowCounts, parse: Callable[..., Iterable[Event]], *arguments: Any
) -> Iterator[Item]:
    """Yield the events of one row, or a reject if `parse` raises BadRow about it. The row is counted."""
    counts.rows_read += 1
    try:
        events = list(parse(*arguments))
    except BadRow as error:
        yield counts.reject(line, str(error))
        return
    counts.rows_kept += 1
    for event in events:
        yield line, event


def json_object(text: str) -> dict[str, Any]:
    """Return the JSON object that a text is. Raise BadRow for any other text."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        raise BadRow(f"not a JSON object: {shown(text)}") from None


def event_of(node: str, what: str, clock: Any, message: str | None = None) -> Event:
    """Return an event from its fields, checked.

    Without a message, the first word of `what` is the kind and its last word is the message.
    """
    words = what.split()
    if message is None and len(words) > 1:
        what, message = words[0], words[-1]
    return Event(
        name_of(node),
        name_of(what.strip()),
        None if message is None else name_of(message),
        None if clock in (None, "") else clock_of(clock),
    )


def event_of_fields(fields: Mapping[str, Any], columns: Mapping[str, str]) -> Event:
    """Return an event from fields by name: those that `columns` names, else those of `SYNONYMS`."""
    values = {ours: fields.get(name) for ours, name in places(fields, columns).items()}
    for ours in ("node", "kind"):
        if values.get(ours) in (None, ""):
            raise BadRow(f"no {ours}")
    node, kind, message = (values.get(ours) for ours in ("node", "kind", "message"))
    for value in (node, kind, message):
        if isinstance(value, (dict, list, float, bool)):
            raise BadRow(f"not a name: {shown(str(value))}")
    return event_of(str(node), str(kind), values.get("clock"), None if message in (None, "") else str(message))


def places(names: Iterable[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Return which of the names is which of our fields."""
    known = set(names)
    fields = {}
    for ours, synonyms in SYNONYMS.items():
        candidates = (columns[ours],) if ours in columns else synonyms
        name = next((name for name in candidates if name in known), None)
        if name is not None:
            fields[ours] = name
    return fields


def clock_of(value: Any) -> Clock:
    """Return a vector clock: an object, text with one, or text such as `a:1 b:2`. Raise BadRow for others."""
    if isinstance(value, str):
        value = json_object(value) if value.lstrip().startswith("{") else _entries(value)
    if not isinstance(value, dict):
        raise BadRow(f"not a vector clock: {shown(str(value))}")
    if len(value) > MOST_CLOCK_ENTRIES:
        raise BadRow(f"a vector clock of more than {MOST_CLOCK_ENTRIES:,} entries")
    for name, count in value.items():
        if type(count) is not int or not 0 <= count <= _LARGEST:
            raise BadRow(f"not a count in a vector clock: {shown(str(count))}")
        name_of(name)
    return value


def _entries(text: str) -> dict[str, int]:
    """Return the entries of a clock written as `a:1 b:2` or `a=1;b=2`."""
    entries = {}
    for part in re.split(r"[;,\s]+", text.strip()):
        match = _ENTRY.fullmatch(part) if len(part) < 300 else None
        if match is None:
            raise BadRow(f"not a vector clock: {shown(text)}")
        entries[match[1]] = int(match[2])
    return entries
