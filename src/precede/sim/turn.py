"""The world's inner loop: takes events from the queue, and carries out what plain nodes answer to receptions.

A node is plain while it keeps the world's time, no crash is set for it and nobody stalls it (`Seat.plain`).
What stands here does for plain nodes exactly what `World.receive` and `World._carry_out` do for all; it is
written for speed, and is the only place that is.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, final

from precede.core.effects import Arrive, Deliver, Discard, Effects, Send
from precede.core.instants import Instant
from precede.eventlog.rows import BLOCK_BYTES
from precede.eventlog.schema import DELIVERED, DISCARDED, PACKET_RECEIVED, RECEIVED, SENT
from precede.sim.queue import LAST_PHASE, PHASE_BITS, SHIFT, Entry
from precede.sim.seat import Seat

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
        self._buckets = world.queue.buckets
        self._seats = world.seats
        self._everybody = len(world.seats)
        self._rows = world.recorder.units
        self._codes = world.recorder.packet_kinds
        self._log_packets = world.recorder.packets_received
        self._flush_if_full = world.recorder.flush_if_full
        self._is_deliver: object = Deliver
        self._is_send: object = Send
        self._is_arrive: object = Arrive

    def turn(self, until: Instant) -> bool:
        """Events due by an instant; False when none is left."""
        world, queue, soon = self._world, self._queue, self._soon
        limit = until << PHASE_BITS | LAST_PHASE
        if soon:
            self._at_once()
        if not queue.open(limit):
            return False
        entry: Entry
        for entry in islice(queue.rest, _TURN):
            when, seat, packet, sender, over = entry
            if when > limit:
                queue.unread()
                return False
            world.now = now = when >> PHASE_BITS
            if isinstance(seat, Seat):
                if seat.plain:
                    if self._log_packets:
                        code = self._codes[packet.kind]
                        self._rows.packet(PACKET_RECEIVED, code, seat.process, now, now, packet, sender, over)
                    effects = seat.receive(packet, sender, now, over)
                    if effects:
                        self.carry_out(seat, effects, now)
                else:
                    world.receive(seat.id, packet, sender, over)
            else:
                packet(*sender)
            if soon:
                self._at_once()
        return True

    def _at_once(self) -> None:
        while self._soon:
            function, arguments = self._soon.popleft()
            function(*arguments)
            self._world.at_once += 1
            if self._rows.size() >= BLOCK_BYTES:
                self._flush_if_full()

    def carry_out(self, seat: Seat, effects: Effects, now: Instant) -> None:
        """The effects of a plain node. A message that arrives and is delivered at once is one write."""
        world, rows, process = self._world, self._rows, seat.process
        arrived: tuple[Any, ...] = ()
        written = 0
        effect: Any
        for place, effect in enumerate(effects):
            if place < written:
                continue
            kind: object = type(effect)
            if kind is self._is_deliver:
                message = effect.message
                if not arrived:
                    rows.message(DELIVERED, 0, process, now, now, message.id)
                elif len(arrived) == 1 and arrived[0] is message:
                    rows.received_and_delivered(process, now, message.id)
                    arrived = ()
                else:
                    self._write_arrived(process, now, arrived)
                    rows.message(DELIVERED, 0, process, now, now, message.id)
                    arrived = ()
                if world.on_deliver is not None:
                    world.on_deliver(seat.id, message)
                continue
            if arrived:
                self._write_arrived(process, now, arrived)
                arrived = ()
            if kind is self._is_send:
                self._send(seat, effect, now)
            elif kind is self._is_arrive:
                arrived = effect.messages
                if len(arrived) > 1 and self._all_delivered(arrived, effects, place):
                    rows.received_then_delivered(process, now, arrived)
                    written = place + 1 + len(arrived)
                    arrived = ()
            elif kind is Discard:
                world.recorder.message(DISCARDED, process, now, now, effect.message.id, effect.reason)
            else:
                world.carry_out_rare(seat, effect, now)
        if arrived:
            self._write_arrived(process, now, arrived)

    def _all_delivered(self, messages: tuple[Any, ...], effects: Effects, place: int) -> bool:
        """Do the deliveries of these messages follow, in their order, and does nobody answer them?"""
        if len(effects) <= place + len(messages) or self._world.on_deliver is not None:
            return False
        effect: Any
        for message in messages:
            place += 1
            effect = effects[place]
            kind: object = type(effect)
            if kind is not self._is_deliver or effect.message is not message:
                return False
        return True

    def _write_arrived(self, process: int, now: Instant, messages: tuple[Any, ...]) -> None:
        rows = self._rows
        for message in messages:
            rows.message(RECEIVED, 0, process, now, now, message.id)

    def _send(self, seat: Seat, send: Send, now: Instant) -> None:
        flight, to = seat.flight, send.to
        if flight is None or send.key is not None or not 0 <= to < self._everybody:
            self._world.network.send(seat.id, send)
            return
        packet, over = send.packet, send.over
        self._rows.packet(SENT, self._codes[packet.kind], seat.process, now, now, packet, to, over)
        when = now + flight.takes(now) << PHASE_BITS | LAST_PHASE
        waiting = self._buckets.get(when >> SHIFT)
        if waiting is not None:
            waiting.append((when, self._seats[to], packet, seat.sender, over))
        else:
            self._queue.insert((when, self._seats[to], packet, seat.sender, over))
