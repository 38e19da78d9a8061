"""Messages into packets (vcube2018, section 5)."""

from __future__ import annotations

from collections.abc import Sequence

from precede.protocols.vcube_packets import StampedMessage, VCubePacket
from precede.protocols.vcube_prepared import ENTRY_BYTES, HEADER_BYTES, Prepared


def packet_of(content: tuple[StampedMessage, ...]) -> VCubePacket:
    entries, size = 0, HEADER_BYTES
    for stamped in content:
        message: Prepared = stamped.prepared
        entries += message.entries
        size += message.size_bytes
    return VCubePacket(content, size, ENTRY_BYTES * entries, entries, len(content))


def packets_of(content: Sequence[StampedMessage], mtu: int) -> list[VCubePacket]:
    """As few packets as filling one after the other gives; a message that is alone too large goes alone."""
    packets: list[VCubePacket] = []
    filling: list[StampedMessage] = []
    size = HEADER_BYTES
    for stamped in content:
        message: Prepared = stamped.prepared
        if filling and size + message.size_bytes > mtu:
            packets.append(packet_of(tuple(filling)))
            filling, size = [], HEADER_BYTES
        filling.append(stamped)
        size += message.size_bytes
    packets.append(packet_of(tuple(filling)))
    return packets
