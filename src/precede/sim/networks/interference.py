"""The contact network with interference: nodes in range of each other share the air.

A transfer waits while another one would disturb it, or be disturbed by it: while the sender, the receiver or
one of their neighbours transmits, and while a neighbour of the sender receives (the protocol model of Gupta and
Kumar, with carrier sensing that knows of receivers too). A node has one transmitter. Waiting transfers are
tried in the order in which they began to wait. Transmissions to all neighbours and free summaries take no air.
"""

from collections.abc import Sequence
from typing import Literal

from precede.core.effects import Send
from precede.core.identity import NodeId
from precede.core.instants import Duration
from precede.sim.networks.contacts import Contact, ContactNetwork, Lane, Transmitter
from precede.sim.randomness import Distribution


class InterferingContacts(ContactNetwork):
    """Links from a list of contacts. Only transfers that do not disturb each other go on at the same time."""

    def __init__(
        self,
        contacts: Sequence[Contact],
        bandwidth: float,
        overhead: Duration,
        summaries: str = "free",
        jitter: Distribution | None = None,
    ) -> None:
        timed: Literal["timed", "free"] = "timed" if summaries == "timed" else "free"
        super().__init__(contacts, bandwidth, overhead, "node", timed, jitter)
        self._on_air: dict[NodeId, NodeId] = {}
        self._waiting: dict[NodeId, Transmitter] = {}

    def _transmit(self, transmitter: Transmitter) -> None:
        if transmitter.flying is not None or not transmitter.queue:
            return
        lane: Lane = transmitter.queue[0][0]
        if self._is_disturbed(lane.sender, lane.to):
            self._waiting.setdefault(lane.sender, transmitter)
            return
        self._waiting.pop(lane.sender, None)
        self._on_air[lane.sender] = lane.to
        super()._transmit(transmitter)

    def _is_disturbed(self, sender: NodeId, receiver: NodeId) -> bool:
        """Would a transfer that goes on disturb this one, or this one that one?"""
        if not self._on_air:
            return False
        near_sender, near_receiver = self._in_range[sender], self._in_range[receiver]
        for other_sender, other_receiver in self._on_air.items():
            if {sender, receiver} & {other_sender, other_receiver}:
                return True
            if other_sender in near_sender or other_sender in near_receiver or other_receiver in near_sender:
                return True
        return False

    def _transmitted(self, transmitter: Transmitter, flight: int) -> None:
        if transmitter.flying is not None and transmitter.flight == flight:
            self._on_air.pop(transmitter.flying[0].sender)
            super()._transmitted(transmitter, flight)
            self._try_waiting()

    def _drop(self, lane: Lane) -> None:
        flying: tuple[Lane, Send] | None = lane.transmitter.flying
        if flying is not None and flying[0] is lane:
            self._on_air.pop(lane.sender)
        super()._drop(lane)
        self._try_waiting()

    def _try_waiting(self) -> None:
        for node in list(self._waiting):
            transmitter = self._waiting.get(node)
            if transmitter is not None and not transmitter.queue:
                del self._waiting[node]
            elif transmitter is not None:
                self._transmit(transmitter)
