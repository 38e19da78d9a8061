"""The slotted contention channel of a cell: back-off, collisions, interference between cells, optional retries.

It follows the distributed coordination function of IEEE 802.11. A cell has a clock of idle slots, which stops
while the channel is busy. Each node with a frame draws a back-off key, a reading of that clock. The smallest
key transmits, an idle time of DIFS after the last transmission; equal keys collide. A test compares the
collision probability with that of Bianchi (2000). Cells do not hear each other's carrier: a frame is lost at
a receiver that has a transmitting node of another cell in range at the same time. Not modelled: hidden
terminals inside a cell, capture, preambles, the air time of MAC acknowledgements.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from math import ceil, hypot
from typing import Final, final

from precede.core.effects import RADIO, Key, Send
from precede.core.identity import NEIGHBOURS, NodeId
from precede.core.instants import SECOND, Duration, Instant
from precede.sim.draws import Draws
from precede.sim.networks.radio import Airing, Cells, FrameQueue, Radio

SLOT: Final[Duration] = 20
DIFS: Final[Duration] = 50
LEAST_WINDOW: Final = 32
MOST_WINDOW: Final = 1024


class ContentionRadio(Radio):
    """One channel per cell. A unicast frame that nobody received is sent again up to `retries` times."""

    def __init__(self, bitrate: float, range_m: float, retries: int = 0, window: int = LEAST_WINDOW) -> None:
        self._bitrate = bitrate
        self._range = range_m
        self._retries = retries
        self._window = window
        self._healed = False
        self._counts = {"radio_frames": 0, "radio_collided": 0, "radio_interfered": 0, "radio_retried": 0}

    def attach(self, cells: Cells, nodes: int) -> None:
        super().attach(cells, nodes)
        self._transmitters = [_Transmitter(node) for node in range(nodes)]
        self._channels = [_Channel(station) for station in range(cells.stations)]
        for one in self._channels:
            for other in self._channels:
                a, b = cells.place[one.station], cells.place[other.station]
                if one is not other and hypot(a[0] - b[0], a[1] - b[1]) <= 3 * self._range:
                    one.near.append(other)

    def send(self, sender: NodeId, send: Send) -> None:
        cell = self.cells.cell[sender]
        if cell < 0 or (sender >= self.cells.stations and send.to != cell):
            if send.key is not None:
                self.world.soon(self.world.sent, sender, send.key, False)
            return
        transmitter = self._transmitters[sender]
        transmitter.queue.put(send)
        if not transmitter.contending:
            self._contend(transmitter, self._channels[cell])

    def cancel(self, sender: NodeId, key: Key) -> None:
        self._transmitters[sender].queue.remove(key)

    def drop(self, node: NodeId) -> None:
        transmitter = self._transmitters[node]
        transmitter.contending = False
        transmitter.turn += 1
        for send in transmitter.queue.clear():
            if send.key is not None:
                self.world.sent(node, send.key, False)

    def heal(self) -> None:
        self._healed = True

    def counters(self) -> Mapping[str, int]:
        return self._counts

    # The contention -----------------------------------------------------------------------------------------

    def _contend(self, transmitter: _Transmitter, channel: _Channel) -> None:
        """Draws a back-off key; the node transmits when the channel's clock reaches it."""
        transmitter.contending = True
        transmitter.turn += 1
        key = channel.clock(self.world.now) + self._backoff(transmitter)
        heappush(channel.waiting, (key, transmitter.node, transmitter.turn))
        if not channel.busy and channel.waiting[0][1] == transmitter.node:
            self._arm(channel)

    def _backoff(self, transmitter: _Transmitter) -> int:
        if transmitter.draw is None:
            generator = self.world.generators.numpy("backoff", transmitter.node)
            transmitter.draw = Draws(lambda count: generator.integers(0, MOST_WINDOW, count)).next
        window = min(self._window << transmitter.tries, max(MOST_WINDOW, self._window))
        return transmitter.draw() * window // MOST_WINDOW

    def _arm(self, channel: _Channel) -> None:
        """Schedules the next transmission: when the idle clock reaches the smallest key."""
        channel.armed += 1
        if channel.waiting:
            at = channel.idle_from + (channel.waiting[0][0] - channel.slot) * SLOT
            self.world.schedule(max(at, self.world.now), self._begin, channel, channel.armed)

    def _begin(self, channel: _Channel, armed: int) -> None:
        if armed != channel.armed or channel.busy:
            return
        key = channel.waiting[0][0]
        airings = []
        while channel.waiting and channel.waiting[0][0] == key:
            _, node, turn = heappop(channel.waiting)
            transmitter = self._transmitters[node]
            if transmitter.turn == turn and transmitter.contending:
                if len(transmitter.queue):
                    airings.append(self._air(transmitter))
                else:
                    transmitter.contending = False
        if not airings:
            self._arm(channel)
            return
        channel.slot, channel.busy = key, True
        channel.remember(airings)
        self.world.schedule(max(airing.end for airing in airings), self._end, channel, airings)

    def _air(self, transmitter: _Transmitter) -> Airing:
        send, now = transmitter.queue.take(), self.world.now
        self._counts["radio_frames"] += 1
        self.world.transmitted(transmitter.node, send.packet, send.to, RADIO)
        time = ceil(send.packet.size_bytes * 8 * SECOND / self._bitrate)
        return Airing(
            transmitter.node, send, now, now + time, self.cells.place[transmitter.node], transmitter.tries
        )

    def _end(self, channel: _Channel, airings: list[Airing]) -> None:
        """Ends transmissions, and hands over the frame unless several collided; then frees the channel."""
        collided = len(airings) > 1 and not self._healed
        for airing in airings:
            transmitter = self._transmitters[airing.sender]
            turn = transmitter.turn
            if collided:
                self._counts["radio_collided"] += 1
                received = False
            else:
                received = self._land(channel, airing)
            if transmitter.turn == turn:
                transmitter.contending = False
                self._after(transmitter, airing, received)
        channel.busy = False
        channel.idle_from = self.world.now + DIFS
        for airing in airings:
            transmitter = self._transmitters[airing.sender]
            cell = self.cells.cell[airing.sender]
            if not transmitter.contending and len(transmitter.queue) and cell >= 0:
                self._contend(transmitter, self._channels[cell])
        self._arm(channel)

    def _after(self, transmitter: _Transmitter, airing: Airing, received: bool) -> None:
        """Reports a frame as sent, or retries a unicast frame that was not received, with twice the window."""
        if not received and airing.send.to != NEIGHBOURS and airing.tries < self._retries:
            self._counts["radio_retried"] += 1
            transmitter.tries = airing.tries + 1
            transmitter.queue.put_back(airing.send)
            return
        transmitter.tries = 0
        if airing.send.key is not None and self.world.is_up(airing.sender):
            transmitter.contending = True
            self.world.sent(airing.sender, airing.send.key, True)
            transmitter.contending = False

    def _land(self, channel: _Channel, airing: Airing) -> bool:
        """Hands a frame to receivers in the cell without another cell's transmitter in range. True if any."""
        if not self.world.is_up(airing.sender):
            return False
        noise = [] if self._healed else channel.noise(airing.start, airing.end)
        packet, sender = airing.send.packet, airing.sender
        heard = False
        for receiver in self.receivers(sender, airing.send.to):
            if noise and self._interfered(receiver, noise):
                self._counts["radio_interfered"] += 1
            else:
                heard = True
                self.world.receive(receiver, packet, sender, RADIO)
        return heard

    def _interfered(self, receiver: NodeId, noise: list[tuple[float, float]]) -> bool:
        x, y = self.cells.place[receiver]
        reach = self._range * self._range
        return any((x - u) * (x - u) + (y - v) * (y - v) <= reach for u, v in noise)


@final
class _Transmitter:
    """One node's queue, and whether it contends for the channel."""

    def __init__(self, node: NodeId) -> None:
        self.node = node
        self.queue: FrameQueue = FrameQueue()
        self.contending: bool = False
        self.turn: int = 0
        self.tries: int = 0
        self.draw: Callable[[], int] | None = None


@final
class _Channel:
    """One cell's channel: its clock of idle slots, the contending nodes, and recent transmissions."""

    def __init__(self, station: NodeId) -> None:
        self.station = station
        self.near: list[_Channel] = []
        self.waiting: list[tuple[int, NodeId, int]] = []
        self.busy: bool = False
        self.slot: int = 0
        self.idle_from: Instant = 0
        self.armed: int = 0
        self.aired: deque[tuple[Instant, Instant, tuple[float, float]]] = deque()
        self.longest: Duration = 0

    def clock(self, now: Instant) -> int:
        """Returns the reading of the idle clock, in slots, at the next slot boundary."""
        if self.busy or now <= self.idle_from:
            return self.slot
        return self.slot - (self.idle_from - now) // SLOT

    def remember(self, airings: list[Airing]) -> None:
        """Keeps transmissions, to find out later which receptions they interfered with."""
        for airing in airings:
            self.longest = max(self.longest, airing.end - airing.start)
            self.aired.append((airing.start, airing.end, airing.place))

    def noise(self, start: Instant, end: Instant) -> list[tuple[float, float]]:
        """Returns the positions of nodes in nearby cells that transmitted between two instants."""
        places: list[tuple[float, float]] = []
        for other in self.near:
            aired = other.aired
            while aired and aired[0][1] + 2 * (self.longest + other.longest) < start:
                aired.popleft()
            places += [place for began, ended, place in aired if began < end and ended > start]
        return places
