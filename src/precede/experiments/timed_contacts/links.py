"""One direction of a contact: the messages that the peer lacks, in the order of their transfer."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from mypy_extensions import i64

from precede.experiments.contact_worlds.carrier import ContactLink
from precede.experiments.timed_contacts.carried import Carried
from precede.experiments.timed_contacts.marks import Marks
from precede.experiments.timed_contacts.ranked import Ranked

if TYPE_CHECKING:
    from precede.experiments.timed_contacts.carrier import Carrier


@final
class Link(ContactLink):
    """What a node sends to a peer while a contact lasts.

    As an event it is the end of the transfer of `in_flight`. The queue has serial numbers of messages. Like the
    one of `epidemic.links.Link` it may have messages that the peer has received meanwhile; `lacked` has those
    that are still to be sent. It is None until the peer has sent its summary.
    """

    __slots__ = (
        "_queue",
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
        self._queue = Ranked()

    def enqueue(self, rank: i64, serial: i64) -> None:
        """Queue a message: smaller ranks go first, equal ranks in the order of queueing."""
        self._queue.add(rank, serial)

    def take(self) -> i64:
        """Remove the first message of the queue and return its serial number; -1 if the queue is empty."""
        return self._queue.take()
