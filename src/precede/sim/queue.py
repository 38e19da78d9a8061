"""The event queue: buckets of about a millisecond, each sorted when it is reached.

An event is a packet that lands or a function to be called; its `when` is the instant and its phase in one
number. Events of one instant and phase keep the order in which they were scheduled, so one seed has one
order. The bucket that is being emptied is `current`, from `place` on; new events are inserted into it. Of a
long bucket only the beginning is emptied at a time. The buckets of the next second are in a ring, later ones
in a dictionary. What happens at the current instant goes to `soon`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final, TypeAlias, final

from mypy_extensions import mypyc_attr

from precede.core import frequent_effects
from precede.core.compiling import is_compiled
from precede.core.frequent_effects import Medium
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.eventlog.rows import MeasuredPacket

PHASE_BITS: Final = 3
LAST_PHASE: Final = 5
SHIFT: Final = 10 + PHASE_BITS
RING: Final = 1024
LONG: Final = 4096
_FEW: Final = 16
_PLACE_BITS: Final = 30 - SHIFT


@mypyc_attr(acyclic=True)
class Event:
    """Something that happens at an instant."""

    __slots__ = ("when",)

    def __init__(self, when: int) -> None:
        self.when = when


@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Landing(Event):
    """A packet reaches a node. It refers to no node or world, so garbage collection need not track it."""

    __slots__ = ("over", "packet", "sender", "to")

    def __init__(self, when: int, to: NodeId, packet: MeasuredPacket, sender: NodeId, over: Medium) -> None:
        self.when = when
        self.to = to
        self.packet = packet
        self.sender = sender
        self.over: Medium = over


@final
class Call(Event):
    """A function is called with arguments."""

    __slots__ = ("arguments", "function")

    def __init__(self, when: int, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.when = when
        self.function = function
        self.arguments = arguments


TAKEN: Final = Event(0)
"""Stands in `current` for an event that was taken out: its memory serves for the next event."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Soon:
    """Something that happens at the current instant: faster than a function with its arguments."""

    __slots__ = ()

    def happen(self) -> None:
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class EventQueue:
    """Events by instant, then phase, then order of scheduling."""

    def __init__(self) -> None:
        self.soon: deque[Soon | tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self.current: list[Event] = []
        self.place = 0
        self.ring: list[list[Event]] = [[] for _ in range(RING)]
        self.base = 0
        self._later: dict[int, list[Event]] = {}
        self._order: list[int] = []
        self._horizon = 0
        self._opened = 0
        self._sort = sorter()

    def push(self, at: Instant, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.insert(Call(at << PHASE_BITS | LAST_PHASE, function, arguments))

    def push_phase(
        self, phase: int, at: Instant, function: Callable[..., None], arguments: tuple[Any, ...]
    ) -> None:
        self.insert(Call(at << PHASE_BITS | phase, function, arguments))

    def insert(self, event: Event) -> None:
        """Adds an event after those of the same instant and phase."""
        if event.when >= self._horizon:
            self._put(event.when >> SHIFT, event)
            return
        self._opened += 1
        low, high, when = self.place, len(self.current), event.when
        while low < high:
            middle = (low + high) // 2
            if self.current[middle].when <= when:
                low = middle + 1
            else:
                high = middle
        self.current.insert(low, event)

    def _put(self, bucket: int, event: Event) -> None:
        """Adds an event to its bucket: in the ring if it is due within a second, else in the dictionary."""
        if bucket - self.base < RING:
            waiting = self.ring[bucket & RING - 1]
            if not waiting and bucket not in self._later:
                heappush(self._order, bucket)
            waiting.append(event)
        elif bucket in self._later:
            self._later[bucket].append(event)
        else:
            self._later[bucket] = [event]
            heappush(self._order, bucket)

    def open(self, limit: int) -> bool:
        """Make the next event `current[place]`. Return True if it is due by `limit` (instant and phase)."""
        if self.place < len(self.current):
            return self.current[self.place].when <= limit
        if not self._order or self._order[0] << SHIFT > limit:
            return False
        self.base = bucket = heappop(self._order)
        events = self.ring[bucket & RING - 1]
        self.ring[bucket & RING - 1] = []
        if bucket in self._later:  # these were scheduled before those in the ring
            events = self._later.pop(bucket) + events
        if len(events) > _FEW:
            events = self._sort(events, bucket << SHIFT)
        else:
            insert_each(events)
        self._horizon = (bucket + 1) << SHIFT
        if len(events) > LONG:
            self._put_back(bucket, events)
        self._opened += len(events)
        self.current = events
        self.place = 0
        return events[0].when <= limit

    def _put_back(self, bucket: int, events: list[Event]) -> None:
        """Keep only the beginning of a long bucket in `current`, so that insertions stay cheap."""
        end = LONG
        while end < len(events) and events[end].when == events[end - 1].when:
            end += 1
        if end < len(events):
            self._horizon = events[end].when
            self.ring[bucket & RING - 1] = events[end:]
            heappush(self._order, bucket)
            del events[end:]

    @property
    def taken(self) -> int:
        """Return how many events were taken out of the queue so far."""
        return self._opened - (len(self.current) - self.place)

    def is_waiting(self) -> bool:
        """Return whether any event waits. Unlike `len`, it does not visit every bucket."""
        return bool(self.soon) or self.place < len(self.current) or bool(self._order)

    def __len__(self) -> int:
        waiting = sum(map(len, self.ring)) + sum(map(len, self._later.values()))
        return len(self.soon) + len(self.current) - self.place + waiting


def insert_each(events: list[Event]) -> None:
    """Sorts a few events in place by `when` and keeps ties in order."""
    for later in range(1, len(events)):
        event, place = events[later], later
        when = event.when
        while place > 0 and events[place - 1].when > when:
            events[place] = events[place - 1]
            place -= 1
        events[place] = event


Sorter: TypeAlias = Callable[[list[Event], int], list[Event]]


def sorter() -> Sorter:
    """Return a function that does what `in_order` does."""
    if not is_compiled(frequent_effects):
        return in_order
    from precede.sim.machine_order import MachineOrder

    return MachineOrder().in_order


def in_order(events: list[Event], begin: int) -> list[Event]:
    """Sorts the events of one bucket by `when` and keeps ties in order. Small integers as keys make it fast."""
    bits = max(_PLACE_BITS, len(events).bit_length())
    keys = [(events[place].when - begin) << bits | place for place in range(len(events))]
    keys.sort()
    places = (1 << bits) - 1
    return [events[key & places] for key in keys]
