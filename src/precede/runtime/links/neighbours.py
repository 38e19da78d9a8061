"""The neighbours on one transport: turns frames from places into packets from nodes, and back.

It seals and opens frames, cuts and joins packets, learns each neighbour's place from its frames, sends beacons,
and reports when a neighbour appears and when it has been silent too long. A packet to one neighbour goes
through a `Channel`: it arrives once and in order while the link is up. A packet to all neighbours is sent once
and may be lost. Everything that is dropped is counted.

Every node that is heard is a neighbour; or, `by_hand`, only nodes whose link the program has opened, for
example from a trace of contacts. An opened link is up only while the other end is heard.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from precede.core.effects import Key
from precede.core.errors import Refused
from precede.core.identity import NEIGHBOURS, NodeId
from precede.runtime.links.channel import HEADER, Channel, Queued
from precede.runtime.links.fragments import Fragments
from precede.runtime.transports.transport import Transport, Where

BEACON: Final = 0
LOOSE: Final = 1
CHANNEL: Final = 2
QUIET_BEACONS: Final = 4
MOST_HELD: Final = 1024


class Door(Protocol):
    """Admission of frames: `sealing.Sealer` or `sealing.OpenDoor`."""

    dropped: Counter[str]

    def seal(self, data: bytes) -> bytes: ...

    def open(self, frame: bytes) -> tuple[NodeId, int, bytes] | None: ...


class Neighbour:
    """A node that is heard: its place, its boot, the beacons since it was last heard, the channel to it."""

    __slots__ = ("boot", "channel", "silent", "where")

    def __init__(self, where: Where, boot: int, channel: Channel) -> None:
        self.where = where
        self.boot = boot
        self.silent = 0
        self.channel = channel


class Links:
    """The neighbours on one transport. It calls `packet`, `up`, `down` and `left` as events happen.

    `by_hand`: only opened links count. `patient`: packets that cannot be sent, or were not acknowledged when a
    link went down, are kept within bounds and sent when the neighbour returns, as protocols without
    acknowledgements expect of a wire (a neighbour that has restarted may receive a packet twice). `alone`: one
    neighbour at a time, as a mobile host has one cell.
    """

    def __init__(
        self,
        transport: Transport,
        door: Door,
        seal_overhead: int,
        packet: Callable[[bytes, NodeId], None],
        up: Callable[[NodeId], None],
        down: Callable[[NodeId], None],
        left: Callable[[Key, bool], None],
        *,
        most_peers: int = 1024,
        by_hand: bool = False,
        patient: bool = False,
        alone: bool = False,
    ) -> None:
        self.on_tick: Callable[[], None] = lambda: None
        self._transport = transport
        self._door = door
        self._piece_bytes = transport.largest - seal_overhead - 1 - HEADER.size
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
        self._opened: dict[NodeId, Where] = {}
        self._held: dict[NodeId, deque[Queued]] = {}
        self._paused: dict[NodeId, Neighbour] = {}
        self._session = int.from_bytes(os.urandom(3), "big") + 1
        self.dropped_here: Counter[str] = Counter()
        transport.on_link = self._on_link

    # -- out ---------------------------------------------------------------------------------------------

    def send(self, data: bytes, to: NodeId, key: Key | None = None) -> int:
        """Send a packet to one neighbour or to all; returns its bytes on the wire, 0 if it cannot be sent."""
        try:
            pieces = self._fragments.cut(data, self._piece_bytes)
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
        if not near.channel.send(pieces, key):
            self.dropped_here["queue_full"] += 1
            return 0
        return sum(map(len, pieces))

    def cancel(self, key: Key) -> None:
        """Cancel a keyed packet that is still queued."""
        for near in self._near.values():
            near.channel.cancel(key)

    def _send_to_all(self, pieces: list[bytes], key: Key | None) -> int:
        sent = 0
        for piece in pieces:
            frame = self._door.seal(bytes((LOOSE,)) + piece)
            sent += len(frame)
            self._broadcast(frame)
        if key is not None:
            self._left(key, True)
        return sent

    def _broadcast(self, frame: bytes) -> None:
        """Send a frame to all neighbours, also to those that a broadcast of the transport does not reach."""
        if not self._by_hand:
            self._transport.broadcast(frame)
        for near in self._near.values():
            if self._by_hand or not self._transport.broadcast_reaches(near.where):
                self._transport.send(frame, near.where)

    def _hold(self, to: NodeId, queued: Queued) -> int:
        """Keep a packet for an absent neighbour; returns its bytes, 0 if there are too many."""
        held = self._held.setdefault(to, deque())
        if len(held) >= MOST_HELD:
            self.dropped_here["queue_full"] += 1
            return 0
        held.append(queued)
        return sum(map(len, queued.pieces))

    def _transmit(self, node: NodeId, header: bytes, piece: bytes) -> None:
        near = self._near.get(node)
        if near is not None:
            self._transport.send(self._door.seal(b"\x02" + header + piece), near.where)

    # -- in ----------------------------------------------------------------------------------------------

    def frame(self, frame: bytes, where: Where) -> None:
        """A frame was received from a place."""
        opened = self._door.open(frame)
        if opened is None:
            return
        sender, boot, data = opened
        self.on_tick()
        if not data or (self._by_hand and sender not in self._opened):
            self.dropped_here["no_link"] += 1
            return
        near = self._near.get(sender)
        if near is not None and near.boot != boot:
            self._forget(sender, for_good=True)  # it has restarted and lost the state of its channel
            near = None
        if near is None:
            near = self._meet(sender, boot, where)
            if near is None:
                return
        if near.where != where:
            self._transport.known(near.where, False)
            self._transport.known(where, True)
            near.where = where
        near.silent = 0
        if data[0] == CHANNEL:
            self._channel_frame(sender, near, data)
        elif data[0] == LOOSE:
            self._join(data[1:], sender)

    def _channel_frame(self, sender: NodeId, near: Neighbour, data: bytes) -> None:
        if len(data) < 1 + HEADER.size:
            self.dropped_here["truncated"] += 1
            return
        theirs, mine, number, ack = HEADER.unpack_from(data, 1)
        channel = near.channel
        if theirs < channel.theirs:
            return  # a late frame of an earlier session
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
        for piece in channel.received(number, ack if mine == channel.session else 0, data[1 + HEADER.size :]):
            self._join(piece, sender)

    def _join(self, piece: bytes, sender: NodeId) -> None:
        packet = self._fragments.join(piece, sender)
        if packet is not None:
            self._packet(packet, sender)

    def _meet(self, node: NodeId, boot: int, where: Where) -> Neighbour | None:
        """A node is heard for the first time, or again: make it a neighbour. None if there are too many."""
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
            channel = Channel(self._session, partial(self._transmit, node), self._left)
        near = self._near[node] = Neighbour(where, boot, channel)
        self._transport.known(where, True)
        channel.acknowledge()
        channel.resume()
        for queued in self._held.pop(node, ()):
            channel.send(queued.pieces, queued.key)
        self._up(node)
        return near

    # -- links -------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Once each beacon interval: send a beacon, and drop neighbours that were silent too long."""
        beacon = self._door.seal(bytes((BEACON,)))
        if self._by_hand:
            for where in self._opened.values():
                self._transport.send(beacon, where)
        else:
            self._broadcast(beacon)
        for node, near in list(self._near.items()):
            near.silent += 1
            if near.silent > QUIET_BEACONS:
                self._forget(node)

    def open(self, node: NodeId, where: Where) -> None:
        """Open a link by hand; it is up as soon as the other end is heard."""
        self._opened[node] = where
        self._transport.send(self._door.seal(bytes((BEACON,))), where)

    def close(self, node: NodeId) -> None:
        """Close a link by hand."""
        self._opened.pop(node, None)
        if node in self._near:
            self._forget(node)

    def _on_link(self, where: Where, up: bool) -> None:
        """The transport reports a place: send it a beacon, or drop the neighbours there."""
        if up:
            self._transport.send(self._door.seal(bytes((BEACON,))), where)
            return
        for node in [node for node, near in self._near.items() if near.where == where]:
            self._forget(node)

    @property
    def largest_packet(self) -> int:
        """The size in bytes of the largest packet that can be sent."""
        return self._fragments.most(self._piece_bytes)

    def neighbours(self) -> list[NodeId]:
        """The nodes that are heard now."""
        return sorted(self._near)

    def queued(self) -> int:
        """How many pieces wait to be sent or acknowledged."""
        return sum(near.channel.queued for near in self._near.values())

    def dropped(self) -> dict[str, int]:
        """How many frames, pieces and packets were dropped, by reason."""
        counts = Counter(self._door.dropped) + self._fragments.dropped + self.dropped_here
        return dict(sorted(counts.items()))

    def stop(self) -> None:
        """Send nothing any more."""
        for near in (*self._near.values(), *self._paused.values()):
            near.channel.close()
        self._near.clear()
        self._paused.clear()

    def _forget(self, node: NodeId, *, for_good: bool = False) -> None:
        """A neighbour is no longer heard; or, `for_good`, its channel must start anew."""
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
        """End a channel. Packets that may not have arrived are kept if the links are patient, else lost."""
        lost = channel.close()
        self._fragments.forget(node)
        if self._patient:
            waiting = self._held.pop(node, deque())
            for queued in (*lost, *waiting):
                queued.sent = 0
                self._hold(node, queued)
            return
        for queued in lost:
            if queued.key is not None and not queued.last:
                self._left(queued.key, False)
