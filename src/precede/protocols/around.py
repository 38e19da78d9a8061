"""`Around`: a node that wraps another node, to observe or change what that does."""

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
    """Forwards every input to the node inside; override the ones that should differ."""

    def __init__(self, inner: N) -> None:
        self.inner = inner

    @abstractmethod
    def passed(self, effects: Effects) -> Effects:
        """Return the effects that this node hands to its driver, given those that the node inside returned."""

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
