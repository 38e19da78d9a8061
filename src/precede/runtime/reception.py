"""From bytes of a neighbour to an input of the node: decoded, checked, counted, and queued within bounds.

Every packet comes from the network, and a member that sends it may be malicious. Whatever one packet does to a
node's `receive`, the node goes on: an exception drops that packet, is counted (`raised`) and logged once.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from precede.core.effects import NOTHING, Effects, Medium
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.core.node import Node
from precede.runtime.codec import Codec, Garbled
from precede.runtime.links.inspection import Inspection
from precede.runtime.observe.traffic import Traffic

MOST_INPUTS: Final = 10_000
MOST_INPUT_BYTES: Final = 64 << 20
_log: Final = logging.getLogger("precede")


class Reception:
    """The incoming packets of one driver. `dropped` counts by reason."""

    def __init__(self, codec: Codec, dropped: Counter[str], packets: Traffic | None = None) -> None:
        self._codec = codec
        self._packets = packets or Traffic()
        self._dropped = dropped
        self._queued_bytes = 0
        self._logged: set[tuple[str, type[BaseException]]] = set()

    def decode(
        self,
        data: bytes,
        now: Instant,
        accepted: int,
        inspection: Inspection | None,
        to_all: bool = False,
    ) -> Packet | None:
        """Decode and check the bytes of a packet. Return None if it was dropped, which is counted.

        `to_all`: it came in a frame for everybody, in which any member can name any sender.
        """
        try:
            packet = self._codec.decode(data)
        except Garbled as error:
            self._dropped[error.reason] += 1
            return None
        reason = None if inspection is None else inspection.incoming(packet, len(data), now, accepted)
        if to_all and not packet.to_all:
            reason = "no_session"
        if reason is not None:
            self._dropped[reason] += 1
            return None
        self._packets.add("in", packet.kind, len(data))
        return packet

    def queued(self, inputs: int, size: int) -> bool:
        """Count a packet that waits behind `inputs` others. False: there is no room, so it is dropped."""
        if inputs >= MOST_INPUTS or self._queued_bytes + size > MOST_INPUT_BYTES:
            self._dropped["overrun"] += 1
            return False
        self._queued_bytes += size
        return True

    def receive(
        self, node: Node, packet: Packet, sender: NodeId, over: Medium, size: int, now: Instant
    ) -> Effects:
        """Let the node receive a packet that has waited. If it raises, the packet is counted as dropped."""
        self._queued_bytes -= size
        try:
            return node.receive(packet, sender, now, over)
        except Exception as error:
            self.raised(packet.kind, sender, error)
            return NOTHING

    def raised(self, kind: str, sender: NodeId, error: Exception) -> None:
        """Count a packet that was dropped because it raised; log the first of each kind and error."""
        self._dropped["raised"] += 1
        if (kind, type(error)) not in self._logged:
            self._logged.add((kind, type(error)))
            fields = {"event": "raised", "cause": kind}
            _log.error("a packet %s from node %d was dropped", kind, sender, exc_info=error, extra=fields)


class EarlyInputs:
    """Keeps packets that arrive before `wires` wired neighbours were heard."""

    def __init__(self, wires: int) -> None:
        self._to_come = wires
        self._heard: dict[NodeId, None] = {}
        self._kept: list[Callable[[Instant], Effects]] = []

    def __len__(self) -> int:
        return len(self._kept)

    def keeps(self, receive: Callable[[Instant], Effects]) -> bool:
        """Keep an input and return True, unless all neighbours were heard."""
        if self._to_come:
            self._kept.append(receive)
        return self._to_come > 0

    def heard(self, peer: NodeId) -> Sequence[Callable[[Instant], Effects]]:
        """Note a wired neighbour. After the last one, return the inputs that were kept."""
        if not self._to_come or peer in self._heard:
            return ()
        self._heard[peer] = None
        self._to_come -= 1
        kept = self._kept
        if self._to_come:
            return ()
        self._kept = []
        return kept
