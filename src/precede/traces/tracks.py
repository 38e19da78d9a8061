"""From samples of positions to straight segments: one track per node, in bounded memory.

The samples of a node are sorted by time, oldest or newest first; its first two samples show which. A sample
against that order, or at the same instant as the one before, is rejected. A gap longer than the limit ends one
presence and begins another, because an absent node does not move in a straight line. A step faster than the
speed limit is a jump: its sample is rejected. If the sample before the jump is the first of its track, that one
is rejected instead, so that a bad first sample does not cost the whole track. A sample with no other sample
within the gap limit does not show motion and is rejected.
"""

from collections.abc import Iterator
from math import hypot

from msgspec import Struct

from precede.core.instants import SECOND, Duration, Instant, format_duration
from precede.traces.records import Nodes, Row, SegmentRow, Summary


class _Last(Struct):
    """A node's last sample. `joined`: a segment ends there. `way`: 1 if time ascends, -1 if not, 0 unknown."""

    at: Instant
    x: float
    y: float
    line: int
    joined: bool
    way: int


class Tracks:
    """Turns samples into segments and rejects. Counts rows as kept or rejected, not as read."""

    def __init__(self, summary: Summary, gap: Duration | None = None, max_speed: float | None = None) -> None:
        self._summary = summary
        self._gap = gap
        self._limit = None if max_speed is None else max_speed / SECOND
        self._tracks: dict[str, _Last] = {}
        self._nodes = Nodes(summary)

    def add(self, line: int, node: str, at: Instant, x: float, y: float) -> Iterator[Row]:
        """Add one sample. Yields the segment that it ends, or a reject; nothing for a track's first sample."""
        last = self._tracks.get(node)
        if last is None:
            self._nodes.add(node)
            self._begin(line, node, at, x, y, 0)
            return
        step = at - last.at
        if step == 0:
            yield self._summary.reject(line, "same instant as the node's row before")
            return
        way = 1 if step > 0 else -1
        if last.way not in (0, way):
            yield self._summary.reject(line, "time out of order for this node")
            return
        if self._gap is not None and abs(step) > self._gap:
            yield from self._end(last)
            self._summary.note(f"gaps of more than {format_duration(self._gap)}, where a presence ends")
            self._begin(line, node, at, x, y, way)
            return
        if self._limit is not None and hypot(x - last.x, y - last.y) > self._limit * abs(step):
            if last.joined:
                yield self._summary.reject(line, "jump faster than the speed limit")
            else:
                self._summary.rows_kept -= 1
                yield self._summary.reject(last.line, "jump faster than the speed limit")
                self._begin(line, node, at, x, y, last.way)
            return
        if step > 0:
            yield SegmentRow(node, last.at, last.x, last.y, at, x, y)
        else:
            yield SegmentRow(node, at, x, y, last.at, last.x, last.y)
        self._summary.rows_kept += 1
        last.at, last.x, last.y, last.line, last.joined, last.way = at, x, y, line, True, way

    def finish(self) -> Iterator[Row]:
        """End all tracks; yields rejects for samples without another sample near in time."""
        for last in self._tracks.values():
            yield from self._end(last)

    def _begin(self, line: int, node: str, at: Instant, x: float, y: float, way: int) -> None:
        self._summary.rows_kept += 1
        self._tracks[node] = _Last(at, x, y, line, False, way)

    def _end(self, last: _Last) -> Iterator[Row]:
        if not last.joined:
            self._summary.rows_kept -= 1
            yield self._summary.reject(last.line, "single row of its node within the gap limit")
