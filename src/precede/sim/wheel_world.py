"""A world whose packets are machine words in a wheel, for networks that only delay them (docs/decisions/0046).

In `World` a packet under way is an object in the buckets of the queue, which are sorted. Here it is one word:
the place of the packet, its medium, its receiver and its sender. Everything of the last phase of an instant is
in the wheel, because events of one phase keep the order in which they were scheduled. Earlier phases stay in
the queue. Rows, draws and numbers of events are those of `World` (tests/sim/test_wheel_world.py).

Used only where the package is compiled (`world_for`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mypy_extensions import i64, mypyc_attr

from precede.core.effects import RADIO, WIRED, Medium
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.eventlog.recorder import Recorder
from precede.eventlog.rows import MeasuredPacket
from precede.sim.clocks import Clock
from precede.sim.networks.network import Network
from precede.sim.plain_writer import PacketsUnderWay
from precede.sim.queue import LAST_PHASE, PHASE_BITS, TAKEN, Call
from precede.sim.wheel import NEVER, Wheel
from precede.sim.world import FOREVER, MakeNode, World

NODE_BITS: Final = 16
"""A word of the wheel has the content of a packet, its receiver and its sender, from the high bits down."""
NODES: Final = 1 << NODE_BITS
"""A world has at most so many nodes."""
NODE_MASK: Final = NODES - 1
_BATCH: Final = 2048


class WheelPackets(PacketsUnderWay):
    """The packets under way: `packets` has each at its place while any copy of it flies."""

    def __init__(self, wheel: Wheel) -> None:
        self._wheel = wheel
        self.packets: list[MeasuredPacket | None] = []
        self._unused: list[int] = []

    def launch(self, at: Instant, to: NodeId, packet: MeasuredPacket, sender: NodeId, over: Medium) -> None:
        if packet.place < 0:
            self._place(packet)
        packet.under_way += 1
        content = packet.place << 1 | over
        self._wheel.add(at, (content << NODE_BITS | to) << NODE_BITS | sender)

    def landed(self, packet: MeasuredPacket) -> None:
        """Count a copy that has landed and is handled; after the last one the place is free."""
        packet.under_way -= 1
        if packet.under_way == 0:
            self.packets[packet.place] = None
            self._unused.append(packet.place)
            packet.place = -1

    def _place(self, packet: MeasuredPacket) -> None:
        if self._unused:
            packet.place = self._unused.pop()
            self.packets[packet.place] = packet
        else:
            packet.place = len(self.packets)
            self.packets.append(packet)


@mypyc_attr(allow_interpreted_subclasses=True)
class WheelWorld(World):
    """A world of at most `NODES` nodes.

    `_calls` are the functions that the wheel has for the last phase, by number; their words are negative.
    `_next_call` is the instant of the first event in the simulator's queue.
    """

    def __init__(
        self,
        seed: int,
        nodes: int,
        make_node: MakeNode,
        network: Network,
        recorder: Recorder,
        clocks: Mapping[NodeId, Clock] | None = None,
    ) -> None:
        assert nodes <= NODES
        super().__init__(seed, nodes, make_node, network, recorder, clocks)
        self.wheel = Wheel()
        self._packets = WheelPackets(self.wheel)
        self.writer.under_way = self._packets
        self._calls: dict[int, tuple[Callable[..., None], tuple[Any, ...]]] = {}
        self._last_call = 0
        self._next_call: i64 = 0

    @property
    def handled(self) -> int:
        return super().handled + self.wheel.taken

    def busy(self) -> bool:
        return super().busy() or self.wheel.is_waiting()

    def put(self, at: Instant, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._last_call += 1
        self._calls[self._last_call] = function, arguments
        self.wheel.add(min(at, NEVER), -self._last_call)

    def schedule_phase(self, phase: int, at: Instant, function: Callable[..., None], *arguments: Any) -> None:
        if phase == LAST_PHASE:
            self.push(at, function, arguments)
        else:
            self.queue.push_phase(phase, at, function, arguments)
            due: i64 = min(at, NEVER)
            self._next_call = min(self._next_call, due)

    def land_word(self, word: i64) -> None:
        """Give the packet of a word to its receiver."""
        content = word >> (2 * NODE_BITS)
        packet = self._packets.packets[content >> 1]
        assert packet is not None
        self.writer.last = packet
        over: Medium = WIRED if content & 1 else RADIO
        self.receive((word >> NODE_BITS) & NODE_MASK, packet.packet, word & NODE_MASK, over)
        self._packets.landed(packet)

    # -- the event loop ----------------------------------------------------------------------------------

    def _take_events(self, until: Instant) -> bool:
        """Handle up to `_BATCH` events that are due by an instant. Return False when none is left."""
        queue = self.queue
        limit = until << PHASE_BITS | LAST_PHASE
        if queue.soon:
            self._call_soon()
        left: i64 = _BATCH
        while True:
            self._next_call = NEVER
            if queue.open(FOREVER << PHASE_BITS):
                self._next_call = queue.current[queue.place].when >> PHASE_BITS
            left = self._take_from_wheel(until, left)
            if left <= 0:
                return True
            if not queue.open(limit):
                return False
            event = queue.current[queue.place]
            queue.current[queue.place] = TAKEN
            queue.place += 1
            self.now = event.when >> PHASE_BITS
            assert isinstance(event, Call)
            event.function(*event.arguments)
            if queue.soon:
                self._call_soon()
            left -= 1

    def _take_from_wheel(self, until: i64, left: i64) -> i64:
        """Handle events of the wheel up to the next call from the queue. Return how many may still follow."""
        wheel, soon = self.wheel, self.queue.soon
        while left > 0 and wheel.seek(min(until, self._next_call - 1)):
            word = wheel.take()
            left -= 1
            self.now = wheel.at
            if word >= 0:
                self.land_word(word)
            else:
                function, arguments = self._calls.pop(-word)
                function(*arguments)
            if soon:
                self._call_soon()
        return left
