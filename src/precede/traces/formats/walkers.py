"""Reads KTH walkers: `t create id x y z`, `t setdest id x y z speed t_arrival`, `t destroy id`; t in seconds.

A person is present from create to destroy, and stands before the first `setdest` and after each arrival. A new
`setdest` before arrival replaces the old one from the current position. A person without destroy is present
until the trace ends.
"""

from collections.abc import Iterable, Iterator, Sequence

from precede.core.instants import Instant
from precede.files.lines import BadRow, data_lines, name_of, shown
from precede.traces.lines import coordinate, instant, number
from precede.traces.records import Nodes, Row, Summary
from precede.traces.waypoints import Walker


def read_walkers(lines: Iterable[tuple[int, str]], summary: Summary) -> Iterator[Row]:
    """Yields segments as people turn or leave, and rejects; memory holds one motion per person."""
    nodes = Nodes(summary)
    walkers: dict[str, Walker] = {}
    latest: dict[str, Instant] = {}
    last: Instant | None = None
    for line, text in data_lines(lines):
        words = text.split()
        summary.rows_read += 1
        try:
            if len(words) < 3:
                raise BadRow("too few fields")
            at, event, name = instant(words[0]), words[1], name_of(words[2])
            walker = walkers.get(name)
            if at < latest.get(name, at):
                raise BadRow("time out of order for this node")
            rows, end = _event(event, words, at, name, walker, walkers)
        except BadRow as error:
            yield summary.reject(line, str(error))
            continue
        summary.rows_kept += 1
        nodes.add(name)
        latest[name] = at
        last = max(at, end) if last is None else max(last, at, end)
        yield from rows
    for walker in walkers.values():
        assert last is not None
        summary.note("people never destroyed, present until the trace ends")
        yield from walker.until(last)


def _event(
    event: str, words: list[str], at: Instant, name: str, walker: Walker | None, walkers: dict[str, Walker]
) -> tuple[Sequence[Row], Instant]:
    """Apply one line; returns the segments it completes, and the instant at which its motion ends."""
    if event == "create":
        if walker is not None:
            raise BadRow("create of a node that is there")
        if len(words) < 5:
            raise BadRow("too few fields")
        walkers[name] = Walker(name, at, coordinate(words[3], "x"), coordinate(words[4], "y"))
        return [], at
    if walker is None:
        raise BadRow(f"{event if event in ('setdest', 'destroy') else 'event'} of a node that is not there")
    if event == "destroy":
        del walkers[name]
        return walker.until(at), at
    if event != "setdest":
        raise BadRow(f"unknown event: {shown(event)}")
    if len(words) < 7:
        raise BadRow("too few fields")
    x, y = coordinate(words[3], "x"), coordinate(words[4], "y")
    speed = number(words[6], "speed")
    if speed < 0:
        raise BadRow("negative speed")
    arrival = instant(words[7]) if len(words) > 7 else None
    done = walker.until(at)
    if arrival is None or arrival <= at:
        return done, walker.head_for(x, y, speed)
    walker.go(x, y, arrival)
    return done, arrival
