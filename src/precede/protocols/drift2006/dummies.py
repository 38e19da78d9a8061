"""Termination (drift2006, section 4.4), and floods that belong to no stream.

A node that has something undelivered and has heard no flood for a while floods a dummy: others use it to carry
their clocks. Several may be needed (`flooded` counts this node's). Without virtual flooding a dummy shows only
its origin's clock, so every source must flood one of its own when it hears one that asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from precede.core.effects import Effect, Key, SetTimer
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.protocols.drift2006.packets import Body, ControlPacket, DummyPacket

if TYPE_CHECKING:
    from precede.protocols.drift2006.node import DriftNode

QUIET: Final[Key] = "quiet"
_EPOCH: Final = 1 << 50
"""Clocks may stand before zero; numbers may not."""

_NO_STREAM: Final = -1
"""Stands where the life of a stream would."""


class Dummies:
    """When to flood a dummy, and how unnumbered floods are told apart."""

    def __init__(self, node: DriftNode, quiet: Duration) -> None:
        self.flooded = 0
        self.waiting = False
        self._node = node
        self._quiet = quiet
        self._asked = False
        self._number = 0
        self._heard: dict[NodeId, int] = {}

    def watch(self, now: Instant, effects: list[Effect]) -> None:
        """Something has arrived that is to be delivered."""
        if not self.waiting and self._quiet:
            self.waiting = True
            effects.append(SetTimer(QUIET, now + self._patience()))

    def _patience(self) -> Duration:
        """So that not everybody who waits floods a dummy at once."""
        return self._quiet + int(self._node.random.random() * self._quiet)

    def timer(self, now: Instant, effects: list[Effect]) -> None:
        asked, self._asked = self._asked, False
        self.waiting = self._node.undelivered() or asked
        if not self.waiting:
            return
        if asked or now - self._node.heard_at >= self._quiet:
            self._flood(now, effects)
        effects.append(SetTimer(QUIET, now + self._patience()))

    def _flood(self, now: Instant, effects: list[Effect]) -> None:
        node = self._node
        self.flooded += 1
        clock = None if node.mine is None else (*node.mine, node.sent_floods, node.clock)
        packet = DummyPacket(node.me, self._next_number(now), node.undelivered(), clock, node.voice.extra())
        node.floods.relay((node.me, _NO_STREAM), packet.number, packet, now, effects)

    def send_control(self, body: Body, now: Instant, effects: list[Effect]) -> None:
        """Flood something about membership; the sender hears it too."""
        node = self._node
        packet = ControlPacket(node.me, self._next_number(now), body, node.voice.extra())
        node.floods.relay((node.me, _NO_STREAM), packet.number, packet, now, effects)
        node.control(body, now, effects)

    def _next_number(self, now: Instant) -> int:
        """Numbers that grow over restarts: a node's clock never goes back."""
        self._number = max(self._number + 1, now + _EPOCH)
        self._heard[self._node.me] = self._number
        return self._number

    def relay(self, packet: DummyPacket | ControlPacket, now: Instant, effects: list[Effect]) -> bool:
        """Pass a flood on that belongs to no stream; False when it is not new."""
        if packet.number <= self._heard.get(packet.origin, -1):
            return False
        self._heard[packet.origin] = packet.number
        self._node.floods.relay((packet.origin, _NO_STREAM), packet.number, packet, now, effects)
        return True

    def receive(self, packet: DummyPacket | ControlPacket, now: Instant, effects: list[Effect]) -> None:
        if not self.relay(packet, now, effects):
            return
        node = self._node
        node.heard_at = now
        if isinstance(packet, ControlPacket):
            node.control(packet.body, now, effects)
            return
        if packet.clock is not None:
            if node.seen.merge_chosen((packet.clock,)):
                node.voice.changed()
            source, life, number, timestamp = packet.clock
            if node.shadow is not None and number <= node.floods.stream((source, life)).received:
                node.shadow.clock((source, life), timestamp)
        if packet.asks and not node.virtual and node.mine is not None:
            self._asked = True
            self.watch(now, effects)
