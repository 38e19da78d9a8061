"""Messages into packets (vcube2018, section 5)."""

from __future__ import annotations

from collections.abc import Sequence

from precede.protocols.vcube2018.packets import StampedMessage, VCubePacket
from precede.protocols.vcube2018.prepared import ENTRY_BYTES, HEADER_BYTES, Prepared


def packet_of(stamped: StampedMessage) -> VCubePacket:
    """One message alone."""
    message: Prepared = stamped.prepared
    return _packet([stamped], HEADER_BYTES + message.size_bytes, message.entries)


def packets_of(content: Sequence[StampedMessage], mtu: int) -> list[VCubePacket]:
    """As few packets as filling one after the other gives; a message that is alone too large goes alone."""
    packets: list[VCubePacket] = []
    filling: list[StampedMessage] = []
    entries, size = 0, HEADER_BYTES
    for stamped in content:
        message: Prepared = stamped.prepared
        if filling and size + message.size_bytes > mtu:
            packets.append(_packet(filling, size, entries))
            filling, entries, size = [], 0, HEADER_BYTES
        filling.append(stamped)
        entries += message.entries
        size += message.size_bytes
    packets.append(_packet(filling, size, entries))
    return packets


def _packet(content: list[StampedMessage], size: int, entries: int) -> VCubePacket:
    return VCubePacket(tuple(content), size, ENTRY_BYTES * entries, entries, len(content))
