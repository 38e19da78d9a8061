"""The contact network whose links lose packets while they are up, as a radio at the edge of its range does.

A lost packet takes its time like any other, and its sender is told that it left. `epidemic` needs its option
`refresh` here: without it a node offers a message to a peer once in a contact.
"""

from collections.abc import Sequence
from typing import Literal

from precede.core.effects import Send
from precede.core.identity import NodeId
from precede.core.instants import Duration
from precede.sim.draws import Draws
from precede.sim.networks.contacts import Contact, ContactNetwork, Lane
from precede.sim.randomness import Distribution

_WHOLE = 1 << 32


class LossyContacts(ContactNetwork):
    """Links from a list of contacts. Each reception fails with probability `loss`, until the network heals."""

    def __init__(
        self,
        contacts: Sequence[Contact],
        bandwidth: float,
        overhead: Duration,
        share: Literal["link", "node"],
        summaries: Literal["free", "timed"],
        jitter: Distribution | None,
        loss: float,
    ) -> None:
        super().__init__(contacts, bandwidth, overhead, share, summaries, jitter)
        self._loss = loss
        self._chances: dict[NodeId, Draws] = {}
        self._counts["transfers_lost"] = 0

    def heal(self) -> None:
        self._loss = 0.0
        super().heal()

    def _is_lost(self, sender: NodeId) -> bool:
        draws = self._chances.get(sender)
        if draws is None:
            generator = self.world.generators.numpy("chance", sender)
            draws = self._chances[sender] = Draws(lambda count: generator.integers(0, _WHOLE, count))
        lost: bool = draws.next() < self._loss * _WHOLE
        self._counts["transfers_lost"] += lost
        return lost

    def arrive(self, lane: Lane, send: Send) -> None:
        if not lane.up or not self._is_lost(lane.sender):
            super().arrive(lane, send)
        elif send.key is not None:
            self.world.sent(lane.sender, send.key, True)

    def _all_hear(self, sender: NodeId, send: Send) -> None:
        for peer in list(self._lanes[sender]):
            if not self._is_lost(sender):
                self.world.receive(peer, send.packet, sender, send.over)
        if send.key is not None:
            self.world.sent(sender, send.key, True)
