"""`rst`: causal multicast with a matrix of sent messages (Raynal, Schiper, Toueg 1991).

A rival of PRS (prs1997, section 3). The matrix counts the messages from each process to each, and is stored by
destination. RST was published for one destination; for a multicast the receiver learns destination(M) and
counts the message for every destination.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

from precede.protocols.multicast.destination_vectors import DestinationVectorRule, rival_entry
from precede.protocols.multicast.packets import INTEGER_BYTES, MulticastPacket, Stamp
from precede.protocols.multicast.process import Process
from precede.protocols.multicast.vectors import EMPTY, SparseVector


class RstStamp(Stamp, frozen=True, gc=False):
    """The matrix SENT before the message was sent, by destination and then by sender."""

    sent: dict[Process, SparseVector]


class RstPacket(MulticastPacket, frozen=True, gc=False):
    kind: ClassVar[str] = "rst"
    stamp: RstStamp


class RstRule(DestinationVectorRule):
    """`vectors` (SENT_i) counts sent messages by destination and sender, `reached` (DELIV_i) delivered ones."""

    packet: ClassVar[type[MulticastPacket]] = RstPacket

    def stamp(self, number: int, destinations: tuple[Process, ...], population: int) -> Sequence[Stamp]:
        elements = population * population
        stamp = RstStamp(elements, elements, INTEGER_BYTES * elements, dict(self.vectors))
        for to in destinations:
            counts = self.vectors.get(to, EMPTY)
            self.vectors[to] = {**counts, self.me: counts.get(self.me, 0) + 1}
        return (stamp,)

    def needs(self, stamp: RstStamp) -> Mapping[Process, int]:
        """Return how many messages of each process must be delivered here first: DELIV_i[k] >= ST_M[k, i]."""
        return stamp.sent.get(self.me, EMPTY)

    def deliver(
        self, source: Process, number: int, destinations: tuple[Process, ...], stamp: RstStamp
    ) -> Iterable[Process]:
        self.reached[source] = self.reached.get(source, 0) + 1
        for to, counts in stamp.sent.items():
            self.raise_to(to, counts)
        for to in destinations:
            self.raise_to(to, {source: stamp.sent.get(to, EMPTY).get(source, 0) + 1})
        return (source,)

    def sizes(self) -> Mapping[str, int]:
        return {"sent_counts": sum(map(len, self.vectors.values())), "delivered_entries": len(self.reached)}


ENTRY: Final = rival_entry(
    "rst", "causal order with a matrix of sent counts (Raynal, Schiper, Toueg): rival of PRS", RstRule
)
