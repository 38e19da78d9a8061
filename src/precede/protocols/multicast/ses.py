"""`ses`: causal multicast with pairs of destination and vector time (Schiper, Eggli, Sandoz 1989).

A rival of PRS (prs1997, section 3). A message carries its own vector time and, for each destination, the vector
time that this destination must have reached. It was published for one destination; for a multicast the receiver
learns destination(M) and inserts the pair of every other destination.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

from precede.protocols.multicast.destination_vectors import DestinationVectorRule, rival_entry
from precede.protocols.multicast.packets import INTEGER_BYTES, MulticastPacket, Stamp
from precede.protocols.multicast.process import Process
from precede.protocols.multicast.vectors import EMPTY, SparseVector


class SesStamp(Stamp, frozen=True, gc=False):
    """The paper's t_M and V_M: the vector time of the message, and a vector time for each destination."""

    time: SparseVector
    pairs: dict[Process, SparseVector]


class SesPacket(MulticastPacket, frozen=True, gc=False):
    kind: ClassVar[str] = "ses"
    stamp: SesStamp


class SesRule(DestinationVectorRule):
    """The local vector time, which counts sends, in `reached`, and the pairs V_P in `vectors`."""

    packet: ClassVar[type[MulticastPacket]] = SesPacket

    def stamp(self, number: int, destinations: tuple[Process, ...], population: int) -> Sequence[Stamp]:
        self.reached[self.me] = number
        time = dict(self.reached)
        pairs = len(self.vectors)
        integers = pairs * (population + 1) + population
        entries = (pairs + 1) * population
        stamp = SesStamp(integers, entries, INTEGER_BYTES * integers, time, dict(self.vectors))
        self.vectors.update(dict.fromkeys(destinations, time))
        return (stamp,)

    def needs(self, stamp: SesStamp) -> Mapping[Process, int]:
        """Return the vector time in the pair of this process, which the local time must have reached."""
        return stamp.pairs.get(self.me, EMPTY)

    def deliver(
        self, source: Process, number: int, destinations: tuple[Process, ...], stamp: SesStamp
    ) -> Iterable[Process]:
        for to, time in stamp.pairs.items():
            if to != self.me:
                self.raise_to(to, time)
        for to in destinations:
            if to != self.me:
                self.raise_to(to, stamp.time)
        reached = self.reached
        advanced = [other for other, sends in stamp.time.items() if reached.get(other, 0) < sends]
        for other in advanced:
            reached[other] = stamp.time[other]
        return advanced

    def sizes(self) -> Mapping[str, int]:
        return {"pairs": len(self.vectors), "time_entries": len(self.reached)}


ENTRY: Final = rival_entry(
    "ses",
    "causal order with pairs of destination and vector time (Schiper, Eggli, Sandoz): rival of PRS",
    SesRule,
)
