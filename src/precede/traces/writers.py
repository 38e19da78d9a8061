"""Writes trace files: contact lists as CSV and as The ONE's `CONN` lines, movement for The ONE and for ns-2.

Times are written in seconds with all digits, so a file that is read back gives the same values.
"""

from collections.abc import Iterable, Iterator
from math import hypot
from pathlib import Path

from precede.core.errors import BadInput
from precede.core.instants import SECOND, Instant
from precede.traces.contacts import ContactList
from precede.traces.mobility import Mobility
from precede.traces.records import MessageRow


def write_contacts(contacts: ContactList, path: str | Path) -> None:
    """Write contacts as CSV `a,b,start,end` in seconds, with a header."""
    rows = (
        f"{csv_field(a)},{csv_field(b)},{seconds_text(s)},{seconds_text(e)}" for a, b, s, e in contacts.rows()
    )
    _write(path, "a,b,start,end", rows)


def write_presence(contacts: ContactList, path: str | Path) -> None:
    """Write presence as CSV `node,enter,leave` in seconds, with a header."""
    rows = (
        f"{csv_field(name)},{seconds_text(enter)},{seconds_text(leave)}"
        for name, enter, leave in contacts.presence_rows()
    )
    _write(path, "node,enter,leave", rows)


def write_conn(contacts: ContactList, path: str | Path) -> None:
    """Write contacts as The ONE's `time CONN a b up|down`, by time; at one instant ends come before starts."""
    events: list[tuple[Instant, bool, str, str]] = []
    for a, b, start, end in contacts.rows():
        events += [(start, True, a, b), (end, False, a, b)]
    events.sort(key=lambda event: event[:2])
    rows = (f"{seconds_text(at)}\tCONN\t{a}\t{b}\t{'up' if up else 'down'}" for at, up, a, b in events)
    _write(path, None, rows)


def write_one_movement(mobility: Mobility, path: str | Path) -> None:
    """Write The ONE's movement file: bounds, then `time id x y` by time.

    The format has no absence: a reader sees a node that was absent move in a straight line.
    """
    s = mobility.segments
    if len(s.node) == 0:
        raise BadInput(f"{path}: no movement to write")
    samples = {
        (t, n): (x, y)
        for ts, xs, ys in ((s.t0_us, s.x0, s.y0), (s.t1_us, s.x1, s.y1))
        for n, t, x, y in zip(s.node.tolist(), ts.tolist(), xs.tolist(), ys.tolist(), strict=True)
    }
    bounds = [seconds_text(int(s.t0_us.min())), seconds_text(int(s.t1_us.max()))]
    for low, high in ((s.x0, s.x1), (s.y0, s.y1)):
        bounds += [_metres(min(low.min(), high.min())), _metres(max(low.max(), high.max()))]
    rows = (
        f"{seconds_text(t)} {mobility.names[n]} {_metres(x)} {_metres(y)}"
        for (t, n), (x, y) in sorted(samples.items())
    )
    _write(path, " ".join(bounds), rows)


def write_ns2(mobility: Mobility, path: str | Path) -> None:
    """Write ns-2 movement: initial positions, then a `setdest` for each motion. Nodes are indices of `names`.

    ns-2 has no absence and no arrival time: an absent node stands still, and the speed determines the arrival.
    """
    s = mobility.segments
    lines: list[str] = []
    seen = -1
    for n, t0, x0, y0, t1, x1, y1 in zip(*(column.tolist() for column in s), strict=True):
        if n != seen:
            lines += [f"$node_({n}) set X_ {_metres(x0)}", f"$node_({n}) set Y_ {_metres(y0)}"]
            seen = n
        way = hypot(x1 - x0, y1 - y0)
        if way > 0:
            speed = repr(way / ((t1 - t0) / SECOND))
            lines.append(
                f'$ns_ at {seconds_text(t0)} "$node_({n}) setdest {_metres(x1)} {_metres(y1)} {speed}"'
            )
    _write(path, None, iter(lines))


def write_messages(messages: Iterable[MessageRow], path: str | Path) -> None:
    ordered = sorted(messages, key=lambda message: message.at_us)
    rows = (f"{seconds_text(m.at_us)}\tC\t{m.id}\t{m.source}\t{m.destination}\t{m.size_bytes}" for m in ordered)
    _write(path, None, rows)


def seconds_text(at: Instant) -> str:
    """Return an instant in seconds, with as many decimals as needed.

    >>> seconds_text(1_500_000), seconds_text(-20), seconds_text(3_000_000)
    ('1.5', '-0.00002', '3')
    """
    whole, rest = divmod(abs(at), SECOND)
    text = f"{whole}.{rest:06d}".rstrip("0").rstrip(".")
    return f"-{text}" if at < 0 else text


def _metres(value: float) -> str:
    text = repr(float(value))
    return text.removesuffix(".0")


def csv_field(text: str) -> str:
    quoted = text.replace('"', '""')
    return f'"{quoted}"' if "," in text or '"' in text or text.startswith("#") else text


def _write(path: str | Path, header: str | None, rows: Iterator[str]) -> None:
    with Path(path).open("w", encoding="utf-8", newline="\n") as out:
        if header is not None:
            out.write(header + "\n")
        for row in rows:
            out.write(row + "\n")
