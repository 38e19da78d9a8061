"""Runs one node in real time: inputs go through one queue, effects are carried out in order.

The inputs of one turn of the event loop share a transaction of the store. Sends, and deliveries to the
application, wait until it is committed: so a `Persist` is durable before the effects that follow it, and a
`Persist` directly followed by a `Deliver` is one step. If the store fails (a full disk), the node stops as if
it had crashed: nothing that depends on the lost changes leaves it. Rows are the same as the simulator's.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from precede.core.dispatch import EffectHandler
from precede.core.effects import (
    RADIO,
    WIRED,
    Accept,
    Arrive,
    CancelSend,
    CancelTimer,
    Deliver,
    Discard,
    Effects,
    Key,
    Medium,
    Observe,
    Persist,
    Send,
    SetTimer,
)
from precede.core.errors import StoreFailed
from precede.core.identity import MessageId, NodeId
from precede.core.instants import SECOND, Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Node
from precede.core.peaks import Peaks
from precede.eventlog.schema import (
    DELIVERED,
    DISCARDED,
    LEFT,
    OBSERVED,
    PACKET_RECEIVED,
    RECEIVED,
    SENT,
    STARTED,
)
from precede.runtime.clock import SteadyClock, Timers
from precede.runtime.codec import Codec
from precede.runtime.departures import Departures, EncodedPackets, Outside, send_all
from precede.runtime.emulation.transfers import Transfers
from precede.runtime.history.kept import Kept
from precede.runtime.links.inspection import Inspection
from precede.runtime.no_store import NoStore
from precede.runtime.observe.traffic import Traffic
from precede.runtime.reception import EarlyInputs, Reception
from precede.runtime.rows import KeptRows
from precede.runtime.settings import wall_clock
from precede.runtime.store import Store

_MOST_ROWS: Final = 2_000
_MOST_TOGETHER: Final = 256


class Driver(EffectHandler):
    """Runs one node. Inputs are plain calls on the event loop's thread; they are queued and run one by one.

    `speed` is how many of the node's seconds pass in one second of the machine's. Packets wait until `wires`
    wired neighbours were heard, and are then received in their order.
    """

    def __init__(
        self,
        make_node: Callable[[int], Node],
        codec: Codec,
        store: Store | NoStore,
        clock: Callable[[], Instant] = wall_clock,
        rows: KeptRows | None = None,
        speed: float = 1.0,
        wires: int = 0,
    ) -> None:
        self.store = store
        self.outside: dict[Medium, Outside] = {}
        self.dropped: Counter[str] = Counter()
        self.packets = Traffic()
        self.inspection: Inspection | None = None
        self.transfers: Transfers | None = None
        self.rows_logged = 0
        self.peaks = Peaks()
        self.on_deliver: Callable[[Kept, MessageId | None], None] = lambda kept, above: None
        self.on_arrive: Callable[[Message], None] = lambda message: None
        self.on_discard: Callable[[Message, str], None] = lambda message, reason: None
        self.on_failure: Callable[[StoreFailed], None] = lambda error: None
        self.hold: Callable[[Packet, Callable[[], None]], bool] = lambda packet, go_on: False
        self.reception = Reception(codec, self.dropped, self.packets)
        self._clock = SteadyClock(clock, store.remembered("clock", 0))
        self._clock_kept = self._clock.latest
        self._timers = Timers(self._clock, speed, self._fire)
        self.incarnation = store.incarnation()
        self.node_id: NodeId = -1
        self._accepted = store.remembered("accepted", 0)
        self.node = make_node(self.incarnation)
        self._rows = rows
        self._inputs: deque[Callable[[Instant], Effects]] = deque()
        self._early = EarlyInputs(wires)
        self._encoded = EncodedPackets(codec)
        self._departures = Departures()
        self._running = self._scheduled = self._stopped = False

    # -- inputs -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the node. Messages that the application had not acknowledged are delivered to it first."""
        if self._rows is not None:
            self._rows.node_event(STARTED, self._clock.now())
        self.store.remember("starts", self.store.remembered("starts", 0) + 1)
        place = 0
        while untaken := self.store.unacknowledged(place, _MOST_TOGETHER):
            for kept in untaken:
                self.on_deliver(kept, None)
            place = untaken[-1].place
        self._input(lambda now: self.node.start(now, self.store.saved()))
        self._drain()

    def broadcast(
        self, payload: bytes, to: Sequence[NodeId] | None = None, lifetime: Duration | None = None
    ) -> None:
        """Run the queued inputs, then broadcast a message. If the node raises Refused, it has not changed.

        The message is committed and sent at the end of this turn of the event loop, with all others of it.
        """
        if self._stopped:
            return
        if self._inputs and not self._running:
            self._run_inputs(len(self._inputs))
        now = self._clock.now()
        self.carry_out(self.node_id, self.node.broadcast(payload, now, to, lifetime), now)
        self._schedule()

    def packet(self, data: bytes, sender: NodeId, over: Medium = RADIO, to_all: bool = False) -> None:
        """Decode, check and queue a packet. It is counted and dropped if a check fails or the queue is full."""
        now = self._clock.now()
        packet = self.reception.decode(data, now, self._accepted, self.inspection, to_all)
        if packet is None or not self.reception.queued(len(self._inputs) + len(self._early), len(data)):
            return
        receive = partial(self._receive, packet, sender, over, len(data))
        if self._rows is not None:
            self._rows.packet(PACKET_RECEIVED, now, packet, sender, over, len(data))
        if not self._early.keeps(receive) and not self.hold(packet, partial(self._input, receive)):
            self._input(receive)

    def link_up(self, peer: NodeId, over: Medium = RADIO) -> None:
        """Tell the node that a neighbour can be reached; the last wired one releases packets that waited."""
        self._input(lambda now: self._link(True, peer, now, over))
        if over == WIRED:
            for receive in self._early.heard(peer):
                self._input(receive)

    def link_down(self, peer: NodeId, over: Medium = RADIO) -> None:
        self._input(lambda now: self._link(False, peer, now, over))

    def _link(self, up: bool, peer: NodeId, now: Instant, over: Medium) -> Effects:
        if self.transfers is not None and over == RADIO:
            self.transfers.link(now, self.node_id, peer, up)
        return self.node.link_up(peer, now, over) if up else self.node.link_down(peer, now, over)

    def _receive(self, packet: Packet, sender: NodeId, over: Medium, size: int, now: Instant) -> Effects:
        if self.transfers is not None and over == RADIO:
            self.transfers.received(now, self.node_id, sender, packet)
        return self.reception.receive(self.node, packet, sender, over, size, now)

    def left(self, key: Key, ok: bool) -> None:
        """Report to the node that a keyed packet was transmitted (`ok`) or dropped before that."""
        self._input(lambda now: self.node.sent(key, now, ok))

    def leave(self) -> None:
        if self._rows is not None:
            self._rows.node_event(LEFT, self._clock.now())
        self._input(self.node.leave)

    def acknowledge(self, place: int) -> None:
        """Record that the application has processed a delivered message and all before it."""
        if not self._stopped:
            with self.failing():
                self.store.acknowledge(place)

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Crash the node if the store fails inside the block."""
        try:
            yield
        except StoreFailed as error:
            self.fail(error)
            raise

    @property
    def has_store(self) -> bool:
        return isinstance(self.store, Store)

    def unacknowledged(self, after: int, most: int) -> list[Kept]:
        """Return at most `most` of the delivered messages in the store, those after position `after`."""
        with self.failing():
            return self.store.unacknowledged(after, most)

    def stop(self) -> None:
        """Stop the node in good order: everything is committed, and no further input is accepted."""
        self._drain()
        self._stopped = True
        self._timers.cancel_all()
        self.store.remember("clock", self._clock.latest)
        if self._rows:
            self.store.log(self._rows.taken())
        self.store.commit()

    def crash(self) -> None:
        """Stop at once: changes that were not committed are lost."""
        self._stopped = True
        self._timers.cancel_all()
        self._inputs.clear()
        self._departures.clear()
        self.store.abandon()

    def fail(self, error: StoreFailed) -> None:
        """Crash the node because its store failed, and report the failure once."""
        if not self._stopped:
            self.crash()
            self.on_failure(error)

    @property
    def is_settled(self) -> bool:
        """True if everything that the node delivered was handed over."""
        return not self._running and not self._departures

    def run_at_once(self, call: Callable[[Instant], Effects]) -> None:
        """Run an input before all that are queued, and commit it. Its sends and deliveries follow."""
        with self.failing():
            now = self._clock.now()
            self.carry_out(self.node_id, call(now), now)
            self._commit()
        self._schedule()

    # -- the queue of inputs ------------------------------------------------------------------------------

    def _input(self, call: Callable[[Instant], Effects]) -> None:
        """Queue an input. The inputs of one turn of the event loop are committed together."""
        if not self._stopped:
            self._inputs.append(call)
            self._schedule()

    def _schedule(self) -> None:
        if not self._running and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        with suppress(StoreFailed):  # `on_failure` has reported it
            self._drain()

    def _drain(self) -> None:
        """Run the queued inputs, commit, and release sends and deliveries, until nothing is left."""
        if self._running or self._stopped:
            return
        self._running = True
        try:
            with self.failing():
                while self._inputs or self._departures:
                    self._run_inputs(_MOST_TOGETHER)
                    self.peaks.note(self.node.sizes())
                    self._commit()
                    self._departures.release(self._transmit, self.on_deliver)
                    self._encoded.clear()
                self._commit()
        finally:
            self._running = False

    def _run_inputs(self, most: int) -> None:
        """Run the first queued inputs and carry out their effects."""
        inputs = self._inputs
        for _ in range(min(len(inputs), most)):
            call = inputs.popleft()
            now = self._clock.now()
            self.carry_out(self.node_id, call(now), now)

    def _commit(self) -> None:
        """Commit changes and the rows that report them in one transaction. Rows without changes can wait."""
        if self._rows and (self.store.dirty or len(self._rows) > _MOST_ROWS):
            self.log_rows()
        if self.store.dirty and self._clock.latest > self._clock_kept:
            self._clock_kept = self._clock.latest + SECOND  # a second ahead, so that few commits write it
            self.store.remember("clock", self._clock_kept)
        self.store.commit()

    def log_rows(self) -> None:
        """Move the event rows so far into the store. Its next commit makes them durable."""
        if self._rows:
            self.rows_logged += len(self._rows)
            self.store.log(self._rows.taken())

    def _transmit(self, sends: Sequence[tuple[Send, Instant]]) -> None:
        """Transmit packets for the same receivers in as few frames as possible, and log them."""
        first = sends[0][0]
        outside = self.outside.get(first.over)
        packets = [self._encoded.encode(send.packet, self.inspection) for send, _ in sends]
        wire_bytes = 0 if outside is None else send_all(outside, packets, first)
        if wire_bytes:
            wire_bytes -= sum(map(len, packets[1:]))  # the first packet's row has what the frames add
            for (send, decided), data in zip(sends, packets, strict=True):
                size = wire_bytes if send is first else len(data)
                self.packets.add("out", send.packet.kind, size)
                if self.transfers is not None and send.over == RADIO and send.to >= 0:
                    self.transfers.sent(decided, self.node_id, send.to, send.packet)
                if self._rows is not None:
                    self._rows.packet(SENT, self._clock.now(), send.packet, send.to, send.over, size)
        elif first.key is not None:
            self.left(first.key, False)

    def encode(self, packet: Packet) -> bytes:
        """Sign and encode a packet that is sent once, and not by the node."""
        return self._encoded.fresh(packet, self.inspection)

    # -- effects ------------------------------------------------------------------------------------------

    def carry_out(self, node: NodeId, effects: Effects, now: Instant) -> None:
        """Carry out a list of effects in order. A crash never falls between two of them: one commit has all."""
        if self.inspection is not None:
            self.inspection.accepting(effects)
        persist, deliver = self.store.persist, self.deliver
        for effect in effects:  # the two most frequent ones first, without two more calls for each of them
            if type(effect) is Persist:
                persist(effect.key, effect.value)
            elif type(effect) is Deliver:
                deliver(node, effect, now)
            else:
                self.apply(node, effect, now)

    def persist(self, node: NodeId, effect: Persist, now: Instant) -> None:
        self.store.persist(effect.key, effect.value)

    def send(self, node: NodeId, effect: Send, now: Instant) -> None:
        self._departures.send(effect, now)

    def deliver(self, node: NodeId, effect: Deliver, now: Instant) -> None:
        message = effect.message
        if self.inspection is not None:
            self.inspection.delivered(message.id)
        self._departures.deliver(self.store.deliver(message, now, effect.content))
        if self._rows is not None:
            self._rows.message(DELIVERED, now, message.id)

    def accept(self, node: NodeId, effect: Accept, now: Instant) -> None:
        id = effect.message.id
        if id.number > self._accepted:
            self._accepted = id.number
            self.store.remember("accepted", self._accepted)
            if self._rows is not None:
                self._rows.broadcast(now, id, effect.destinations, effect.deadline)

    def arrive(self, node: NodeId, effect: Arrive, now: Instant) -> None:
        for message in effect.messages:
            if self.inspection is not None:
                self.inspection.arrived(message)
            if self._rows is not None:
                self._rows.message(RECEIVED, now, message.id)
            self.on_arrive(message)

    def discard(self, node: NodeId, effect: Discard, now: Instant) -> None:
        if self.inspection is not None:
            self.inspection.discarded(effect.message.id)
        self._log(DISCARDED, effect.message, now, effect.reason)
        self.on_discard(effect.message, effect.reason)

    def observe(self, node: NodeId, effect: Observe, now: Instant) -> None:
        self._log(OBSERVED, effect.message, now, effect.name)
        self._departures.observe(effect)

    def cancel_send(self, node: NodeId, effect: CancelSend, now: Instant) -> None:
        self._departures.cancel(effect.key)
        for outside in self.outside.values():
            outside.cancel(effect.key)

    def set_timer(self, node: NodeId, effect: SetTimer, now: Instant) -> None:
        self._timers.set(effect.key, effect.at)

    def cancel_timer(self, node: NodeId, effect: CancelTimer, now: Instant) -> None:
        self._timers.cancel(effect.key)

    def _log(self, kind: int, message: Message, now: Instant, reason: str = "") -> None:
        if self._rows is not None:
            self._rows.message(kind, now, message.id, reason)

    def _fire(self, key: Key) -> None:
        self._input(lambda now: self.node.timer(key, now))
