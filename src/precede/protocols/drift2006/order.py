"""When a DRIFT node may deliver (drift2006, Figure 3 `delivery`, section 4.4), and when TOF would have.

The paper computes READY over all pending messages and sorts it. As section 4.4 observes, it is enough to look
at the pending message with the lowest timestamp. For that one we remember one source whose clock is too low,
and look again when this clock has risen. `uts <= its` is right although timestamps can be equal: a usable entry
stands for messages that are here, and the next message of that source is strictly later.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from mypy_extensions import mypyc_attr

from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.protocols.drift2006.packets import Flood
from precede.protocols.drift2006.seen import Seen
from precede.protocols.floods.stream import StreamId

Placed: TypeAlias = tuple[int, NodeId, int, int, Flood, Instant]
"""A flood by its place in the total order (timestamp, source, serial, number), and when it arrived."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Pending:
    """A heap of the floods that are not known to be safe yet, by their place in the order."""

    def __init__(self, seen: Seen) -> None:
        self.heap: list[Placed] = []
        self._seen = seen
        self._blocked_at = -1
        self._layout = 0

    def push(self, flood: Flood, now: Instant) -> None:
        heappush(self.heap, (flood.timestamp, flood.source, flood.serial, flood.number, flood, now))

    def pop_safe(self) -> Placed | None:
        """Remove and return the first flood in the order if nothing earlier can still come, else None."""
        seen, heap = self._seen, self.heap
        if not heap:
            seen.stop_watching()
            return None
        timestamp = heap[0][0]
        unchanged = timestamp == self._blocked_at and not seen.ripe and self._layout == seen.layout
        if unchanged and seen.usable_timestamp(seen.watched) < timestamp:
            return None
        if seen.blocks(timestamp):
            self._blocked_at = timestamp
            self._layout = seen.layout
            return None
        self._blocked_at = -1
        return heappop(heap)

    def remove(self, unwanted: Callable[[Flood], bool]) -> list[Flood]:
        """Remove the floods for which `unwanted` returns True. Return them in the total order."""
        removed = sorted(placed for placed in self.heap if unwanted(placed[4]))
        if removed:
            self.heap = [placed for placed in self.heap if not unwanted(placed[4])]
            heapify(self.heap)
        return [placed[4] for placed in removed]

    def __len__(self) -> int:
        return len(self.heap)


@mypyc_attr(allow_interpreted_subclasses=True)
class Shadow:
    """What TOF would deliver in the same run: Lamport's rule, clocks from sources' own floods (section 2.3).

    The paper does not say whether a TOF node uses its own clock; we do, because Figure 3 keeps it in Seen.
    """

    def __init__(self) -> None:
        self._heap: list[Placed] = []
        self._clocks: dict[StreamId, int] = {}
        self._watched: StreamId | None = None

    def set_sources(self, sources: tuple[StreamId, ...], first_clock: Callable[[StreamId], int]) -> None:
        """Replace the set of sources; `first_clock` gives the clock with which a new one begins."""
        self._clocks = {id: self._clocks[id] if id in self._clocks else first_clock(id) for id in sources}
        self._watched = None

    def push(self, flood: Flood) -> None:
        self.clock((flood.source, flood.serial), flood.timestamp)
        heappush(self._heap, (flood.timestamp, flood.source, flood.serial, flood.number, flood, 0))

    def clock(self, id: StreamId, timestamp: int) -> None:
        """Raise a source's clock to a timestamp that the source itself wrote, in a message or a dummy."""
        if id in self._clocks:
            self._clocks[id] = max(self._clocks[id], timestamp)

    def pop_safe(self) -> Flood | None:
        """Remove and return the first flood if Lamport's rule would deliver it now, else None."""
        if not self._heap:
            return None
        timestamp = self._heap[0][0]
        clocks = self._clocks
        if self._watched is not None and clocks[self._watched] < timestamp:
            return None
        self._watched = next((id for id, clock in clocks.items() if clock < timestamp), None)
        return heappop(self._heap)[4] if self._watched is None else None

    def __len__(self) -> int:
        return len(self._heap)
