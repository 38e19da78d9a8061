"""A node around a node: every input goes to the one inside, and what that returns passes through `passed`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from precede.core.effects import Effects, Key, Medium
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.core.node import Node, Saved, Waiting

N = TypeVar("N", bound=Node)


class Around(Node, Generic[N]):
    """The node inside does what it does; override what is to be another."""

    def __init__(self, inner: N) -> None:
        self.inner = inner

    @abstractmethod
    def passed(self, effects: Effects) -> Effects:
        """What becomes of a list of effects of the node inside."""

    def start(self, now: Instant, saved: Saved) -> Effects:
        return self.passed(self.inner.start(now, saved))

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        return self.passed(self.inner.broadcast(payload, now, to, lifetime))

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        return self.passed(self.inner.receive(packet, sender, now, over))

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        return self.passed(self.inner.sent(key, now, ok))

    def timer(self, key: Key, now: Instant) -> Effects:
        return self.passed(self.inner.timer(key, now))

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        return self.passed(self.inner.link_up(peer, now, over))

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        return self.passed(self.inner.link_down(peer, now, over))

    def leave(self, now: Instant) -> Effects:
        return self.passed(self.inner.leave(now))

    def waiting(self) -> Sequence[Waiting]:
        return self.inner.waiting()

    def sizes(self) -> Mapping[str, int]:
        return self.inner.sizes()

    def drains(self) -> tuple[str, ...]:
        return self.inner.drains()
