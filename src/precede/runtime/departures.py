"""The sends and deliveries of one turn, which wait until the turn is committed.

Packets to the same receivers leave together and, if their protocol can join them, as one packet: one encoding,
one seal and one system call for the messages of a turn, and one reception at the other end.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Protocol

from precede.core.effects import Key, Medium, Observe, Send
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import MOST_MESSAGES, Packet
from precede.runtime.codec import Codec
from precede.runtime.history.kept import Kept
from precede.runtime.links.inspection import Inspection


class Outside(Protocol):
    """The links of one medium, as the driver sees them: `links.neighbours.Links`."""

    def send(self, data: bytes, to: NodeId, key: Key | None = None) -> int: ...

    def send_together(self, packets: Sequence[bytes], to: NodeId) -> int: ...

    def cancel(self, key: Key) -> None: ...


class Departures:
    """What leaves a node at the end of a turn, in the order in which it was decided for each receiver."""

    def __init__(self) -> None:
        self._sends: dict[tuple[Medium, NodeId], list[tuple[Send, Instant]]] = {}
        self._deliveries: list[tuple[Kept, MessageId | None]] = []
        self._above: MessageId | None = None

    def __bool__(self) -> bool:
        return bool(self._sends or self._deliveries)

    def send(self, send: Send, now: Instant) -> None:
        """Add a packet. It is joined to the one before it for the same receivers, if their protocol can.

        A packet with more messages than receivers accept is divided; `sent` reports its last part.
        """
        if send.packet.messages > MOST_MESSAGES:
            *first, last = send.packet.divided(MOST_MESSAGES)
            for part in first:
                self._add(Send(part, send.to, send.over), now)
            send = Send(last, send.to, send.over, send.key)
        self._add(send, now)

    def _add(self, send: Send, now: Instant) -> None:
        waiting = self._sends.setdefault((send.over, send.to), [])
        if waiting and send.key is None and waiting[-1][0].key is None:
            joined = waiting[-1][0].packet.joined(send.packet)
            if joined is not None:
                waiting[-1] = (Send(joined, send.to, send.over), now)
                return
        waiting.append((send, now))

    def deliver(self, kept: Kept) -> None:
        """Add a delivered message."""
        self._deliveries.append((kept, self._above))
        self._above = None

    def observe(self, effect: Observe) -> None:
        """Note the message directly above which the next delivered one is shown, if the effect says that."""
        if effect.name == "above":
            self._above = effect.message.id

    def cancel(self, key: Key) -> None:
        """Remove the packets with this key."""
        for receivers, waiting in list(self._sends.items()):
            self._sends[receivers] = [entry for entry in waiting if entry[0].key != key]

    def release(
        self,
        transmit: Callable[[Sequence[tuple[Send, Instant]]], None],
        hand_over: Callable[[Kept, MessageId | None], None],
    ) -> None:
        """Transmit the packets and hand over the deliveries, now that everything is committed.

        `transmit` gets packets that may share a frame: those for the same receivers. A keyed packet is alone.
        """
        sends, self._sends = self._sends, {}
        deliveries, self._deliveries = self._deliveries, []
        for waiting in sends.values():
            for alone, group in groupby(waiting, key=lambda entry: entry[0].key is not None):
                for part in ([entry] for entry in group) if alone else [list(group)]:
                    transmit(part)
        for kept, above in deliveries:
            hand_over(kept, above)

    def clear(self) -> None:
        """Forget everything: the node has crashed."""
        self._sends.clear()
        self._deliveries.clear()


def send_all(outside: Outside, packets: Sequence[bytes], first: Send) -> int:
    """Send packets to the receivers of the first one, in as few frames as they fit into. Return their bytes."""
    if len(packets) == 1:
        return outside.send(packets[0], first.to, first.key)
    return outside.send_together(packets, first.to)


class EncodedPackets:
    """The packets of one turn, each signed and encoded once for all neighbours to which it goes."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._encoded: dict[int, tuple[Packet, bytes]] = {}

    def encode(self, packet: Packet, inspection: Inspection | None) -> bytes:
        known = self._encoded.get(id(packet))
        if known is None:
            known = self._encoded[id(packet)] = (packet, self.fresh(packet, inspection))
        return known[1]

    def fresh(self, packet: Packet, inspection: Inspection | None) -> bytes:
        """Sign and encode a packet, and do not keep its bytes."""
        if inspection is not None:
            inspection.outgoing(packet)
        return self._codec.encode(packet)

    def clear(self) -> None:
        self._encoded.clear()
