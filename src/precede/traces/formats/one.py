"""Reads The ONE's events: contacts (`time CONN a b up|down`) and messages (`time C id from to size`).

Fields are separated by tabs or spaces. One file may have contacts and messages. Real files have errors: an `up`
of a pair that is up, a `down` of a pair that is not, a time before the pair's last one, and a contact without
length (both its rows) are rejected. A contact that was never closed ends with the trace, and is noted. The
trace ends with the last row that is not rejected, or with the last `up` without a `down`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import Instant
from precede.files.lines import BadRow, name_of, shown
from precede.files.rejects import Reject
from precede.traces.lines import instant, number
from precede.traces.records import MAX_PAIRS, ContactRow, MessageRow, Nodes, Row, Summary, in_order

_MAX_SIZE: Final = 2**62


class _Pair(Struct):
    """The last contact of a pair (open while `end` is None), and the one `before`, until this has a length."""

    start: Instant
    end: Instant | None
    line: int
    before: _Pair | None = None

    def rows(self, pair: tuple[str, str]) -> Iterator[Row]:
        if self.end is not None:
            yield ContactRow(*pair, self.start, self.end)


class _Contacts:
    """The state of all pairs so far; `last` is the end of the trace so far."""

    def __init__(self, summary: Summary) -> None:
        self.summary = summary
        self.nodes = Nodes(summary)
        self.pairs: dict[tuple[str, str], _Pair] = {}
        self.last: Instant | None = None

    def event(self, line: int, at: Instant, a: str, b: str, up: bool) -> Iterator[Row]:
        """Apply an `up` or `down` of a pair; yields contacts that are certain now, and rejects."""
        if a == b:
            raise BadRow(f"a node in contact with itself: {a}")
        pair = in_order(a, b)
        state = self.pairs.get(pair)
        since = None if state is None else (state.start if state.end is None else state.end)
        if since is not None and at < since:
            raise BadRow("time before the pair's last")
        if up:
            if state is not None and state.end is None:
                raise BadRow("up of a pair that is up")
            self._up(line, at, pair, state)
        else:
            if state is None or state.end is not None:
                raise BadRow("down of a pair that is not up")
            yield from self._down(line, at, pair, state)

    def _up(self, line: int, at: Instant, pair: tuple[str, str], state: _Pair | None) -> None:
        if state is not None and state.end == at:
            self.summary.note("contacts merged into the one before that they touch")
            self.summary.rows_kept += 1
            state.end = None
            return
        if len(self.pairs) >= MAX_PAIRS and state is None:
            raise BadInput(f"{self.summary.file}: more than {MAX_PAIRS:,} pairs")
        self.summary.rows_kept += 1
        self.pairs[pair] = _Pair(at, None, line, state)

    def _down(self, line: int, at: Instant, pair: tuple[str, str], state: _Pair) -> Iterator[Row]:
        if at == state.start:
            if state.before is None:
                del self.pairs[pair]
            else:
                self.pairs[pair] = state.before
            self.summary.rows_kept -= 1
            yield self.summary.reject(state.line, "contact without length")
            yield self.summary.reject(line, "contact without length")
            return
        self.summary.rows_kept += 1
        self.extend(at)
        state.end = at
        if state.before is not None:
            yield from state.before.rows(pair)
            state.before = None
        for name in pair:
            self.nodes.add(name)

    def extend(self, until: Instant) -> None:
        self.last = until if self.last is None else max(self.last, until)

    def finish(self) -> Iterator[Row]:
        """Yield the remaining contacts: open ones end with the trace, and are rejected if they began there."""
        for state in self.pairs.values():
            if state.end is None:
                self.extend(state.start)
        for pair, state in self.pairs.items():
            if state.before is not None:
                yield from state.before.rows(pair)
            end = state.end
            if end is None:
                assert self.last is not None
                if self.last <= state.start:
                    self.summary.rows_kept -= 1
                    yield self.summary.reject(state.line, "contact never closed, begun as the trace ends")
                    continue
                end = self.last
                self.summary.note("contacts never closed, ended with the trace")
                for name in pair:
                    self.nodes.add(name)
            yield ContactRow(*pair, state.start, end)


def read_one_events(content: Iterable[tuple[int, str]], summary: Summary) -> Iterator[Row]:
    """Yields contacts, messages and rejects, line by line."""
    contacts = _Contacts(summary)
    for line, text in content:
        summary.rows_read += 1
        try:
            yield from _event(line, text.split(), contacts)
        except BadRow as error:
            yield summary.reject(line, str(error))
    yield from contacts.finish()


def _event(line: int, words: list[str], contacts: _Contacts) -> Iterator[Row | Reject]:
    """Apply one line. Yields its message, contacts that are certain now, and rejects; raises BadRow."""
    if len(words) < 2:
        raise BadRow("too few fields")
    at = instant(words[0])
    kind = words[1].upper()
    if kind == "CONN":
        if len(words) < 5:
            raise BadRow("too few fields")
        way = words[4].lower()
        if way not in ("up", "down"):
            raise BadRow(f"neither up nor down: {shown(words[4])}")
        yield from contacts.event(line, at, name_of(words[2]), name_of(words[3]), way == "up")
    elif kind == "C":
        if len(words) < 6:
            raise BadRow("too few fields")
        size = number(words[5], "size")
        if not 0 <= size <= _MAX_SIZE:
            raise BadRow(f"size out of range: {shown(words[5])}")
        row = MessageRow(name_of(words[2]), name_of(words[3]), name_of(words[4]), at, int(size))
        contacts.nodes.add(row.source)
        contacts.nodes.add(row.destination)
        contacts.summary.rows_kept += 1
        contacts.extend(at)
        yield row
    else:
        raise BadRow(f"unknown event: {shown(words[1])}")
