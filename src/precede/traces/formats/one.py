"""Reads The ONE's events: contacts (`time CONN a b up|down`) and messages (`time C id from to size`).

Fields are separated by tabs or spaces. One file may have contacts and messages. Real files have errors: an `up`
of a pair that is up, a `down` of a pair that is not, a time before the pair's last one, and a contact without
length (both its rows) are rejected. A contact that was never closed ends with the trace, and is noted. The
trace ends with the last row that is not rejected, or with the last `up` without a `down`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import Instant
from precede.files.lines import BadRow, name_of, shown
from precede.traces.formats.plain_columns import PlainBlock, PlainBlocks, blank_in, instants_of
from precede.traces.lines import instant, number
from precede.traces.records import MAX_PAIRS, ContactRow, MessageRow, Nodes, Row, Summary, in_order

_MAX_SIZE: Final = 2**62
_EARLY: Final = "time before the pair's last"
_IS_UP: Final = {"up": True, "down": False}


class _Pair(Struct):
    """The last contact of a pair (open while `end` is None), and the one `before`, until this has a length."""

    start: Instant
    end: Instant | None
    line: int
    before: _Pair | None = None

    def rows(self, pair: tuple[str, str]) -> Sequence[Row]:
        return [] if self.end is None else [ContactRow(*pair, self.start, self.end)]


class _Contacts:
    """The state of all pairs so far; `last` is the end of the trace so far."""

    def __init__(self, summary: Summary) -> None:
        self.summary = summary
        self.nodes = Nodes(summary)
        self.pairs: dict[tuple[str, str], _Pair] = {}
        self.last: Instant | None = None

    def add(self, rows: Iterable[tuple[int, Instant, str, str, bool]]) -> Iterator[Row]:
        """Apply each `up` or `down` of a pair; yields contacts that are certain now, and rejects."""
        for line, at, a, b, is_up in rows:
            self.summary.rows_read += 1
            try:
                if a == b:
                    raise BadRow(f"a node in contact with itself: {a}")
                if is_up:
                    self._up(line, at, in_order(a, b))
                    continue
                completed = self._down(line, at, in_order(a, b))
            except BadRow as error:
                yield self.summary.reject(line, str(error))
                continue
            if completed:
                yield from completed

    def _up(self, line: int, at: Instant, pair: tuple[str, str]) -> None:
        state = self.pairs.get(pair)
        if state is None:
            if len(self.pairs) >= MAX_PAIRS:
                raise BadInput(f"{self.summary.file}: more than {MAX_PAIRS:,} pairs")
        elif state.end is None:
            raise BadRow(_EARLY if at < state.start else "up of a pair that is up")
        elif at < state.end:
            raise BadRow(_EARLY)
        elif at == state.end:
            self.summary.note("contacts merged into the one before that they touch")
            self.summary.rows_kept += 1
            state.end = None
            return
        self.summary.rows_kept += 1
        self.pairs[pair] = _Pair(at, None, line, state)

    def _down(self, line: int, at: Instant, pair: tuple[str, str]) -> Sequence[Row]:
        """Return the contact before, which is certain now, or the rejects of a contact without length."""
        state = self.pairs.get(pair)
        if state is None or (state.end is not None and at >= state.end):
            raise BadRow("down of a pair that is not up")
        if at < state.start or state.end is not None:
            raise BadRow(_EARLY)
        before = state.before
        if at == state.start:
            if before is None:
                del self.pairs[pair]
            else:
                self.pairs[pair] = before
            self.summary.rows_kept -= 1
            return [self.summary.reject(number, "contact without length") for number in (state.line, line)]
        self.summary.rows_kept += 1
        self.extend(at)
        state.end, state.before = at, None
        if before is not None:
            return before.rows(pair)
        for name in pair:
            self.nodes.add(name)
        return ()

    def extend(self, until: Instant) -> None:
        if self.last is None or until > self.last:
            self.last = until

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


def read_one_events(content: Iterable[tuple[int, str]], summary: Summary, lines: object) -> Iterator[Row]:
    """Yields contacts, messages and rejects. `content` are the rows in the `lines` of a file."""
    contacts = _Contacts(summary)
    blocks = None
    for line, text in content:
        words = text.split()
        try:
            yield from _event(line, words, contacts)
        except BadRow as error:
            summary.rows_read += 1
            yield summary.reject(line, str(error))
        if blocks is None:
            if len(words) < 5 or words[1].upper() != "CONN":
                continue
            blocks = PlainBlocks(lines, len(words), (1, 2, 3, 4), (0,), _contact_events, blank_in(text))
        for rows in blocks.after(line):
            yield from contacts.add(rows)
    yield from contacts.finish()


def _contact_events(block: PlainBlock) -> Iterator[tuple[int, Instant, str, str, bool]] | None:
    """Return all rows of a block as line, instant, names and `up`; None if one of them is no contact."""
    kinds, one, other, ways = block.names
    at = instants_of(block.numbers[0])
    is_contact = all(kind.upper() == "CONN" for kind in kinds.names)
    if at is None or not is_contact or not all(way.lower() in _IS_UP for way in ways.names):
        return None
    up = [_IS_UP[way.lower()] for way in ways.names]
    is_up = map(up.__getitem__, ways.codes.tolist())
    return zip(block.lines, at.tolist(), one.each(), other.each(), is_up, strict=True)


def _event(line: int, words: list[str], contacts: _Contacts) -> Iterator[Row]:
    """Apply one line. Yields its message, contacts that are certain now, and rejects; raises BadRow."""
    if len(words) < 2:
        raise BadRow("too few fields")
    at = instant(words[0])
    kind = words[1].upper()
    if kind == "CONN":
        if len(words) < 5:
            raise BadRow("too few fields")
        is_up = _IS_UP.get(words[4].lower())
        if is_up is None:
            raise BadRow(f"neither up nor down: {shown(words[4])}")
        yield from contacts.add([(line, at, name_of(words[2]), name_of(words[3]), is_up)])
    elif kind == "C":
        if len(words) < 6:
            raise BadRow("too few fields")
        size = number(words[5], "size")
        if not 0 <= size <= _MAX_SIZE:
            raise BadRow(f"size out of range: {shown(words[5])}")
        row = MessageRow(name_of(words[2]), name_of(words[3]), name_of(words[4]), at, int(size))
        contacts.nodes.add(row.source)
        contacts.nodes.add(row.destination)
        contacts.summary.rows_read += 1
        contacts.summary.rows_kept += 1
        contacts.extend(at)
        yield row
    else:
        raise BadRow(f"unknown event: {shown(words[1])}")
