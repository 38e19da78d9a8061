"""The interface of a dissemination: it transports messages between nodes, in any order.

A dissemination sends the node's own messages, receives packets, and passes each message to the ordering above
it at most once. It works under any ordering (`ordering.py`); `LayeredNode` joins the two.
"""

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
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.ordering import Ordering


@mypyc_attr(allow_interpreted_subclasses=True)
class Dissemination(ABC):
    """Brings every message to whoever is due, in any order, each at most once to the ordering above it.

    Its timer and send keys are tuples that begin with "net"; an ordering's keys never do.
    """

    draining: ClassVar[tuple[str, ...]] = ()

    takes_destinations: ClassVar[bool] = True
    """Can it bring a message to some and not to others?"""

    def __init__(self, ordering: Ordering) -> None:
        self.ordering = ordering

    def start(self, now: Instant, saved: Saved) -> Effects:
        return NOTHING

    @abstractmethod
    def spread(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        """An own message, stamped and accepted: append what sends it."""

    @abstractmethod
    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        """A packet: announce first copies with `Arrive`, hand them to the ordering, forward."""

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

    def sizes(self) -> Mapping[str, int]:
        return {}


def is_net(key: Key) -> bool:
    """Does this timer or send belong to the dissemination?"""
    return type(key) is tuple and key[0] == "net"
