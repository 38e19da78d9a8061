"""Reads ns-2 movement: `$node_(3) set X_ 816.9` and `$ns_ at 3.6 "$node_(3) setdest x y speed"`.

X_, Y_ and Z_ are in any order, before the node first moves. Speed 0 means stay. A new `setdest` before arrival
replaces the old one from the node's current position. A node without `set` starts at its first destination. All
nodes are present from instant 0 until the last motion of the trace ends (`whole`), or each from its first
`setdest` until its own last motion ends (`motion`: vehicles that drive into the map and out of it, as in the
exports of SUMO). `$god_` lines are skipped.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

from precede.core.instants import Instant
from precede.files.lines import BadRow, data_lines, shown
from precede.traces.formats.plain_columns import (
    NameColumn,
    PlainBlock,
    PlainBlocks,
    are_coordinates,
    instants_of,
)
from precede.traces.lines import coordinate, instant, number
from precede.traces.records import Nodes, Row, Summary
from precede.traces.waypoints import Walker

Presence: TypeAlias = Literal["whole", "motion"]
_Move: TypeAlias = tuple[Instant, str, float, float, float]
_NODE: Final = r"\$node_\(([^()\s]{1,40})\)"
_QUOTED_NODE: Final = re.compile(rf'"{_NODE}')
_SET: Final = re.compile(rf"{_NODE}\s+set\s+([XYZ])_\s+(\S+)\s*;?")
_AT: Final = re.compile(rf'\$ns_?\s+at\s+(\S+)\s+"\s*{_NODE}\s+setdest\s+(\S+)\s+(\S+)\s+(\S+?)\s*"\s*;?')
_OTHER: Final = re.compile(rb"\n(?!\$ns_ at )[^\n]*")


class _Trace:
    """The state of all nodes: initial positions of those that have not moved, walkers for the others."""

    def __init__(self, summary: Summary, presence: Presence) -> None:
        self.summary = summary
        self.whole = presence == "whole"
        self.nodes = Nodes(summary)
        self.places: dict[str, dict[str, float]] = {}
        self.walkers: dict[str, Walker] = {}

    def place(self, node: str, axis: str, value: float) -> None:
        if node in self.walkers:
            raise BadRow("set of a node that has moved")
        self.nodes.add(node)
        self.places.setdefault(node, {})[axis] = value

    def walker(self, node: str, x: float, y: float, at: Instant = 0) -> Walker:
        """Return the walker of a node. A new one starts at the initial position, else at its destination."""
        if node not in self.walkers:
            self.nodes.add(node)
            place = self.places.pop(node, None)
            if place is None:
                self.summary.note("nodes without an initial position, set to their first destination")
                place = {"X": x, "Y": y}
            self.walkers[node] = Walker(node, 0 if self.whole else at, place.get("X", 0.0), place.get("Y", 0.0))
        return self.walkers[node]

    def setdest(self, at: Instant, node: str, x: float, y: float, speed: float) -> Sequence[Row]:
        """Send a node to a destination. Returns the segments that the node completed before."""
        if at < 0:
            raise BadRow("time before zero")
        if speed < 0:
            raise BadRow("negative speed")
        walker = self.walkers.get(node)
        if walker is None:
            walker = self.walker(node, x, y, at)
        elif at < walker.at:
            raise BadRow("time out of order for this node")
        done = walker.until(at)
        walker.head_for(x, y, speed)
        return done

    def finish(self) -> Iterator[Row]:
        """Yield the last segments of all nodes, until the end of the trace or of their own motion."""
        if not self.whole:
            if self.places:
                self.summary.note("nodes that never move, left out", len(self.places))
                self.summary.nodes -= len(self.places)
            for walker in self.walkers.values():
                yield from walker.until(walker.arrival or walker.at)
            return
        for node in list(self.places):
            if len({"X", "Y"} & self.places[node].keys()) == 1:
                self.summary.note("nodes with only one of X_ and Y_, the other taken as 0")
            self.walker(node, 0.0, 0.0)
        # A replaced motion never arrives, so only the last one of each node counts.
        end = max((walker.arrival or walker.at for walker in self.walkers.values()), default=0)
        for walker in self.walkers.values():
            yield from walker.until(end)


def read_ns2(lines: Iterable[tuple[int, str]], summary: Summary, presence: Presence = "whole") -> Iterator[Row]:
    """Yields segments and rejects; memory holds one motion per node."""
    trace = _Trace(summary, presence)
    blocks = PlainBlocks(lines, 8, (3, 4), (2, 5, 6, 7), _rows, " ", _moves_in)
    for line, text in data_lines(lines):
        yield from _row(line, text, trace)
        for rows in blocks.after(line):
            for place, row in rows:
                yield from _row(place, row, trace)
    yield from trace.finish()


def _row(line: int, row: str | _Move, trace: _Trace) -> Sequence[Row]:
    """Apply one row to the trace. Returns the segments that it completes, or a reject."""
    summary = trace.summary
    try:
        if isinstance(row, tuple):
            segments = trace.setdest(*row)
        elif "$god_" in row:
            summary.note("$god_ lines skipped")
            return ()
        else:
            segments = _line(row, trace)
    except BadRow as error:
        summary.rows_read += 1
        return [summary.reject(line, str(error))]
    summary.rows_read += 1
    summary.rows_kept += 1
    return segments


def _line(text: str, trace: _Trace) -> Sequence[Row]:
    """Apply one line to the trace. Returns the segments that it completes; raises BadRow."""
    if placed := _SET.fullmatch(text):
        trace.place(placed[1], placed[2], coordinate(placed[3], f"{placed[2]}_"))
        return ()
    if going := _AT.fullmatch(text):
        x, y = coordinate(going[3], "x"), coordinate(going[4], "y")
        return trace.setdest(instant(going[1]), going[2], x, y, number(going[5], "speed"))
    raise BadRow(f"not understood: {shown(text)}")


def _moves_in(block: bytes) -> bytes | None:
    """Return the `setdest` lines of a block without the quote at their end; None if a line is irregular."""
    lines = b"\n" + block[:-1]
    others = _OTHER.findall(lines)
    if not all(other.startswith(b"\n$") for other in others):
        return None
    table = _OTHER.sub(b"", lines)[1:] + b"\n" if others else block
    return table.replace(b'"\n', b"\n") if table.count(b'"\n') == table.count(b"\n") else None


def _rows(block: PlainBlock) -> Iterator[tuple[int, str | _Move]] | None:
    """Return the rows of a block with their lines, each `setdest` parsed; None if one is irregular."""
    nodes, verbs = block.names
    matches = [_QUOTED_NODE.fullmatch(name) for name in nodes.names]
    names = [match[1] for match in matches if match and "$god_" not in match[1]]
    at, x, y, speed = instants_of(block.numbers[0]), *block.numbers[1:]
    if len(names) < len(matches) or verbs.names != ["setdest"] or at is None or not are_coordinates(x, y):
        return None
    node = NameColumn(names, nodes.codes).each()
    moves = zip(at.tolist(), node, x.tolist(), y.tolist(), speed.tolist(), strict=True)
    has_others = block.rows < block.data.count(b"\n")
    return enumerate(_all_rows(block, moves) if has_others else moves, block.first)


def _all_rows(block: PlainBlock, moves: Iterator[_Move]) -> Iterator[str | _Move]:
    for line in block.data.splitlines():
        yield next(moves) if line.startswith(b"$ns_ at ") else line.decode().strip()
