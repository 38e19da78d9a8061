"""The world's inner loop: takes events from the queue, and carries out what plain nodes answer to receptions.

A node is plain while it keeps the world's time, no crash is set for it and nobody stalls it (`Seat.plain`).
What stands here does for plain nodes exactly what `World.receive` and `World._carry_out` do for all; it is
written for speed (names bound once, rows packed in place), and is the only place that is.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from struct import Struct as Layout
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from precede.core.effects import Arrive, Deliver, Discard, Effects, Send
from precede.core.instants import Instant
from precede.core.messages import Message
from precede.eventlog.recorder import CONTINUED, MESSAGE_ROW, PACKET_ROW, packet_packer
from precede.eventlog.schema import DELIVERED, DISCARDED, PACKET_RECEIVED, RECEIVED, SENT
from precede.sim.queue import CALL, LAST_PHASE, PHASE_BITS, SHIFT

if TYPE_CHECKING:
    from precede.sim.world import Seat, World

CarryOut: TypeAlias = "Callable[[Seat, Effects, Instant], None]"

_TURN: Final = 2048
_TWO_ROWS: Final = Layout(MESSAGE_ROW.format + MESSAGE_ROW.format[1:])


def turning(world: World, carry_out: CarryOut) -> Callable[[Instant], bool]:
    """Does some thousand events due by an instant; False when none is left."""
    queue, soon, recorder = world.queue, world.queue.soon, world.recorder
    received = packet_packer(recorder, PACKET_RECEIVED) if recorder.packets_received else None
    flush_if_full = recorder.flush_if_full

    def at_once() -> None:
        while soon:
            function, arguments = soon.popleft()
            function(*arguments)
            world.at_once += 1
            flush_if_full()

    def turn(until: Instant) -> bool:
        limit = until << PHASE_BITS | LAST_PHASE
        if soon:
            at_once()
        if not queue.open(limit):
            return False
        for when, seat, packet, sender, over in islice(queue.rest, _TURN):
            if when > limit:
                queue.unread()
                return False
            world.now = now = when >> PHASE_BITS
            if seat.plain:
                if received is not None:
                    received(seat.process, now, now, packet, sender, over)
                effects = seat.receive(packet, sender, now, over)
                if effects:
                    carry_out(seat, effects, now)
            elif seat is CALL:
                packet(*sender)
            else:
                world.receive(seat.id, packet, sender, over)
            if soon:
                at_once()
        return True

    return turn


def plain_dispatch(world: World) -> CarryOut:
    """Carries out the effects of a plain node. A message that arrives and is delivered at once is one write."""
    write, pack, pack_two, pack_packet = (
        world.recorder.buffer.extend,
        MESSAGE_ROW.pack,
        _TWO_ROWS.pack,
        PACKET_ROW.pack,
    )
    seats, codes, send = world.seats, world.recorder.packet_kinds, world.network.send
    insert, buckets = world.queue.insert, world.queue.buckets
    everybody = len(seats)

    def write_arrived(process: int, now: Instant, messages: tuple[Message, ...]) -> None:
        if len(messages) == 1:
            id = messages[0].id
            write(pack(now, process, id.source, id.number, id.incarnation, RECEIVED, 0, now))
            return
        ids = [message.id for message in messages]
        write(
            b"".join([pack(now, process, id.source, id.number, id.incarnation, RECEIVED, 0, now) for id in ids])
        )

    def carry_out(seat: Seat, effects: Effects, now: Instant) -> None:
        process = seat.process
        arrived: tuple[Message, ...] = ()
        effect: Any
        for effect in effects:
            kind = effect.__class__
            if kind is Deliver:
                message = effect.message
                id = message.id
                source, number, life = id.source, id.number, id.incarnation
                if arrived:
                    if len(arrived) == 1 and arrived[0] is message:
                        write(
                            pack_two(
                                now, process, source, number, life, RECEIVED, 0, now,
                                now, process, source, number, life, DELIVERED, 0, now,
                            )
                        )  # fmt: skip
                    else:
                        write_arrived(process, now, arrived)
                        write(pack(now, process, source, number, life, DELIVERED, 0, now))
                    arrived = ()
                else:
                    write(pack(now, process, source, number, life, DELIVERED, 0, now))
                if world.on_deliver is not None:
                    world.on_deliver(seat.id, message)
                continue
            if arrived:
                write_arrived(process, now, arrived)
                arrived = ()
            if kind is Send:
                draw, to = seat.draw, effect.to
                if draw is None or effect.key is not None or not 0 <= to < everybody:
                    send(seat.id, effect)
                    continue
                packet, over = effect.packet, effect.over
                write(
                    pack_packet(
                        now, process, to, packet.size_bytes, codes[packet.kind], SENT, over, now,
                        packet.control_bytes, packet.messages, -1, packet.control_entries, CONTINUED,
                    )
                )  # fmt: skip
                when = now + draw() << PHASE_BITS | LAST_PHASE
                waiting = buckets.get(when >> SHIFT)
                if waiting is not None:
                    waiting.append((when, seats[to], packet, seat.id, over))
                else:
                    insert((when, seats[to], packet, seat.id, over))
            elif kind is Arrive:
                arrived = effect.messages
            elif kind is Discard:
                world.recorder.message(DISCARDED, process, now, now, effect.message.id, effect.reason)
            else:
                world.carry_out_rare(seat, effect, now)
        if arrived:
            write_arrived(process, now, arrived)

    return carry_out
