"""Reads ns-2 movement: `$node_(3) set X_ 816.9` and `$ns_ at 3.6 "$node_(3) setdest x y speed"`.

X_, Y_ and Z_ are in any order, before the node first moves. Speed 0 means stay. A new `setdest` before arrival
replaces the old one from the node's current position. A node without `set` starts at its first destination. All
nodes are present from instant 0 until the last motion of the trace ends (`whole`), or each from its first
`setdest` until its own last motion ends (`motion`: vehicles that drive into the map and out of it, as in the
exports of SUMO). `$god_` lines are skipped.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

from precede.core.instants import Instant
from precede.files.lines import BadRow, data_lines, shown
from precede.traces.lines import coordinate, instant, number
from precede.traces.records import Nodes, Row, Summary
from precede.traces.waypoints import Walker

Presence: TypeAlias = Literal["whole", "motion"]
_SET: Final = re.compile(r"\$node_\(([^()\s]{1,40})\)\s+set\s+([XYZ])_\s+(\S+)\s*;?")
_AT: Final = re.compile(
    r"\$ns_?\s+at\s+(\S+)\s+\"\s*\$node_\(([^()\s]{1,40})\)\s+setdest\s+(\S+)\s+(\S+)\s+(\S+?)\s*\"\s*;?"
)


class _Trace:
    """The state of all nodes: initial positions of those that have not moved, walkers for the others."""

    def __init__(self, summary: Summary, presence: Presence) -> None:
        self.summary = summary
        self.whole = presence == "whole"
        self.nodes = Nodes(summary)
        self.places: dict[str, dict[str, float]] = {}
        self.walkers: dict[str, Walker] = {}
        self.end: Instant = 0

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

    def setdest(self, at: Instant, node: str, x: float, y: float, speed: float) -> Iterator[Row]:
        """Send a node to a destination. Yields the segments that the node completed before."""
        if at < 0:
            raise BadRow("time before zero")
        if speed < 0:
            raise BadRow("negative speed")
        walker = self.walkers.get(node)
        if walker is not None and at < walker.at:
            raise BadRow("time out of order for this node")
        walker = self.walker(node, x, y, at)
        done = list(walker.until(at))
        walker.head_for(x, y, speed)
        self.end = max(self.end, at)
        return iter(done)

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
        end = max([self.end, *(walker.arrival or 0 for walker in self.walkers.values())])
        for walker in self.walkers.values():
            yield from walker.until(end)


def read_ns2(lines: Iterable[tuple[int, str]], summary: Summary, presence: Presence = "whole") -> Iterator[Row]:
    """Yields segments and rejects; memory holds one motion per node."""
    trace = _Trace(summary, presence)
    for line, text in data_lines(lines):
        if "$god_" in text:
            summary.note("$god_ lines skipped")
            continue
        summary.rows_read += 1
        try:
            rows = _line(text, trace)
        except BadRow as error:
            yield summary.reject(line, str(error))
            continue
        summary.rows_kept += 1
        yield from rows
    yield from trace.finish()


def _line(text: str, trace: _Trace) -> Iterator[Row]:
    """Apply one line to the trace. Yields the segments that it completes."""
    if placed := _SET.fullmatch(text):
        trace.place(placed[1], placed[2], coordinate(placed[3], f"{placed[2]}_"))
        return iter(())
    if going := _AT.fullmatch(text):
        x, y = coordinate(going[3], "x"), coordinate(going[4], "y")
        return trace.setdest(instant(going[1]), going[2], x, y, number(going[5], "speed"))
    raise BadRow(f"not understood: {shown(text)}")
