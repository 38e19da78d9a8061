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
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from precede.core.instants import SECOND, Duration, Instant, format_duration
from precede.files import rejects
from precede.traces.intervals import Floats, Ints
from precede.traces.records import MAX_NODES, Nodes, Row, SegmentRow, Summary


class Samples(NamedTuple):
    """The samples of consecutive lines. `codes` are places in `names`, distinct and in order of appearance."""

    first_line: int
    names: list[str]
    codes: Ints
    at: Ints
    x: Floats
    y: Floats


class _Last(Struct):
    """A node's last sample. `joined`: a segment ends there. `way`: 1 if time ascends, -1 if not, 0 unknown."""

    at: Instant
    x: float
    y: float
    line: int
    joined: bool
    way: int


class Tracks:
    """Turns samples into segments and rejects. Counts rows as read, and as kept or rejected."""

    def __init__(self, summary: Summary, gap: Duration | None = None, max_speed: float | None = None) -> None:
        self._summary = summary
        self._gap = gap
        self._limit = None if max_speed is None else max_speed / SECOND
        self._tracks: dict[str, _Last] = {}
        self._nodes = Nodes(summary)

    def add(self, line: int, node: str, at: Instant, x: float, y: float) -> Iterator[Row]:
        """Add one sample. Yields the segment that it ends, or a reject; nothing for a track's first sample."""
        self._summary.rows_read += 1
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

    def add_block(self, samples: Samples) -> Iterator[Row]:
        """Add samples as `add` does. Those of a regular block are added at once (`_is_regular`)."""
        names = samples.names
        lasts = {place: self._tracks[name] for place, name in enumerate(names) if name in self._tracks}
        joined = _after(lasts, samples)
        order = np.argsort(joined.codes, kind="stable")
        is_step = joined.codes[order[1:]] == joined.codes[order[:-1]]
        sample_before = np.full(len(order), -1)
        sample_before[order[1:][is_step]] = order[:-1][is_step]
        after = np.flatnonzero(sample_before >= 0)
        before = sample_before[after]
        if not self._is_regular(lasts, joined, before, after):
            nodes = map(names.__getitem__, samples.codes.tolist())
            columns = (column.tolist() for column in samples[3:])
            for line, sample in enumerate(zip(nodes, *columns, strict=True), samples.first_line):
                yield from self.add(line, *sample)
            return
        self._summary.rows_read += len(samples.at)
        self._summary.rows_kept += len(samples.at)
        for name, index in zip(names, order[np.append(~is_step, True)].tolist(), strict=True):
            self._nodes.add(name)
            at, x, y = (column[index].item() for column in joined[3:])
            has_step = bool(sample_before[index] >= 0)
            self._tracks[name] = _Last(at, x, y, joined.first_line + index, has_step, int(has_step))
        nodes = map(names.__getitem__, joined.codes[after].tolist())
        ends = (column[index].tolist() for index in (before, after) for column in joined[3:])
        yield from map(SegmentRow._make, zip(nodes, *ends, strict=True))

    def _is_regular(self, lasts: dict[int, _Last], samples: Samples, before: Ints, after: Ints) -> bool:
        """Does every step go forward in time, within the limits? It leads from `before` to `after`."""
        if self._summary.rows_rejected > rejects.MAX_REJECTS:  # `check_rejects` needs the rows read by then
            return False
        steps = samples.at[after] - samples.at[before]
        if (steps <= 0).any() or any(last.way < 0 for last in lasts.values()):
            return False
        if self._gap is not None and (steps > self._gap).any():
            return False
        if self._limit is not None:
            ways = np.hypot(samples.x[after] - samples.x[before], samples.y[after] - samples.y[before])
            if (ways / steps > 0.999 * self._limit).any():  # `add` decides with the last digit of its own hypot
                return False
        return self._summary.nodes + len(samples.names) <= MAX_NODES

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


def _after(lasts: dict[int, _Last], samples: Samples) -> Samples:
    """Return samples with the last ones of their tracks put before them; the keys are codes."""
    at, x, y = (
        np.concatenate((np.array([getattr(last, axis) for last in lasts.values()], column.dtype), column))
        for axis, column in zip(("at", "x", "y"), samples[3:], strict=True)
    )
    codes = np.concatenate((np.array(list(lasts), np.int64), samples.codes))
    return Samples(samples.first_line - len(lasts), samples.names, codes, at, x, y)
