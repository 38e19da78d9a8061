"""A network that replays measured transfers: links come and go as recorded, packets take as long as recorded.

Each end of a link has its own instants, because they differ in an emulation. A packet takes as long as the
packet with the same content took while the same link was up. Without such a packet it takes as long as the
one sent nearest in time, and without any it takes the median time. Packets of one end arrive in order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from precede.core.effects import RADIO, Key, Send
from precede.core.identity import NEIGHBOURS, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.core.transfers import Content, LinkEnd, Transfer, content_of
from precede.sim.networks.network import CONTACTS_BEGIN, CONTACTS_END, Network


class MeasuredNetwork(Network):
    """The network of recorded link ends; `arrived(at, to, sender, packet)` is called for every reception."""

    def __init__(
        self,
        ends: Sequence[LinkEnd],
        arrived: Callable[[Instant, NodeId, NodeId, Packet], None] = lambda at, to, sender, packet: None,
    ) -> None:
        self._ends = ends
        self._arrived = arrived
        taken = [one.time for end in ends for one in end.sent if one.time is not None]
        self._usual: Duration = max(1, round(median(taken))) if taken else 1
        self._lanes: dict[tuple[NodeId, NodeId], _Lane] = {}
        self._counts = {"transfers_measured": 0, "transfers_like_others": 0, "transfers_cut": 0}

    def begin(self) -> None:
        for end in self._ends:
            self.world.schedule_phase(CONTACTS_BEGIN, end.up, self._up, end)
            if end.down is not None:
                self.world.schedule_phase(CONTACTS_END, max(end.down, end.up + 1), self._down, end)

    def _up(self, end: LinkEnd) -> None:
        pair = (end.node, end.peer)
        if not self.world.is_up(end.node) or pair in self._lanes:
            return
        self._lanes[pair] = _Lane(end)
        self.world.link_up(end.node, end.peer, RADIO)

    def _down(self, end: LinkEnd) -> None:
        lane = self._lanes.get((end.node, end.peer))
        if lane is not None and lane.end is end:
            self._close(lane)

    def _close(self, lane: _Lane) -> None:
        del self._lanes[lane.end.node, lane.end.peer]
        lane.open = False
        self.world.link_down(lane.end.node, lane.end.peer, RADIO)

    def node_down(self, node: NodeId) -> None:
        for lane in [lane for pair, lane in self._lanes.items() if pair[0] == node]:
            self._close(lane)

    def send(self, sender: NodeId, send: Send) -> None:
        to = [peer for node, peer in self._lanes if node == sender] if send.to == NEIGHBOURS else [send.to]
        for peer in to:
            lane = self._lanes.get((sender, peer))
            if lane is not None:
                self._transmit(lane, send)
            elif send.key is not None:
                self.world.soon(self.world.sent, sender, send.key, False)

    def _transmit(self, lane: _Lane, send: Send) -> None:
        world, end = self.world, lane.end
        time, gap = self._time(lane, send.packet)
        world.transmitted(end.node, send.packet, end.peer, send.over)
        if time is not None:
            lane.last = max(lane.last, world.now + time)
            world.schedule(lane.last, self._arrive, lane, send)
        if send.key is not None:
            world.schedule(world.now + max(1, gap), self._left, lane, send.key)

    def _time(self, lane: _Lane, packet: Packet) -> tuple[Duration | None, Duration]:
        same = lane.measured.get(content_of(packet))
        if same:
            self._counts["transfers_measured"] += 1
            one = same.pop(0) if len(same) > 1 else same[0]
            return one.time, one.gap
        self._counts["transfers_like_others"] += 1
        sent = lane.end.sent
        if not sent:
            return self._usual, self._usual
        place = min(bisect_left(sent, self.world.now, key=lambda one: one.at), len(sent) - 1)
        if place and self.world.now - sent[place - 1].at < abs(sent[place].at - self.world.now):
            place -= 1
        return sent[place].time, sent[place].gap

    def _left(self, lane: _Lane, key: Key) -> None:
        if lane.open:
            self.world.sent(lane.end.node, key, True)

    def _arrive(self, lane: _Lane, send: Send) -> None:
        """Hand over a packet if the link is up at the receiver's end too; otherwise count it as cut."""
        to, sender = lane.end.peer, lane.end.node
        if (to, sender) not in self._lanes:
            self._counts["transfers_cut"] += 1
            return
        self._arrived(self.world.now, to, sender, send.packet)
        self.world.receive(to, send.packet, sender, send.over)

    def cancel(self, sender: NodeId, key: Key) -> None:
        """Nothing to do: a packet leaves as soon as it is sent."""

    def counters(self) -> Mapping[str, int]:
        return self._counts


class _Lane:
    """One end of a link while it is up: its recorded transfers, and when its last packet arrives."""

    __slots__ = ("end", "last", "measured", "open")

    def __init__(self, end: LinkEnd) -> None:
        self.end = end
        self.last: Instant = 0
        self.open = True
        self.measured: dict[Content, list[Transfer]] = {}
        for one in end.sent:
            self.measured.setdefault(one.content, []).append(one)
