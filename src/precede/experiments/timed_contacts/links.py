"""One direction of a contact: the messages that the peer lacks, in the order of their transfer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from precede.experiments.contact_worlds.carrier import ContactLink
from precede.experiments.timed_contacts.carried import Carried
from precede.experiments.timed_contacts.marks import Marks

if TYPE_CHECKING:
    from precede.experiments.timed_contacts.carrier import Carrier

_SERIAL_BITS: Final = 32
_SERIAL: Final = (1 << _SERIAL_BITS) - 1


@final
class Link(ContactLink):
    """What a node sends to a peer while a contact lasts.

    As an event it is the end of the transfer of `in_flight`. The queue is a heap of ranks, and of entries: the
    place in the order of queueing, and the serial number of the message. Like `epidemic.links.Link` it may hold
    messages that the peer has received meanwhile; `lacked` has those that are still to be sent. It is None
    until the peer has sent its summary.
    """

    __slots__ = (
        "_entries",
        "_length",
        "_queued",
        "_ranks",
        "in_flight",
        "lacked",
        "summary_bytes",
        "up",
    )

    def __init__(self, owner: Carrier, peer: Carrier) -> None:
        super().__init__(owner, peer)
        self.up = True
        self.in_flight: Carried | None = None
        self.lacked: Marks | None = None
        self.summary_bytes = 0
        self._ranks = vec[i64]()
        self._entries = vec[i64]()
        self._length: i64 = 0
        self._queued: i64 = 0

    def enqueue(self, rank: i64, serial: i64) -> None:
        """Queue a message: smaller ranks go first, equal ranks in the order of queueing."""
        self._queued += 1
        entry = self._queued << _SERIAL_BITS | serial
        place = self._length
        if place == len(self._ranks):
            self._ranks = append(self._ranks, rank)
            self._entries = append(self._entries, entry)
        self._length = place + 1
        ranks, entries = self._ranks, self._entries
        while place > 0:
            above = (place - 1) >> 1
            if ranks[above] < rank or (ranks[above] == rank and entries[above] < entry):
                break
            ranks[place] = ranks[above]
            entries[place] = entries[above]
            place = above
        ranks[place] = rank
        entries[place] = entry

    def take(self) -> i64:
        """Remove the first message of the queue and return its serial number; -1 if the queue is empty."""
        if self._length == 0:
            return -1
        ranks, entries = self._ranks, self._entries
        first = entries[0] & _SERIAL
        end = self._length - 1
        self._length = end
        rank, entry = ranks[end], entries[end]
        place: i64 = 0
        below: i64 = 1
        while below < end:
            least, earlier = ranks[below], entries[below]
            other = below + 1
            if other < end and (ranks[other] < least or (ranks[other] == least and entries[other] < earlier)):
                below = other
                least, earlier = ranks[below], entries[below]
            if rank < least or (rank == least and entry < earlier):
                break
            ranks[place] = least
            entries[place] = earlier
            place = below
            below = 2 * place + 1
        ranks[place] = rank
        entries[place] = entry
        return first
