"""Neighbours: from addresses and frames to nodes and packets.

A packet to one neighbour goes through a reliable `Channel`: it arrives once and in order while the link is up.
A packet to all neighbours is transmitted once and may be lost. `admission.py` decides who sent a frame. Only
authentic frames of a session bring a link up or keep it up; a beacon, which any member can forge, prolongs it
by a few intervals at most. Every member that is heard is a neighbour; or, `by_hand`, only members whose link
the program has opened, for example from a trace of contacts.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from precede.core.effects import Key
from precede.core.errors import Refused
from precede.core.identity import NEIGHBOURS, NodeId
from precede.runtime.links.admission import Admission
from precede.runtime.links.bundles import INTRODUCE_YOURSELF, INTRODUCTIONS, PACKET, TERMS, bundled, packets_in
from precede.runtime.links.channel import HEADER, Channel, HeldPackets, Queued
from precede.runtime.links.fragments import HEADER_BYTES, Fragments
from precede.runtime.links.link_events import LinkEvents
from precede.runtime.links.neighbour import Neighbour
from precede.runtime.observe.traffic import Tap
from precede.runtime.transports.transport import Transport, Where

MOST_PEERS: Final = 1024
BEACON: Final = 0
LOOSE: Final = 1
"""The first byte of data for everybody: a beacon, or a piece of a packet."""
_SENDER_BYTES: Final = 8
_UNPROVEN: Final[NodeId] = -1


class Links:
    """The neighbours over one transport.

    `packet` is called with each packet that arrives, its sender, and whether it came to all, in which case any
    member can have sent it; `up` and `down` when a link changes, `left` when a keyed packet was sent or lost.
    `patient`: packets that cannot be sent, or were not acknowledged when a link went
    down, are kept within bounds and sent when the neighbour returns, as protocols without acknowledgements
    expect of a wire (a neighbour that restarted may receive a packet again). `alone`: one neighbour, as a host
    has one cell.
    """

    def __init__(
        self,
        transport: Transport,
        admission: Admission,
        packet: Callable[[bytes, NodeId, bool], None],
        up: Callable[[NodeId], None],
        down: Callable[[NodeId], None],
        left: Callable[[Key, bool], None],
        *,
        most_peers: int = MOST_PEERS,
        by_hand: bool = False,
        patient: bool = False,
        alone: bool = False,
    ) -> None:
        self._transport = transport
        self.tap = Tap(transport)
        self._admission = admission
        self._room = transport.largest - admission.overhead - max(HEADER.size, 1 + _SENDER_BYTES)
        self._packet = packet
        self._up = up
        self._down = down
        self._left = left
        self._most_peers = most_peers
        self._by_hand = by_hand
        self._patient = patient
        self._alone = alone
        self._fragments = Fragments()
        self._near: dict[NodeId, Neighbour] = {}
        self._ready: dict[NodeId, tuple[int, Where]] = {}
        self._opened: dict[NodeId, Where] = {}
        self._held = HeldPackets()
        self._paused: dict[NodeId, Neighbour] = {}
        self._session = int.from_bytes(os.urandom(3), "big") + 1
        self.dropped_here: Counter[str] = Counter()
        self.on_frame: Callable[[], None] = lambda: None
        admission.connect(
            LinkEvents(
                *(self.tap.send, self._on_ready, self._on_moved, self._on_alive, self._introduce),
                lambda where: self._send_loose(TERMS + admission.agreement.encoded(), where),
            )
        )
        transport.on_link = self._on_link

    # -- out -------------------------------------------------------------------------------------------------

    def send(self, data: bytes, to: NodeId, key: Key | None = None) -> int:
        """Send a packet to a neighbour or to all of them. Returns its bytes, 0 if it cannot be sent or kept."""
        return self._send(PACKET + data, to, key)

    def send_together(self, packets: Sequence[bytes], to: NodeId) -> int:
        """Send packets in order, in as few frames as they fit into. Returns their bytes as `send` does."""
        return sum(self._send(whole, to, None) for whole in bundled(packets, self._room - HEADER_BYTES))

    def _send(self, whole: bytes, to: NodeId, key: Key | None) -> int:
        try:
            pieces = self._fragments.cut(whole, self._room)
        except Refused:
            self.dropped_here["does_not_fit"] += 1
            return 0
        if to == NEIGHBOURS:
            return self._send_to_all(pieces, key)
        near = self._near.get(to)
        if near is None:
            return self._hold(to, Queued(pieces, key)) if self._patient else 0
        if near.channel.worn_out:
            self._forget(to, for_good=True)
            return 0
        self._pass_introductions(to, near)
        if not near.channel.send(pieces, key):
            self.dropped_here["queue_full"] += 1
            return 0
        return sum(map(len, pieces))

    def cancel(self, key: Key) -> None:
        for near in self._near.values():
            near.channel.cancel(key)

    def _send_to_all(self, pieces: list[bytes], key: Key | None) -> int:
        sent = 0
        for node, near in self._near.items():
            self._pass_introductions(node, near)
        for piece in pieces:
            frame = self._seal_piece(piece)
            sent += len(frame)
            self._broadcast(frame)
        if key is not None:
            self._left(key, True)
        return sent

    def _seal_piece(self, piece: bytes) -> bytes:
        sender = self._admission.number.to_bytes(_SENDER_BYTES, "big")
        return self._admission.seal_to_all(bytes((LOOSE,)) + sender + piece)

    def _broadcast(self, frame: bytes) -> None:
        """Send a frame to all nodes in range and to all neighbours; `by_hand` to neighbours alone."""
        if not self._by_hand:
            self.tap.broadcast(frame)
        for near in self._near.values():
            if self._by_hand or not self._transport.broadcast_reaches(near.where):
                self.tap.send(frame, near.where)

    def _hold(self, to: NodeId, queued: Queued) -> int:
        if not self._held.add(to, queued):
            self.dropped_here["queue_full"] += 1
            return 0
        return sum(map(len, queued.pieces))

    def _transmit(self, node: NodeId, header: bytes, piece: bytes) -> None:
        sealed = self._admission.seal_to(node, header + piece)
        if sealed is not None:
            self.tap.send(*sealed)

    def _introduce(self, where: Where, kind: bytes = INTRODUCE_YOURSELF) -> None:
        introduction = self._admission.own_introduction()
        if introduction is not None:
            self._send_loose(kind + introduction, where)

    def _send_loose(self, data: bytes, where: Where) -> None:
        """Send data that any member may read to an address, as far as the address's budget allows."""
        for piece in self._fragments.cut(data, self._room):
            frame = self._seal_piece(piece)
            if self._admission.may_send(where, len(frame)):
                self.tap.send(frame, where)

    def _pass_introductions(self, node: NodeId, near: Neighbour, beacon: bool = False) -> None:
        """Tell a neighbour about members that it may not know; on a slow medium only after a beacon of it."""
        for introductions in self._admission.introductions(node) if beacon or self._transport.pace <= 1 else ():
            near.channel.send(self._fragments.cut(INTRODUCTIONS + introductions, self._room))

    def frame(self, frame: bytes, where: Where) -> None:
        """Handle a frame that was heard at an address."""
        self.on_frame()
        self.tap.heard(frame)
        now = time.monotonic() / self._transport.pace
        arrived = self._admission.frame(frame, where, now)
        if arrived is None or not arrived.data:
            return
        if arrived.sender is None:
            self._for_everybody(arrived.data, where, now)
        elif arrived.sender in self._near:
            self._channel_frame(arrived.sender, self._near[arrived.sender], arrived.data)
        else:
            self.dropped_here["no_link"] += 1

    def _for_everybody(self, data: bytes, where: Where, now: float) -> None:
        if data[0] == BEACON:
            self._beacon(data[1:], where, now)
        elif data[0] == LOOSE and len(data) > 1 + _SENDER_BYTES:
            sender = int.from_bytes(data[1 : 1 + _SENDER_BYTES], "big", signed=True)
            self._join(data[1 + _SENDER_BYTES :], sender if sender in self._near else _UNPROVEN, where, now)
        else:
            self.dropped_here["kind"] += 1

    def _beacon(self, data: bytes, where: Where, now: float) -> None:
        sender = self._admission.beacon_heard(data, where, now)
        if sender is None:
            return
        if sender in self._near:
            self._near[sender].silent = 0
            self._pass_introductions(sender, self._near[sender], beacon=True)
        elif self._may_meet(sender):
            self._admission.ping(sender)  # its answer proves that it is there

    def _channel_frame(self, sender: NodeId, near: Neighbour, data: bytes) -> None:
        if len(data) < HEADER.size:
            self.dropped_here["truncated"] += 1
            return
        theirs, mine, number, ack = HEADER.unpack_from(data)
        channel = near.channel
        if theirs < channel.theirs:
            return  # late, from an earlier channel of this link
        if theirs > channel.theirs:
            if channel.confirmed:
                self._forget(sender, for_good=True)
                fresh = self._meet(sender, near.boot, near.where)
                if fresh is None:
                    return
                channel = fresh.channel
            channel.begin_again(theirs)
            if number == 0:
                channel.acknowledge()
        channel.confirmed = channel.confirmed or mine == channel.session
        acknowledged = ack if mine == channel.session else 0
        for piece in channel.received(number, acknowledged, data[HEADER.size :]):
            self._join(piece, sender, None, 0.0)

    def _join(self, piece: bytes, sender: NodeId, where: Where | None, now: float) -> None:
        """Add a piece and handle its packet once complete. `where` is None for a piece from a session."""
        packet = self._fragments.join(piece, sender)
        if not packet:
            return
        kind = packet[:1]
        if (packets := packets_in(packet)) is not None:
            self._take(packets, sender, where is not None)
        elif kind in (INTRODUCTIONS, INTRODUCE_YOURSELF):
            self._admission.introduced(packet[1:], now)
            if kind == INTRODUCE_YOURSELF and where is not None:
                self._introduce(where, INTRODUCTIONS)
        elif kind != TERMS or not self._admission.agreement.terms_heard(packet[1:]):
            self.dropped_here["kind"] += 1

    def _take(self, packets: Sequence[bytes], sender: NodeId, to_all: bool) -> None:
        if sender == _UNPROVEN:
            self.dropped_here["no_link"] += 1
            return
        for packet in packets:
            self._packet(packet, sender, to_all)

    def _on_ready(self, node: NodeId, boot: int, where: Where) -> None:
        """Handle a new boot of a member: drop the link with an earlier one, and start one if it may be met."""
        self._ready[node] = (boot, where)
        if node in self._near:
            self._forget(node, for_good=True)
        if self._may_meet(node):
            self._meet(node, boot, where)

    def _on_alive(self, node: NodeId) -> None:
        near = self._near.get(node)
        if near is not None:
            near.silent = near.unproven = 0
        elif self._may_meet(node):
            self._meet(node, *self._ready[node])

    def _on_moved(self, node: NodeId, where: Where) -> None:
        self._ready[node] = (self._ready[node][0], where)
        near = self._near.get(node)
        if near is not None:
            self._transport.known(near.where, False)
            self._transport.known(where, True)
            near.where = where

    def _may_meet(self, node: NodeId) -> bool:
        if self._by_hand and node not in self._opened:
            self.dropped_here["no_link"] += 1
            return False
        return node in self._ready

    def _meet(self, node: NodeId, boot: int, where: Where) -> Neighbour | None:
        """Bring a link up, send what was kept for it and report it. None if there are too many neighbours."""
        if len(self._near) >= (1 if self._alone else self._most_peers):
            if not self._alone:
                self.dropped_here["too_many_peers"] += 1
            return None
        paused = self._paused.pop(node, None)
        if paused is not None and paused.boot == boot:
            channel = paused.channel
        else:
            if paused is not None:
                self._give_up(node, paused.channel)
            self._session += 1
            channel = Channel(self._session, partial(self._transmit, node), self._left, self._transport.pace)
        near = self._near[node] = Neighbour(where, boot, channel, self._admission.number < node)
        self._transport.known(where, True)
        channel.acknowledge()
        channel.resume()
        for queued in self._held.take(node):
            channel.send(queued.pieces, queued.key)
        self._up(node)
        return near

    def tick(self) -> None:
        """Call once each beacon interval: transmit a beacon, and take down links that were silent too long."""
        beacon = self._sealed_beacon()
        if self._by_hand:
            for where in self._opened.values():
                self.tap.send(beacon, where)
        else:
            self._broadcast(beacon)
        for node, near in list(self._near.items()):
            near.count_interval()
            if near.is_gone:
                self._forget(node)
            elif near.must_prove:
                self._admission.ping(node)

    def tick_sessions(self) -> None:
        """Call about every 50 ms: repeat handshakes that are not answered."""
        self._admission.tick(time.monotonic() / self._transport.pace)

    def open(self, node: NodeId, where: Where) -> None:
        """Open a link to an address; it is up as soon as a frame of the other end arrives."""
        self._opened[node] = where
        self._greet(where)

    def close(self, node: NodeId) -> None:
        self._opened.pop(node, None)
        if node in self._near:
            self._forget(node)

    def _greet(self, where: Where) -> None:
        self._admission.trust(where)
        self.tap.send(self._sealed_beacon(), where)

    def _sealed_beacon(self) -> bytes:
        return self._admission.seal_to_all(bytes((BEACON,)) + self._admission.beacon())

    def _on_link(self, where: Where, up: bool) -> None:
        """Handle a report of the transport that an address can be reached, or no longer."""
        if up:
            self._greet(where)
            return
        for node in [node for node, near in self._near.items() if near.where == where]:
            self._forget(node)

    @property
    def largest_packet(self) -> int:
        return self._fragments.most(self._room) - 1

    def neighbours(self) -> list[NodeId]:
        return sorted(self._near)

    @property
    def handshakes(self) -> Counter[str]:
        return self._admission.handshakes

    def dropped(self) -> dict[str, int]:
        """Count what this member dropped on these links, by reason."""
        counts = Counter(self._admission.dropped) + self._fragments.dropped + self.dropped_here
        return dict(sorted(counts.items()))

    def stop(self) -> None:
        """Close all channels: no further frame leaves."""
        for near in (*self._near.values(), *self._paused.values()):
            near.channel.close()
        self._near.clear()
        self._paused.clear()

    def _forget(self, node: NodeId, *, for_good: bool = False) -> None:
        """Take a link down; `for_good` if the other end started again, so that its channel cannot continue."""
        near = self._near.pop(node)
        self._transport.known(near.where, False)
        if self._patient and not for_good:
            near.channel.pause()
            self._paused[node] = near
            if len(self._paused) > self._most_peers:
                oldest = next(iter(self._paused))
                self._give_up(oldest, self._paused.pop(oldest).channel)
        else:
            self._give_up(node, near.channel)
        self._down(node)

    def _give_up(self, node: NodeId, channel: Channel) -> None:
        """Close a channel. If `patient`, keep packets that may not have arrived for the next one."""
        lost = channel.close()
        self._fragments.forget(node)
        if self._patient:
            for queued in (*lost, *self._held.take(node)):
                queued.sent = 0
                self._hold(node, queued)
            return
        for queued in lost:
            if queued.key is not None and not queued.last:
                self._left(queued.key, False)
