"""The memory of delta_causal: the paper's `co_delivered` and `c_barrier` in one (guidec2021, section V).

For each stream a `Top` records how far it is delivered here, and whether its last delivered message is in the
causal barrier of the next own message. One lookup answers both "is this predecessor delivered?" and "which
entry does this delivery remove?".

The paper keeps one barrier entry per source. That is not enough when a later message of a source expires before
an earlier one (error E4 of our reading); we keep such earlier ones in `outliving`, because of this rule: every
message in the node's causal past that may still be alive somewhere is covered by a barrier entry that follows
it (or is it) and expires no earlier.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, final

import msgspec
from mypy_extensions import i64

from precede.core.effects import Effect, Persist
from precede.core.identity import MessageNumber
from precede.core.instants import Instant
from precede.core.node import Saved
from precede.protocols.layered.parsed_envelopes import MessageName, ParsedEnvelope
from precede.protocols.layered.saved_state import saved_under
from precede.protocols.layered.streams import Stream, stream_in, top_key

Predecessor: TypeAlias = tuple[Stream, MessageNumber, Instant]
Barrier: TypeAlias = tuple[Predecessor, ...]


@final
class Top:
    """The last delivered message of a stream: all messages up to `number` are delivered or expired here.

    By `until` all of them have expired. `name`, `number` and `deadline` are those of the last message;
    `in_barrier` is True while it is an entry of the next barrier.
    """

    __slots__ = ("deadline", "in_barrier", "name", "number", "until")

    def __init__(self, name: MessageName, until: Instant) -> None:
        self.name = name
        self.number: i64 = name.number
        self.deadline: i64 = name.deadline
        self.until: i64 = until
        self.in_barrier = True

    def advance(self, name: MessageName) -> None:
        """Record that a later message of the stream is delivered, and put it into the barrier."""
        self.name = name
        self.number = name.number
        self.deadline = name.deadline
        self.in_barrier = True
        self.until = max(self.until, name.deadline)


@final
class Past:
    """The last deliveries by stream, and the barrier entries besides them in `outliving`, by `MessageName.key`.

    If all messages have the same lifetime, `outliving` is mostly empty.
    With `prune` a delivery removes the barrier entries that its message covers. The paper does not do this.
    `named` counts the tops that are entries of the next barrier. `_by_place` has the tops of streams that have
    a place (`MessageName.place`): a barrier of 30 entries is looked up there in a fifth of the time.
    """

    __slots__ = ("_by_place", "named", "outliving", "prune", "tops")

    def __init__(self, prune: bool) -> None:
        self.prune = prune
        self.named = 0
        self.tops: dict[Stream, Top] = {}
        self._by_place: list[Top | None] = []
        self.outliving: dict[Any, Predecessor] = {}

    def deliver(self, name: MessageName, barrier: list[MessageName]) -> None:
        """Record a delivery. Keep the entries of its barrier that outlive it; with `prune`, drop the others."""
        self.deliver_after(name, barrier, [self.top_of(entry) for entry in barrier])

    def deliver_after(self, name: MessageName, barrier: list[MessageName], tops: list[Top | None]) -> None:
        """Do the same; `tops` are those of the streams in the barrier.

        A barrier of messages with different lifetimes is long: with 12 entries each, not looking up the tops
        again and looking up `outliving` by one number took a quarter off the instructions of `arrive_batch`.
        """
        prune, deadline, outliving = self.prune, name.deadline, self.outliving
        for position, entry in enumerate(barrier):
            top = tops[position]
            if entry.deadline > deadline:
                self._keep(entry, top)
            elif prune:
                if top is not None and top.number <= entry.number and top.deadline <= deadline:
                    self.cover(top)
                if outliving and entry.key in outliving:
                    del outliving[entry.key]
        self.follow(self.top_of(name), name)

    def follow(self, top: Top | None, name: MessageName) -> None:
        """Record the delivery of a message after `top`, the last one of its stream."""
        if top is None:
            self.begin(name)
            return
        if top.deadline > name.deadline and top.in_barrier:
            self.outliving[top.name.key] = top.name.entry
        self.advance(top, name)

    def begin(self, name: MessageName) -> None:
        """Record the first delivery of a stream, and put the message into the barrier."""
        self._add(Top(name, name.deadline))

    def _add(self, top: Top) -> None:
        name, place, by_place = top.name, top.name.place, self._by_place
        self.tops[name.stream] = top
        self.named += 1
        if place >= len(by_place):
            by_place += [None] * (place + 1 - len(by_place))
        if place >= 0:
            by_place[place] = top

    def top_of(self, name: MessageName) -> Top | None:
        """Return the last delivery of a message's stream."""
        place = name.place
        if place < 0:
            return self.tops.get(name.stream)
        return self._by_place[place] if place < len(self._by_place) else None

    def advance(self, top: Top, name: MessageName) -> None:
        """Record that a later message of a stream is delivered, and put it into the barrier."""
        if not top.in_barrier:
            self.named += 1
        top.advance(name)

    def cover(self, top: Top) -> None:
        """Remove the last message of a stream from the barrier, because a later message covers it."""
        if top.in_barrier:
            self.named -= 1
            top.in_barrier = False

    def _keep(self, entry: MessageName, top: Top | None) -> None:
        """Keep an entry for the next barrier, unless a later one of its stream has no earlier deadline."""
        if top is not None and top.number == entry.number:
            if not top.in_barrier:
                self.named += 1
            top.in_barrier = True
        elif top is None or top.number < entry.number or not top.in_barrier or top.deadline < entry.deadline:
            self.outliving[entry.key] = entry.entry

    def broadcast(self, name: MessageName) -> None:
        """Record an own message, whose barrier named every entry. Keep only entries with a later deadline."""
        deadline = name.deadline
        for top in self.tops.values():
            if not self.named:
                break
            if top.deadline <= deadline:
                self.cover(top)
        if self.outliving:
            self.outliving = {key: entry for key, entry in self.outliving.items() if entry[2] > deadline}
        self.deliver(name, [])

    def forget(self, before: Instant) -> list[Stream]:
        """Remove entries with deadlines up to `before`, expired by every clock. Return the removed streams."""
        forgotten = [stream for stream, top in self.tops.items() if top.until <= before]
        for stream in forgotten:
            top = self.tops.pop(stream)
            self.cover(top)
            if top.name.place >= 0:
                self._by_place[top.name.place] = None
        if self.outliving:
            self.outliving = {key: entry for key, entry in self.outliving.items() if entry[2] > before}
        return forgotten

    def barrier(self, before: Instant) -> Barrier:
        """Return the barrier of the next own message, without entries whose deadline is not after `before`."""
        entries = [top.name.entry for top in self.tops.values() if top.in_barrier and top.deadline > before]
        entries += [entry for entry in self.outliving.values() if entry[2] > before]
        return tuple(entries)

    def barrier_size(self) -> int:
        return len(self.outliving) + self.named

    def saved_top(self, stream: Stream, barrier: Barrier) -> Persist:
        """Return the effect that persists a stream's last delivery. `restore` rebuilds the memory from it."""
        top = self.tops[stream]
        return Persist(top_key(stream), (top.number, top.deadline, top.until, barrier))

    def restore(self, saved: Saved) -> None:
        """Rebuild the registries after a restart.

        The last delivered message of a stream covers all earlier ones (papers/guidec2021/reading.md).
        """
        deliveries: list[tuple[MessageName, Barrier]] = []
        for key, value in saved_under(saved, "top"):
            number, deadline, until, barrier = msgspec.convert(value, tuple[int, int, int, Barrier])
            stream = stream_in(key)
            name = MessageName((stream, number, deadline))
            self._add(Top(name, until))
            deliveries.append((name, barrier))
        for name, barrier in deliveries:
            self.deliver(name, [MessageName(entry) for entry in barrier])


def barrier_of(parsed: ParsedEnvelope) -> list[MessageName]:
    """Return the barrier of a message. It is parsed once for all nodes that receive the message."""
    if parsed.barrier is None:
        parsed.barrier = [MessageName(entry) for entry in parsed.stamp]
        for entry in parsed.barrier:
            if entry.deadline > parsed.deadline:
                parsed.outlived = True
    return parsed.barrier


def deliver_simple(
    past: Past,
    contents: list[ParsedEnvelope],
    position: int,
    waited_for: Mapping[Any, object],
    now: Instant,
    effects: list[Effect],
) -> int:
    """Deliver messages from a position on, and return the position of the first that is not a simple case.

    In a simple case every predecessor is delivered or has expired, no entry of the barrier has a later deadline
    than the message, and no message waits for this one. It does what `Past.deliver` does, written out for
    speed: a contact brings a newcomer hundreds of messages, and nearly all of them are simple.
    """
    further: list[Top] | None = None
    at: i64 = now
    while position < len(contents) and not past.outliving:
        parsed = contents[position]
        number, deadline, name = parsed.number, parsed.deadline, parsed.name
        last = past.top_of(name)
        if deadline <= at or (last is not None and (number <= last.number or last.deadline > deadline)):
            return position
        if waited_for and (number > (0 if last is None else last.number) + 1 or name.key in waited_for):
            return position
        covered: Top | None = None
        barrier = barrier_of(parsed)
        if parsed.outlived:
            return position
        for entry in barrier:
            top = past.top_of(entry)
            if top is None:
                if entry.deadline > at:
                    break
            elif top.number <= entry.number:
                if top.number < entry.number and entry.deadline > at:
                    break
                if top.in_barrier and top.deadline <= deadline:
                    if covered is None:
                        covered = top
                    elif further is None:
                        further = [top]
                    else:
                        further.append(top)
        else:
            if covered is not None:
                past.cover(covered)
                if further is not None:
                    for top in further:
                        past.cover(top)
                    further = None
            if last is None:
                past.begin(name)
            else:
                past.advance(last, name)
            effects.append(parsed.deliver)
            position += 1
            continue
        return position
    return position
