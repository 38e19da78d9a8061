"""Acknowledgement and retransmission, for protocols that assume reliable channels.

An `Outbox` keeps each packet until every addressee has acknowledged its message, and sends it again to the
others at growing intervals, and at once when a link to one of them comes up. A node owns one, passes it its
timers and links, and returns the effects it appends.
"""

from collections.abc import Mapping
from typing import Annotated, Final, TypeAlias

from mypy_extensions import mypyc_attr

from precede.core.effects import NOTHING, RADIO, CancelTimer, Effect, Effects, Key, Send, SetTimer
from precede.core.identity import MessageId, NodeId
from precede.core.instants import MILLISECOND, Duration, Instant
from precede.core.messages import Packet
from precede.protocols.acknowledgement import AckPacket
from precede.protocols.options import duration

RTO: Final[Duration] = 200 * MILLISECOND
Rto: TypeAlias = Annotated[
    Duration, duration("retransmit after this time; 0s: links are reliable, no acknowledgements")
]
"""The type of the option `rto`; `RTO` is its default."""

_LARGEST_BACKOFF: Final = 32


class _Unacknowledged:
    """A message's packets by addressee, the addressees that have not acknowledged it, the present interval."""

    __slots__ = ("interval", "missing", "packets")

    def __init__(self, packets: Mapping[NodeId, Packet], interval: Duration) -> None:
        self.packets = packets
        self.missing = dict.fromkeys(packets)
        self.interval = interval


@mypyc_attr(allow_interpreted_subclasses=True)
class Outbox:
    """The unacknowledged own messages of a node. With `rto` 0 channels are reliable, and nothing is kept."""

    def __init__(self, rto: Duration) -> None:
        self._rto = rto
        self._entries: dict[MessageId, _Unacknowledged] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def retransmits(self) -> bool:
        """True if packets are sent again until they are acknowledged; False if the channels are reliable."""
        return self._rto > 0

    def send(
        self, id: MessageId, packets: Mapping[NodeId, Packet], now: Instant, effects: list[Effect]
    ) -> None:
        """Send each addressee its packet, and again until it acknowledges; only once if `rto` is 0."""
        effects.extend([Send(packet, peer, RADIO) for peer, packet in packets.items()])
        if self._rto and packets:
            self._entries[id] = _Unacknowledged(packets, self._rto)
            effects.append(SetTimer(_key(id), now + self._rto))

    def acknowledge(self, id: MessageId, sender: NodeId, effects: list[Effect]) -> None:
        if self._rto:
            effects.append(Send(AckPacket((id,)), sender, RADIO))

    def acknowledged(self, id: MessageId, peer: NodeId, effects: list[Effect]) -> bool:
        """Record that a peer has acknowledged a message. Returns True if it was the last one to do so."""
        entry = self._entries.get(id)
        if entry is None or peer not in entry.missing:
            return False
        del entry.missing[peer]
        if entry.missing:
            return False
        del self._entries[id]
        effects.append(CancelTimer(_key(id)))
        return True

    def give_up(self, peer: NodeId, effects: list[Effect]) -> None:
        """Stop sending to a peer that has left for good or lost its state: it will never acknowledge."""
        for id in [id for id, entry in self._entries.items() if peer in entry.missing]:
            self.acknowledged(id, peer, effects)

    def link_up(self, peer: NodeId, now: Instant, effects: list[Effect]) -> None:
        """Send a peer that can be reached again all that it has not acknowledged; intervals are short again."""
        for id, entry in self._entries.items():
            if peer in entry.missing:
                entry.interval = self._rto
                effects.append(Send(entry.packets[peer], peer, RADIO))
                effects.append(SetTimer(_key(id), now + self._rto))

    def unacknowledged(self) -> dict[MessageId, dict[NodeId, Packet]]:
        return {
            id: {peer: entry.packets[peer] for peer in entry.missing} for id, entry in self._entries.items()
        }

    def timer(self, key: Key, now: Instant) -> Effects:
        """Send a message again to those that have not acknowledged it. Ignores timers of others."""
        if type(key) is not tuple or key[:2] != ("net", "rto"):
            return NOTHING
        entry = self._entries.get(MessageId(int(key[2]), int(key[3]), int(key[4])))
        if entry is None:
            return NOTHING
        entry.interval = min(entry.interval * 2, self._rto * _LARGEST_BACKOFF)
        effects: list[Effect] = [Send(entry.packets[peer], peer, RADIO) for peer in entry.missing]
        effects.append(SetTimer(key, now + entry.interval))
        return effects


def _key(id: MessageId) -> Key:
    return ("net", "rto", id.source, id.incarnation, id.number)
