"""Floods that belong to no stream: dummies (drift2006, section 4.4, Termination) and control packets.

A node with undelivered messages that has received no flood for a while floods a dummy: relays attach their
clocks to it. Several dummies may be needed (`flooded` counts this node's). In TOF a dummy shows only its
origin's clock, so every source floods a dummy of its own when it receives one that asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, final

from precede.core.effects import Effect, Key, SetTimer
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.protocols.drift2006.packet_builder import PacketBuilder
from precede.protocols.drift2006.packets import Body, Carried, ControlPacket, DummyPacket
from precede.protocols.drift2006.state import DriftState
from precede.protocols.floods.reliable_floods import Floods

HandleControl: TypeAlias = Callable[[Body, Instant, list[Effect]], None]
"""A function that processes the body of a control packet that this node received or sent."""

QUIET: Final[Key] = "quiet"
_EPOCH: Final = 1 << 50
"""Is added to a node's time to make the number of a flood. The time may be negative, the number may not."""

_NO_STREAM: Final = -1
"""Stands for the serial of a stream in the keys of dummies and control packets, which belong to no stream."""


@final
class Dummies:
    """Floods dummies (`flooded` counts this node's) and control packets, and relays those of others once."""

    def __init__(
        self,
        state: DriftState,
        floods: Floods[Carried],
        builder: PacketBuilder,
        quiet: Duration,
        handle_control: HandleControl,
    ) -> None:
        self.flooded = 0
        self.waiting = False
        self._state = state
        self._floods = floods
        self._builder = builder
        self._quiet = quiet
        self._handle_control = handle_control
        self._requested = False
        self._number = 0
        self._highest: dict[NodeId, int] = {}

    def watch(self, now: Instant, effects: list[Effect]) -> None:
        """Set the timer of the next dummy, unless it is set already or the option `quiet` is 0."""
        if not self.waiting and self._quiet:
            self.waiting = True
            effects.append(SetTimer(QUIET, now + self._random_wait()))

    def _random_wait(self) -> Duration:
        """Return one to two times `quiet`, at random, so that nodes do not all flood a dummy at once."""
        return self._quiet + int(self._state.generator.random() * self._quiet)

    def timer(self, now: Instant, effects: list[Effect]) -> None:
        """Flood a dummy if a node has asked for one, or if a flood waits here and none arrived for `quiet`."""
        requested, self._requested = self._requested, False
        self.waiting = self._state.has_undelivered() or requested
        if not self.waiting:
            return
        if requested or now - self._state.last_heard_at >= self._quiet:
            self._flood(now, effects)
        effects.append(SetTimer(QUIET, now + self._random_wait()))

    def _flood(self, now: Instant, effects: list[Effect]) -> None:
        state = self._state
        self.flooded += 1
        own = state.own_stream
        clock = None if own is None else (*own, state.floods_sent, state.clock)
        number = self._next_number(now)
        packet = DummyPacket(state.me, number, state.has_undelivered(), clock, self._builder.piggyback())
        self._floods.relay((state.me, _NO_STREAM), number, packet, now, effects)

    def send_control(self, body: Body, now: Instant, effects: list[Effect]) -> None:
        """Flood a control packet with this body, and process the body at this node too."""
        me = self._state.me
        packet = ControlPacket(me, self._next_number(now), body, self._builder.piggyback())
        self._floods.relay((me, _NO_STREAM), packet.number, packet, now, effects)
        self._handle_control(body, now, effects)

    def _next_number(self, now: Instant) -> int:
        """Return a number above all earlier ones, also after a restart: a node's time never goes back."""
        self._number = max(self._number + 1, now + _EPOCH)
        self._highest[self._state.me] = self._number
        return self._number

    def relay(self, packet: DummyPacket | ControlPacket, now: Instant, effects: list[Effect]) -> bool:
        """Relay the first copy of a flood and return True. Return False for a duplicate."""
        if packet.number <= self._highest.get(packet.origin, -1):
            return False
        self._highest[packet.origin] = packet.number
        self._floods.relay((packet.origin, _NO_STREAM), packet.number, packet, now, effects)
        return True

    def receive(self, packet: DummyPacket | ControlPacket, now: Instant, effects: list[Effect]) -> None:
        """Relay and process the first copy of a flood; ignore a duplicate."""
        if not self.relay(packet, now, effects):
            return
        state = self._state
        state.last_heard_at = now
        if isinstance(packet, ControlPacket):
            self._handle_control(packet.body, now, effects)
            return
        if packet.clock is not None:
            if state.seen.merge_chosen((packet.clock,)):
                state.piggyback = None
            source, serial, number, timestamp = packet.clock
            if state.shadow is not None and number <= self._floods.stream((source, serial)).received:
                state.shadow.clock((source, serial), timestamp)
        if packet.asks and not state.virtual and state.own_stream is not None:
            self._requested = True
            self.watch(now, effects)
