"""Acknowledgement and retransmission: what stands under a protocol that assumes reliable channels.

An `Outbox` keeps a packet until every addressee has acknowledged it and sends it again, ever more rarely, to
those who have not. It is a piece of a node: it appends effects, and is passed its timers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from precede.core.effects import RADIO, CancelTimer, Effect, Key, Send, SetTimer
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import ControlOnlyPacket, Packet

ACK_BYTES: Final = 8
_SLOWEST: Final = 32


class AckPacket(ControlOnlyPacket, frozen=True, gc=False):
    """These messages are safe with me. Eight bytes for each: source and number."""

    kind: ClassVar[str] = "ack"
    ids: tuple[MessageId, ...]

    @property
    def size_bytes(self) -> int:
        return ACK_BYTES * len(self.ids)

    @property
    def control_entries(self) -> int:
        return len(self.ids)


class _Entry:
    __slots__ = ("left", "packets", "wait")

    def __init__(self, packets: Mapping[NodeId, Packet], wait: Duration) -> None:
        self.packets = packets
        self.left = dict.fromkeys(packets)
        self.wait = wait


class Outbox:
    """Unacknowledged own messages. With `rto` 0 nothing is kept: the channels are said to be reliable."""

    def __init__(self, rto: Duration) -> None:
        self._rto = rto
        self._entries: dict[MessageId, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def send(
        self, id: MessageId, packets: Mapping[NodeId, Packet], now: Instant, effects: list[Effect]
    ) -> None:
        """Send to each addressee, and again until each has acknowledged."""
        effects.extend([Send(packet, peer, RADIO) for peer, packet in packets.items()])
        if self._rto and packets:
            self._entries[id] = _Entry(packets, self._rto)
            effects.append(SetTimer(_key(id), now + self._rto))

    def send_alike(
        self, id: MessageId, packet: Packet, peers: Sequence[NodeId], now: Instant, effects: list[Effect]
    ) -> None:
        """The same packet to everyone."""
        self.send(id, dict.fromkeys(peers, packet), now, effects)

    def acknowledged(self, id: MessageId, peer: NodeId, effects: list[Effect]) -> bool:
        """A peer has it. True when that was the last one."""
        entry = self._entries.get(id)
        if entry is None or peer not in entry.left:
            return False
        del entry.left[peer]
        if entry.left:
            return False
        del self._entries[id]
        effects.append(CancelTimer(_key(id)))
        return True

    def give_up(self, peer: NodeId, effects: list[Effect]) -> None:
        """A peer will never acknowledge anything any more: it is gone, or has forgotten everything."""
        for id in [id for id, entry in self._entries.items() if peer in entry.left]:
            self.acknowledged(id, peer, effects)

    def unacknowledged(self) -> dict[MessageId, dict[NodeId, Packet]]:
        """What is still to be sent again, and to whom."""
        return {id: {peer: entry.packets[peer] for peer in entry.left} for id, entry in self._entries.items()}

    def timer(self, key: Key, now: Instant, effects: list[Effect]) -> None:
        """Time to send one message again to those who have not acknowledged it."""
        assert type(key) is tuple
        id = MessageId(int(key[2]), int(key[3]), int(key[4]))
        entry = self._entries.get(id)
        if entry is None:
            return
        effects.extend([Send(entry.packets[peer], peer, RADIO) for peer in entry.left])
        entry.wait = min(entry.wait * 2, self._rto * _SLOWEST)
        effects.append(SetTimer(key, now + entry.wait))


def is_retransmission(key: Key) -> bool:
    """Is this one of an Outbox's timers?"""
    return type(key) is tuple and key[:2] == ("net", "rto")


def _key(id: MessageId) -> Key:
    return ("net", "rto", id.source, id.incarnation, id.number)
