"""The event queue of a world with timed transfers: it has the ends of these as machine words.

Most events of such a world are ends of transfers, and few transfers are under way at a time. As objects in
buckets they took a quarter of the engine's instructions.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from precede.experiments.timed_contacts.links import Link
from precede.experiments.timed_contacts.ranked import Ranked
from precede.sim.queue import SHIFT, Event, EventQueue

_NEVER: Final = (1 << 62) - 1


@final
class TransferQueue(EventQueue):
    """Gives all events in the order of `EventQueue`: by `when`, and of equal ones the earlier inserted first.

    `_ends` has the ends of transfers by `when`, with the place of the link in `_links`. If another event with
    the same `when` is inserted later, they move in front of it, among the other events. So of an end in `_ends`
    and another event with the same `when`, the other event is the earlier one. No other is before `_others`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._ends = Ranked()
        self._whens: vec[i64] = vec[i64]()
        self._links: list[Link | None] = []
        self._free_places = vec[i64]()
        self._free: i64 = 0
        self._others: i64 = _NEVER
        self._ended = 0

    def begin(self, link: Link, when: i64) -> None:
        """Insert the end of a link's transfer."""
        if self._free == 0:
            place: i64 = len(self._links)
            self._links.append(link)
            self._whens = append(self._whens, when)
            self._free_places = append(self._free_places, 0)
        else:
            self._free -= 1
            place = self._free_places[self._free]
            self._links[place] = link
            self._whens[place] = when
        self._ends.add(when, place)

    def next_when(self, limit: i64) -> i64:
        """Return when the next transfer ends, if that is the next of all events and due; else -1."""
        if self._ends.is_empty():
            return -1
        when = self._ends.first_rank()
        if when > limit:
            return -1
        if when >= self._others:
            if self.open(when):
                return -1
            self.note_others()
        return when

    def take_transfer(self) -> Link:
        """Remove the next end of a transfer and return its link."""
        self._ended += 1
        return self._take()

    def note_others(self) -> None:
        """Find out when the next other event is. Call it when one was taken."""
        if self.place < len(self.current):
            self._others = self.current[self.place].when
        else:
            self._others = self._order[0] << SHIFT if self._order else _NEVER

    def _take(self) -> Link:
        place = self._ends.take()
        link = self._links[place]
        assert link is not None
        self._links[place] = None
        self._whens[place] = -1
        self._free_places[self._free] = place
        self._free += 1
        return link

    def insert(self, event: Event) -> None:
        when: i64 = event.when
        place: i64 = 0
        places: i64 = len(self._links)
        while place < places:
            if self._whens[place] == when:
                self._move_behind_others(when)
                break
            place += 1
        super().insert(event)
        self._others = min(self._others, when)

    def _move_behind_others(self, when: i64) -> None:
        """Move the transfers that end at this instant to the other events, behind those of this instant."""
        earlier: list[Link] = []
        while self._ends.first_rank() < when:
            at = self._ends.first_rank()
            link = self._take()
            link.when = at
            earlier.append(link)
        while not self._ends.is_empty() and self._ends.first_rank() == when:
            link = self._take()
            link.when = when
            super().insert(link)
        for link in earlier:
            self.begin(link, link.when)

    @property
    def taken(self) -> int:
        return self._opened - (len(self.current) - self.place) + self._ended

    def is_waiting(self) -> bool:
        return not self._ends.is_empty() or super().is_waiting()

    def __len__(self) -> int:
        return len(self._ends) + super().__len__()
