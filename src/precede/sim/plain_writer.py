"""Carries out the effects of plain nodes one by one (`HostedNode.plain`): rows are written, packets take off.

`FastPath` calls it for the lists that nodes return; a `WritingNode` calls it itself. A message that goes from
node to node in one packet has its id in numbers there (`MeasuredPacket`): to read them from the structs of the
message takes three lookups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from mypy_extensions import mypyc_attr

from precede.core.effects import RADIO, Effect, Medium, Send
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Message, Packet
from precede.core.writing_node import EffectWriter
from precede.eventlog.recorder import Recorder
from precede.eventlog.rows import MeasuredPacket
from precede.eventlog.schema import DELIVERED, RECEIVED, SENT
from precede.sim.hosted_node import HostedNode
from precede.sim.networks.network import Network
from precede.sim.queue import LAST_PHASE, PHASE_BITS, RING, SHIFT, EventQueue, Landing


@mypyc_attr(allow_interpreted_subclasses=True)
class PacketsUnderWay:
    """The packets that can only take time on their way."""

    def launch(self, at: Instant, to: NodeId, packet: MeasuredPacket, sender: NodeId, over: Medium) -> None:
        """Let a packet land at an instant."""
        raise NotImplementedError


@final
class QueuedPackets(PacketsUnderWay):
    """The packets whose landings are events of the queue."""

    def __init__(self, queue: EventQueue) -> None:
        self._queue = queue
        self._ring = queue.ring

    def launch(self, at: Instant, to: NodeId, packet: MeasuredPacket, sender: NodeId, over: Medium) -> None:
        when = at << PHASE_BITS | LAST_PHASE
        landing = Landing(when, to, packet, sender, over)
        bucket = when >> SHIFT
        waiting = self._ring[bucket & RING - 1]
        if waiting and 0 < bucket - self._queue.base < RING:
            waiting.append(landing)
        else:
            self._queue.insert(landing)


@final
class PlainWriter(EffectWriter):
    """Writes rows and launches packets for the node that has an input now (`begin`).

    `last` is the packet that was measured last: it often goes to several nodes. `carry_out_rare` carries out
    any other effect of a node.
    """

    def __init__(
        self,
        recorder: Recorder,
        network: Network,
        under_way: PacketsUnderWay,
        nodes: int,
        carry_out_rare: Callable[[NodeId, Effect, Instant], None],
    ) -> None:
        self.last: MeasuredPacket | None = None
        self.under_way = under_way
        self._rows = recorder.units
        self._codes = recorder.packet_kinds
        self._network = network
        self._nodes = nodes
        self._carry_out_rare = carry_out_rare
        self._hosted = HostedNode(-1, None)
        self._now: Instant = 0
        self._packet_type: object = None  # the type of the last packet, and the code of its kind
        self._packet_code = 0

    def begin(self, hosted: HostedNode, now: Instant) -> None:
        """From here on, write the effects of a plain node at this instant."""
        self._hosted = hosted
        self._now = now

    def arrive(self, message: Message) -> None:
        self._rows.about_message(RECEIVED, self._hosted.process, self._now, self._described(message))

    def deliver(self, message: Message) -> None:
        self._rows.about_message(DELIVERED, self._hosted.process, self._now, self._described(message))

    def send(self, packet: Packet, to: NodeId, over: Medium = RADIO) -> None:
        hosted = self._hosted
        flight, now = hosted.flight, self._now
        if flight is None or not 0 <= to < self._nodes:
            self._network.send(hosted.id, Send(packet, to, over))
            return
        measured = self.measured(packet)
        self._rows.packet(SENT, hosted.process, now, now, measured, to, over)
        self.under_way.launch(now + flight.takes(now), to, measured, hosted.id, over)

    def add(self, effect: Effect) -> None:
        self._carry_out_rare(self._hosted.id, effect, self._now)

    def measured(self, packet: Packet) -> MeasuredPacket:
        """Return a packet with its sizes."""
        last = self.last
        if last is None or last.packet is not packet:
            if type(packet) is not self._packet_type:
                self._packet_type = type(packet)
                self._packet_code = self._codes[packet.kind]
            self.last = last = MeasuredPacket(packet, self._packet_code)
        return last

    def _described(self, message: Message) -> MeasuredPacket:
        """Return the packet in hand after the id of one of its messages was read."""
        last = self.last
        assert last is not None, "a packet is measured before its node gets it"
        if last.message is not message:
            last.look_up(message)
        return last
