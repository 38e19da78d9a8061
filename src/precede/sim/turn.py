"""The world's inner loop: takes events from the queue, and carries out what plain nodes answer to receptions.

A node is plain while it keeps the world's time, no crash is set for it and it is not stalled (`plain`).
What stands here does for plain nodes exactly what `World.receive` and `World._carry_out` do for all; it is
written for speed, and is the only place that is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from precede.core.effects import Arrive, Deliver, Discard, Effects, Send
from precede.core.instants import Instant
from precede.eventlog.rows import BLOCK_BYTES
from precede.eventlog.schema import DISCARDED, PACKET_RECEIVED, SENT
from precede.sim.hosted_node import HostedNode
from precede.sim.queue import LAST_PHASE, PHASE_BITS, RING, SHIFT, Call, Landing

if TYPE_CHECKING:
    from precede.sim.world import World

_TURN: Final = 2048


@final
class Turn:
    """Does some thousand events at a time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._queue = world.queue
        self._soon = world.queue.soon
        self._ring = world.queue.ring
        self._seats = world.nodes
        self._everybody = len(world.nodes)
        self._rows = world.recorder.units
        self._codes = world.recorder.packet_kinds
        self._log_packets = world.recorder.packets_received
        self._flush_if_full = world.recorder.flush_if_full
        self._type: object = None
        self._code = 0
        self._reason = ""
        self._reason_code = 0

    def turn(self, until: Instant) -> bool:
        """Events due by an instant; False when none is left."""
        world, queue, soon = self._world, self._queue, self._soon
        limit = until << PHASE_BITS | LAST_PHASE
        if soon:
            self._at_once()
        if not queue.open(limit):
            return False
        for _ in range(_TURN):
            if queue.place == len(queue.current):
                return True
            event = queue.current[queue.place]
            if event.when > limit:
                return False
            queue.place += 1
            world.now = now = event.when >> PHASE_BITS
            if isinstance(event, Landing):
                hosted = self._seats[event.to]
                if hosted.plain:
                    self._land(hosted, event, now)
                else:
                    world.receive(event.to, event.packet, event.sender, event.over)
            elif isinstance(event, Call):
                event.function(*event.arguments)
            if soon:
                self._at_once()
        return True

    def _land(self, hosted: HostedNode, landing: Landing, now: Instant) -> None:
        packet, sender, over = landing.packet, landing.sender, landing.over
        if self._log_packets:
            code = self._codes[packet.kind]
            self._rows.packet(PACKET_RECEIVED, code, hosted.process, now, now, packet, sender, over)
        effects = hosted.node.receive(packet, sender, now, over)
        if effects:
            self.carry_out(hosted, effects, now)

    def _at_once(self) -> None:
        while self._soon:
            function, arguments = self._soon.popleft()
            function(*arguments)
            self._world.at_once += 1
            if self._rows.size() >= BLOCK_BYTES:
                self._flush_if_full()

    def carry_out(self, hosted: HostedNode, effects: Effects, now: Instant) -> None:
        """The effects of a plain node. A message that arrives and is delivered at once is one write."""
        world, rows, process = self._world, self._rows, hosted.process
        arrived: Arrive | None = None
        written = 0
        listed: list[Any] = effects if isinstance(effects, list) else list(effects)
        effect: Any
        for place, effect in enumerate(listed):
            if place < written:
                continue
            if isinstance(effect, Deliver):
                if arrived is None:
                    rows.delivered(process, now, effect)
                elif arrived.only is effect.message:
                    rows.received_and_delivered(process, now, effect)
                    arrived = None
                else:
                    rows.received(process, now, arrived)
                    rows.delivered(process, now, effect)
                    arrived = None
                if world.on_deliver is not None:
                    world.on_deliver(hosted.id, effect.message)
                continue
            if arrived is not None:
                rows.received(process, now, arrived)
                arrived = None
            if isinstance(effect, Send):
                self._send(hosted, effect, now)
            elif isinstance(effect, Arrive):
                if effect.only is None and self._all_delivered(effect.messages, listed, place):
                    written = place + 1 + len(effect.messages)
                    rows.received_then_delivered(process, now, listed[place + 1 : written])
                else:
                    arrived = effect
            elif type(effect) is Discard:
                if effect.reason != self._reason:
                    self._reason, self._reason_code = effect.reason, world.recorder.reason_code(effect.reason)
                rows.message(DISCARDED, self._reason_code, process, now, now, effect.message.id)
            else:
                world.carry_out_rare(hosted, effect, now)
        if arrived is not None:
            rows.received(process, now, arrived)

    def _all_delivered(self, messages: tuple[Any, ...], effects: list[Any], place: int) -> bool:
        """Do the deliveries of these messages follow, in their order, and does nobody answer them?"""
        if len(effects) <= place + len(messages) or self._world.on_deliver is not None:
            return False
        effect: Any
        for message in messages:
            place += 1
            effect = effects[place]
            if not isinstance(effect, Deliver) or effect.message is not message:
                return False
        return True

    def _send(self, hosted: HostedNode, send: Send, now: Instant) -> None:
        flight, to = hosted.flight, send.to
        if flight is None or send.key is not None or not 0 <= to < self._everybody:
            self._world.network.send(hosted.id, send)
            return
        packet, over = send.packet, send.over
        if type(packet) is not self._type:
            self._type = type(packet)
            self._code = self._codes[packet.kind]
        self._rows.packet(SENT, self._code, hosted.process, now, now, packet, to, over)
        when = now + flight.takes(now) << PHASE_BITS | LAST_PHASE
        landing = Landing(when, to, packet, hosted.id, over)
        bucket = when >> SHIFT
        waiting = self._ring[bucket & RING - 1]
        if waiting and 0 < bucket - self._queue.base < RING:
            waiting.append(landing)
        else:
            self._queue.insert(landing)
