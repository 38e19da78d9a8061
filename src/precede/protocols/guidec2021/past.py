"""What delta_causal remembers of the past: `co_delivered` and `c_barrier` in one (guidec2021, section V).

Per stream a `Top`: how far it is delivered here, and whether that last message stands in the causal barrier of
the next own message. One lookup serves both the question "is this predecessor delivered?" and the pruning.

The barrier is in *multi* form (error E4 of our reading). The rule it keeps: whatever lies in this node's causal
past and may still be alive somewhere is covered by an entry that follows it (or is it) and has no earlier
deadline. The paper keeps one entry per source; that is not enough when a later message of a source lives
shorter than an earlier one, so such earlier ones stand in `outliving`.
"""

from __future__ import annotations

from typing import TypeAlias, final

from mypy_extensions import mypyc_attr

from precede.core.instants import Instant
from precede.protocols.layered.parsed_envelopes import Named, Opened
from precede.protocols.layered.streams import Stream

Predecessor: TypeAlias = tuple[Stream, int, Instant]
Barrier: TypeAlias = tuple[Predecessor, ...]


@final
class Top:
    """Everything of a stream up to `number` is delivered or has expired here, and all of it has by `until`.

    `deadline` is that of message `number`; `named` says that it stands in the barrier, under its `name`.
    """

    __slots__ = ("deadline", "name", "named", "number", "until")

    def __init__(self, name: Named, until: Instant) -> None:
        self.name = name
        self.number = name.number
        self.deadline = name.deadline
        self.until = until
        self.named = True

    def rise(self, name: Named) -> None:
        """To the next message of its stream."""
        self.name = name
        self.number = name.number
        self.deadline = name.deadline
        self.named = True
        self.until = max(self.until, name.deadline)


@mypyc_attr(allow_interpreted_subclasses=True)
class Past:
    """`tops` by stream; `outliving` are entries beside them (mostly empty)."""

    __slots__ = ("outliving", "prune", "tops")

    def __init__(self, prune: bool) -> None:
        self.prune = prune
        self.tops: dict[Stream, Top] = {}
        self.outliving: dict[tuple[Stream, int], Predecessor] = {}

    def deliver(self, name: Named, barrier: list[Named]) -> None:
        """A message is delivered: it covers its barrier, except for what outlives it."""
        tops, prune, deadline = self.tops, self.prune, name.deadline
        for entry in barrier:
            if entry.deadline > deadline:
                self.keep(entry)
            elif prune:
                top = tops.get(entry.stream)
                if top is not None and top.number <= entry.number and top.deadline <= deadline:
                    top.named = False
                if self.outliving:
                    self.outliving.pop((entry.stream, entry.number), None)
        top = tops.get(name.stream)
        if top is None:
            tops[name.stream] = Top(name, deadline)
            return
        if top.deadline > deadline and top.named:
            self.outliving[name.stream, top.number] = top.name.entry
        top.rise(name)

    def keep(self, entry: Named) -> None:
        """An entry that must stand, unless a later message of its stream stands and lives as long."""
        top = self.tops.get(entry.stream)
        if top is not None and top.number == entry.number:
            top.named = True
        elif top is None or top.number < entry.number or not top.named or top.deadline < entry.deadline:
            self.outliving[entry.stream, entry.number] = entry.entry

    def broadcast(self, name: Named) -> None:
        """An own message was sent with all of this as its barrier: only what outlives it still counts."""
        deadline = name.deadline
        for top in self.tops.values():
            if top.deadline <= deadline:
                top.named = False
        if self.outliving:
            self.outliving = {key: entry for key, entry in self.outliving.items() if entry[2] > deadline}
        self.deliver(name, [])

    def forget(self, before: Instant) -> list[Stream]:
        """Drop what has expired by every clock: deadlines up to `before`. Says which streams are forgotten."""
        gone = [stream for stream, top in self.tops.items() if top.until <= before]
        for stream in gone:
            del self.tops[stream]
        if self.outliving:
            self.outliving = {key: entry for key, entry in self.outliving.items() if entry[2] > before}
        return gone

    def barrier(self, before: Instant) -> Barrier:
        """What the next own message names, without what has expired by every clock."""
        entries = [top.name.entry for top in self.tops.values() if top.named and top.deadline > before]
        entries += [entry for entry in self.outliving.values() if entry[2] > before]
        return tuple(entries)

    def named(self) -> int:
        """How many entries the barrier has."""
        return len(self.outliving) + [top.named for top in self.tops.values()].count(True)


def barrier_of(opened: Opened) -> list[Named]:
    """The stamp of a message, read once for all who receive it."""
    if opened.barrier is None:
        opened.barrier = [Named(entry) for entry in opened.stamp]
    return opened.barrier
