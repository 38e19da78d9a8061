"""The memory of delta_causal: the paper's `co_delivered` and `c_barrier` in one (guidec2021, section V).

For each stream a `Top` records how far it is delivered here, and whether its last delivered message is in the
causal barrier of the next own message. One lookup answers both "is this predecessor delivered?" and "which
entry does this delivery remove?".

The paper keeps one barrier entry per source. That is not enough when a later message of a source expires before
an earlier one (error E4 of our reading); we keep such earlier ones (`Outliving`), because of this rule: every
message in the node's causal past that may still be alive somewhere is covered by a barrier entry that follows
it (or is it) and expires no earlier.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

import msgspec
from mypy_extensions import i64

from precede.core.effects import Persist
from precede.core.identity import MessageNumber
from precede.core.instants import Instant
from precede.core.node import Saved
from precede.protocols.layered.parsed_envelopes import MessageName, ParsedEnvelope
from precede.protocols.layered.saved_state import saved_under
from precede.protocols.layered.streams import Stream, stream_in, top_key

Predecessor: TypeAlias = tuple[Stream, MessageNumber, Instant]
Barrier: TypeAlias = tuple[Predecessor, ...]


@final
class Outliving:
    """A message that stays in the barrier though a later message of its stream is delivered.

    Those of one stream form a linked list; `turn` numbers all of a node, in the order in which they came.
    """

    __slots__ = ("following", "name", "turn")

    def __init__(self, name: MessageName, turn: int, following: Outliving | None) -> None:
        self.name = name
        self.turn = turn
        self.following = following


@final
class Top:
    """The last delivered message of a stream: all messages up to `number` are delivered or expired here.

    By `until` all of them have expired. `name`, `number` and `deadline` are those of the last message;
    `in_barrier` is True while it is an entry of the next barrier. `outliving` are earlier messages that are.
    """

    __slots__ = ("deadline", "in_barrier", "name", "number", "outliving", "until")

    def __init__(self, name: MessageName, until: Instant) -> None:
        self.name = name
        self.number: i64 = name.number
        self.deadline: i64 = name.deadline
        self.until: i64 = until
        self.in_barrier = True
        self.outliving: Outliving | None = None

    def advance(self, name: MessageName) -> None:
        """Record that a later message of the stream is delivered, and put it into the barrier."""
        self.name = name
        self.number = name.number
        self.deadline = name.deadline
        self.in_barrier = True
        self.until = max(self.until, name.deadline)


def _no_top() -> Top:
    top = Top(MessageName((0, -1, 0)), 0)
    top.in_barrier = False
    return top


NO_TOP: Final = _no_top()
"""Stands for the last delivery of a stream of which nothing is delivered: every message comes after it."""


@final
class Past:
    """The last deliveries by stream, and earlier messages that are barrier entries, too (`Top.outliving`).

    If all messages have the same lifetime, there are mostly none of these; `_outliving` counts them.
    With `prune` a delivery removes the barrier entries that its message covers. The paper does not do this.
    `named` counts the tops that are entries of the next barrier. `_by_place` has the tops of streams that have
    a place (`MessageName.place`): every entry of every received barrier is looked up there. `_in_order` has all
    tops in the order of `tops`.
    """

    __slots__ = ("_by_place", "_in_order", "_outliving", "_turn", "named", "prune", "tops")

    def __init__(self, prune: bool) -> None:
        self.prune = prune
        self.named = 0
        self.tops: dict[Stream, Top] = {}
        self._by_place: list[Top] = []
        self._in_order: list[Top] = []
        self._outliving = 0
        self._turn = 0

    def first_lacked(self, barrier: list[MessageName], begin: i64, now: Instant) -> i64:
        """Return the position of an entry from `begin` on that is neither delivered nor expired; -1 if none."""
        by_place = self._by_place
        places: i64 = len(by_place)
        entries: i64 = len(barrier)
        position: i64 = begin
        at: i64 = now
        while position < entries:
            entry = barrier[position]
            place = entry.place
            top = by_place[place] if 0 <= place < places else self._unplaced(entry)
            if top.number < entry.number and entry.deadline > at:
                return position
            position += 1
        return -1

    def deliver(self, name: MessageName, barrier: list[MessageName], last: Top) -> None:
        """Record a delivery after `last`. Barrier entries that outlive it stay; with `prune`, the others go.

        A message is delivered after its predecessors that are alive: an entry that outlives it is delivered.
        """
        by_place, prune = self._by_place, self.prune
        places: i64 = len(by_place)
        deadline = name.deadline
        for entry in barrier:
            place, entry_number = entry.place, entry.number
            top = by_place[place] if 0 <= place < places else self._unplaced(entry)
            if entry.deadline > deadline:
                if top.number == entry_number:
                    if not top.in_barrier:
                        self.named += 1
                        top.in_barrier = True
                elif top.number > entry_number and (not top.in_barrier or top.deadline < entry.deadline):
                    self._outlive(top, entry)
            elif prune:
                if top.in_barrier and top.number <= entry_number and top.deadline <= deadline:
                    self.named -= 1
                    top.in_barrier = False
                if top.outliving is not None:
                    self._cover_outliving(top, entry_number)
        self.follow(last, name)

    def _outlive(self, top: Top, name: MessageName) -> None:
        """Keep an earlier message of a stream for the next barrier."""
        number = name.number
        outliving = top.outliving
        while outliving is not None:
            if outliving.name.number == number:
                return
            outliving = outliving.following
        self._turn += 1
        self._outliving += 1
        top.outliving = Outliving(name, self._turn, top.outliving)
        top.until = max(top.until, name.deadline)  # a stream is not forgotten before all its entries

    def _cover_outliving(self, top: Top, number: i64) -> None:
        """Remove an earlier message of a stream from the barrier, if it is there."""
        before: Outliving | None = None
        outliving = top.outliving
        while outliving is not None:
            if outliving.name.number == number:
                self._outliving -= 1
                if before is None:
                    top.outliving = outliving.following
                else:
                    before.following = outliving.following
                return
            before = outliving
            outliving = outliving.following

    def follow(self, last: Top, name: MessageName) -> None:
        """Record the delivery of a message after `last`, and put it into the barrier."""
        if last is NO_TOP:
            self._add(Top(name, name.deadline))
            return
        if last.in_barrier:
            if last.deadline > name.deadline:
                self._outlive(last, last.name)
        else:
            self.named += 1
        last.advance(name)

    def _add(self, top: Top) -> None:
        name, place, by_place = top.name, top.name.place, self._by_place
        self.tops[name.stream] = top
        self._in_order.append(top)
        self.named += 1
        if place >= len(by_place):
            by_place += [NO_TOP] * (place + 1 - len(by_place))
        if place >= 0:
            by_place[place] = top

    def top_of(self, name: MessageName) -> Top:
        """Return the last delivery of a message's stream, or NO_TOP."""
        place = name.place
        return self._by_place[place] if 0 <= place < len(self._by_place) else self._unplaced(name)

    def _unplaced(self, name: MessageName) -> Top:
        return NO_TOP if name.place >= 0 else self.tops.get(name.stream, NO_TOP)

    def broadcast(self, name: MessageName) -> None:
        """Record an own message, whose barrier named every entry. Keep only entries with a later deadline."""
        deadline = name.deadline
        for top in self._in_order:
            if not self.named:
                break
            if top.in_barrier and top.deadline <= deadline:
                self.named -= 1
                top.in_barrier = False
        self._expire_outliving(deadline)
        self.follow(self.top_of(name), name)

    def _expire_outliving(self, before: Instant) -> None:
        """Remove the earlier messages of streams from the barrier that have deadlines up to `before`."""
        if not self._outliving:
            return
        for top in self._in_order:
            outliving, top.outliving = top.outliving, None
            while outliving is not None:
                following = outliving.following
                if outliving.name.deadline > before:
                    outliving.following = top.outliving
                    top.outliving = outliving
                else:
                    self._outliving -= 1
                outliving = following

    def forget(self, before: Instant) -> list[Stream]:
        """Remove entries with deadlines up to `before`, expired by every clock. Return the removed streams."""
        self._expire_outliving(before)
        forgotten = [top for top in self._in_order if top.until <= before]
        for top in forgotten:
            del self.tops[top.name.stream]
            if top.in_barrier:
                self.named -= 1
            if top.name.place >= 0:
                self._by_place[top.name.place] = NO_TOP
        if forgotten:
            self._in_order = [top for top in self._in_order if top.until > before]
        return [top.name.stream for top in forgotten]

    def barrier(self, before: Instant) -> Barrier:
        """Return the barrier of the next own message, without entries whose deadline is not after `before`."""
        entries = [top.name.entry for top in self._in_order if top.in_barrier and top.deadline > before]
        if self._outliving:
            outliving: list[tuple[int, Predecessor]] = []
            for top in self._in_order:
                earlier = top.outliving
                while earlier is not None:
                    if earlier.name.deadline > before:
                        outliving.append((earlier.turn, earlier.name.entry))
                    earlier = earlier.following
            entries += [entry for _, entry in sorted(outliving)]
        return tuple(entries)

    def barrier_size(self) -> int:
        return self._outliving + self.named

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
            self.deliver(name, [MessageName(entry) for entry in barrier], self.top_of(name))


def barrier_of(parsed: ParsedEnvelope) -> list[MessageName]:
    """Return the barrier of a message. It is parsed once for all nodes that receive the message."""
    if parsed.barrier is None:
        parsed.barrier = [MessageName(entry) for entry in parsed.stamp]
        for entry in parsed.barrier:
            if entry.deadline > parsed.deadline:
                parsed.outlived = True
    return parsed.barrier
