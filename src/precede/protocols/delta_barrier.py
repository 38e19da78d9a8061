"""The causal barrier of delta_causal in its *multi* form (guidec2021, section V; error E4 of our reading).

It holds predecessors `(stream, number, deadline)` of the next own message. The rule it keeps: whatever lies in
this node's causal past and may still be alive somewhere is covered by an entry that follows it (or is it) and
has no earlier deadline. The paper keeps one entry per source; that is not enough when a later message of a
source lives shorter than an earlier one, so earlier ones stand beside it while they outlive it.
"""

from __future__ import annotations

from typing import TypeAlias

from precede.core.instants import Instant
from precede.protocols.streams import Stream

Predecessor: TypeAlias = tuple[Stream, int, Instant]
Barrier: TypeAlias = tuple[Predecessor, ...]


class DeltaBarrier:
    """`latest` has one entry per stream; `outliving` the earlier ones that live longer (mostly empty)."""

    __slots__ = ("latest", "outliving", "prune")

    def __init__(self, prune: bool) -> None:
        self.prune = prune
        self.latest: dict[Stream, Predecessor] = {}
        self.outliving: dict[tuple[Stream, int], Predecessor] = {}

    def delivered(self, entry: Predecessor, barrier: Barrier) -> None:
        """A message was delivered: it covers its barrier, except for what outlives it."""
        stream, _, deadline = entry
        latest = self.latest
        for predecessor in barrier:
            if predecessor[2] > deadline:
                self.keep(predecessor)
            elif self.prune:
                known = latest.get(predecessor[0])
                if known is not None and known[1] <= predecessor[1] and known[2] <= deadline:
                    del latest[predecessor[0]]
                if self.outliving:
                    self.outliving.pop(predecessor[:2], None)
        known = latest.get(stream)
        if known is not None and known[2] > deadline:
            self.outliving[stream, known[1]] = known
        latest[stream] = entry

    def keep(self, entry: Predecessor) -> None:
        """An entry that must stand, unless a later message of its stream lives as long."""
        stream, number, deadline = entry
        known = self.latest.get(stream)
        if known is None or known[1] < number:
            if known is not None and known[2] > deadline:
                self.outliving[stream, known[1]] = known
            self.latest[stream] = entry
        elif known[1] > number and known[2] < deadline:
            self.outliving[stream, number] = entry

    def broadcast(self, entry: Predecessor) -> None:
        """An own message was sent with all of this as its barrier: only what outlives it still counts."""
        deadline = entry[2]
        self.latest = {stream: known for stream, known in self.latest.items() if known[2] > deadline}
        if self.outliving:
            self.outliving = {key: known for key, known in self.outliving.items() if known[2] > deadline}
        self.delivered(entry, ())

    def forget(self, until: Instant) -> None:
        """Drop what has expired by every clock: deadlines up to `until`."""
        self.latest = {stream: known for stream, known in self.latest.items() if known[2] > until}
        if self.outliving:
            self.outliving = {key: known for key, known in self.outliving.items() if known[2] > until}

    def entries(self) -> Barrier:
        """What the next own message names."""
        if self.outliving:
            return (*self.latest.values(), *self.outliving.values())
        return tuple(self.latest.values())

    def last_deadline(self) -> Instant:
        """The latest deadline it names, or 0."""
        return max((entry[2] for entry in self.entries()), default=0)

    def __len__(self) -> int:
        return len(self.latest) + len(self.outliving)
