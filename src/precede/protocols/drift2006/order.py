"""When a DRIFT node may deliver (drift2006, Figure 3 `delivery`, section 4.4), and when TOF would have.

The paper computes READY over all pending messages and sorts it. As section 4.4 observes, it is enough to look
at the pending message with the lowest timestamp; and of that one it is enough to remember one source whose
clock it waits for, and to look again when that clock has risen. `uts <= its` is right although timestamps can
be equal: an entry that may be used stands for messages in hand, and what follows it is strictly later.
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
from precede.protocols.floods.reliable_floods import StreamId

Placed: TypeAlias = tuple[int, NodeId, int, int, Flood, Instant]
"""A flood by its place in the total order: timestamp, then source (and its serial and number); since when."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Pending:
    """Floods in hand that are not known to be safe yet, by their place in the order."""

    def __init__(self, seen: Seen) -> None:
        self.heap: list[Placed] = []
        self._seen = seen
        self._waits_at = -1
        self._layout = 0

    def push(self, flood: Flood, now: Instant) -> None:
        heappush(self.heap, (flood.timestamp, flood.source, flood.serial, flood.number, flood, now))

    def pop_safe(self) -> Placed | None:
        """The first in the order, if nothing earlier can still come; None while it must wait."""
        seen, heap = self._seen, self.heap
        if not heap:
            seen.rest()
            return None
        timestamp = heap[0][0]
        unchanged = timestamp == self._waits_at and not seen.ripe and self._layout == seen.layout
        if unchanged and seen.known(seen.watched) < timestamp:
            return None
        if seen.waits(timestamp):
            self._waits_at = timestamp
            self._layout = seen.layout
            return None
        self._waits_at = -1
        return heappop(heap)

    def remove(self, unwanted: Callable[[Flood], bool]) -> list[Flood]:
        """Take out what a view change has cut off; returns it in its order."""
        removed = sorted(placed for placed in self.heap if unwanted(placed[4]))
        if removed:
            self.heap = [placed for placed in self.heap if not unwanted(placed[4])]
            heapify(self.heap)
        return [placed[4] for placed in removed]

    def __len__(self) -> int:
        return len(self.heap)


@mypyc_attr(allow_interpreted_subclasses=True)
class Shadow:
    """TOF in the same run: Lamport's rule, where only a source's own floods show its clock (section 2.3).

    A node knows its own clock under either rule; the paper does not say so, but Figure 3 keeps it in Seen.
    """

    def __init__(self) -> None:
        self._heap: list[Placed] = []
        self._clocks: dict[StreamId, int] = {}
        self._watched: StreamId | None = None

    def set_sources(self, sources: tuple[StreamId, ...], clock: Callable[[StreamId], int]) -> None:
        """The sources that count now; of a new one, the clock it begins with."""
        self._clocks = {id: self._clocks[id] if id in self._clocks else clock(id) for id in sources}
        self._watched = None

    def push(self, flood: Flood) -> None:
        id = (flood.source, flood.serial)
        if id in self._clocks:
            self._clocks[id] = max(self._clocks[id], flood.timestamp)
        heappush(self._heap, (flood.timestamp, flood.source, flood.serial, flood.number, flood, 0))

    def clock(self, id: StreamId, timestamp: int) -> None:
        """A source's clock by its own word: this node's, or that of one that floods a dummy."""
        if id in self._clocks:
            self._clocks[id] = max(self._clocks[id], timestamp)

    def pop_safe(self) -> Flood | None:
        """The first that Lamport's rule would deliver now."""
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
