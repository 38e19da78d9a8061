"""The interface of a dissemination, which works under any ordering (`ordering.py`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from mypy_extensions import mypyc_attr

from precede.core.effects import NOTHING, Effect, Effects, Key, Medium
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.core.node import Saved
from precede.core.peaks import Sizes
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.parsed_envelopes import Batch


@mypyc_attr(allow_interpreted_subclasses=True)
class Dissemination(ABC):
    """Sends the node's own messages, receives packets, and passes each message once at most to the ordering.

    Its timer keys and send keys are tuples that begin with "net"; an ordering's keys never do. Inputs and
    effects mean the same as for `Node`.
    """

    draining: ClassVar[tuple[str, ...]] = ()
    """Names in `sizes()` that must be 0 once the network has healed and everything due was delivered."""

    takes_destinations: ClassVar[bool] = True
    """Can it send a message to some nodes and not to others?"""

    def __init__(self, ordering: Ordering) -> None:
        self.ordering = ordering

    def start(self, now: Instant, saved: Saved) -> Effects:
        return NOTHING

    @abstractmethod
    def spread(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        """Append the effects that send an own message, which is stamped and accepted."""

    @abstractmethod
    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        """Announce new messages with `Arrive`, pass them to the ordering, and forward them if needed."""

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        return NOTHING

    def timer(self, key: Key, now: Instant) -> Effects:
        return NOTHING

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        return NOTHING

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        return NOTHING

    def leave(self, now: Instant) -> Effects:
        return NOTHING

    def history_packet(self, batch: Batch) -> Packet | None:
        """Return a packet that brings old messages to one neighbour; None if there is no such packet."""
        return None

    def sizes(self) -> Mapping[str, int]:
        return {}

    def counted_sizes(self) -> Sizes | None:
        """Read-only: the same sizes and their peaks, where this part keeps them as `Sizes`."""
        return None


def is_net(key: Key) -> bool:
    return type(key) is tuple and key[0] == "net"
