"""A gateway that went bad: it is a member, and alters, repeats, reorders and invents what it relays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import msgspec

import precede
from precede.core.effects import RADIO, Key
from precede.core.identity import MessageId, NodeId
from precede.core.messages import Message
from precede.protocols.guidec2021.causal_barrier import CausalBarrier
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.gossip.entry import DISSEMINATION
from precede.protocols.layered.gossip.packets import DataPacket, data_packet
from precede.protocols.layered.parsed_envelopes import batch_of
from precede.runtime.codec import Codec
from precede.runtime.evidence.headers import header_of
from precede.runtime.evidence.signatures import SigningKey
from precede.runtime.names import node_id

FORGED = b"forged by the gateway"


class HostileLinks:
    """Stands between a gateway's driver and its links. Every relayed message leaves in forged copies first."""

    def __init__(self, gateway: precede.Group, seed: bytes) -> None:
        self._links = gateway.links
        self._key = SigningKey(seed)
        self._group = gateway.group
        self._codec = Codec(DISSEMINATION.packets, CausalBarrier.stamp_type)
        self._random = Random(7)
        self._recorded: list[bytes] = []
        self._victim = node_id("ana")
        gateway.driver.outside = {RADIO: self, 1 - RADIO: self}
        self.forgeries = 0

    def send(self, data: bytes, to: NodeId, key: Key | None = None) -> int:
        return self.send_together([data], to)

    def send_together(self, packets: Sequence[bytes], to: NodeId) -> int:
        leaving = [forged for packet in packets for forged in self._forge(packet)]
        self.forgeries += len(leaving)
        leaving += [*packets, *packets, *self._random.sample(self._recorded, min(3, len(self._recorded)))]
        self._recorded += packets
        self._random.shuffle(leaving)
        return sum(self._links.send(packet, to) for packet in leaving)

    def cancel(self, key: Key) -> None:
        self._links.cancel(key)

    def _forge(self, data: bytes) -> Iterator[bytes]:
        """Yield forged copies of the messages in a packet, one in each packet."""
        packet = self._codec.decode(data)
        if not isinstance(packet, DataPacket):
            return
        for envelope in packet.envelopes:
            for forged in self._variants(envelope):
                yield self._codec.encode(data_packet(batch_of((forged,)), 0, None))

    def _variants(self, envelope: Envelope) -> Iterator[Envelope]:
        id, signature = envelope.message.id, envelope.message.signature

        def changed(new: MessageId = id, payload: bytes = FORGED, **rest: Any) -> Envelope:
            message = Message(new, payload, rest.pop("signature", signature))
            return msgspec.structs.replace(envelope, message=message, **rest)

        later = MessageId(id.source, id.incarnation, id.number + 1)
        yield changed()  # another text
        yield changed(MessageId(self._victim, id.incarnation, id.number))  # another author
        yield changed(later)  # a message that does not exist yet
        yield changed(payload=envelope.message.payload, stamp=())  # no predecessors
        yield changed(payload=envelope.message.payload, born=envelope.born + 1)
        yield changed(later, signature=b"")  # not signed
        unsigned = changed(later, stamp=())
        header = header_of(unsigned.written(), bytes(4), b"")
        own = self._key.sign(header.signed_bytes(self._group)) + bytes(4)
        yield changed(later, stamp=(), signature=own)  # signed by the gateway itself
