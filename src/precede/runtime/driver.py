"""The real driver: one task owns a node; every input goes through one queue; effects are carried out in order.

`Persist` is durable before what follows it is carried out: what the inputs of one turn of the event loop change
gathers in one transaction; what must leave the node (sends, deliveries to the application) waits, in order,
until that is committed. `Persist` directly followed by `Deliver` is in the same transaction, so it is one step.
When the store fails (a full disk) the node has crashed there: nothing that hangs on it leaves.
The clock never runs backwards, not even over a restart, nor does it stand still. The event log is the
simulator's.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from precede.core.effects import (
    RADIO,
    WIRED,
    Accept,
    Arrive,
    CancelSend,
    CancelTimer,
    Deliver,
    Discard,
    Effect,
    Effects,
    Key,
    Medium,
    Observe,
    Persist,
    Send,
    SetTimer,
)
from precede.core.identity import NodeId
from precede.core.instants import SECOND, Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Node
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
from precede.runtime.codec import Codec, Garbled
from precede.runtime.emulation.transfers import Transfers
from precede.runtime.links.inspection import Inspection
from precede.runtime.rows import KeptRows
from precede.runtime.store import NoStore, Store, StoreFailed

MOST_WAITING: Final = 10_000
_MOST_ROWS: Final = 2_000
_MOST_TOGETHER: Final = 256


class Outside(Protocol):
    """Where packets go, one for each medium: `links.Links`, or a hand in a test."""

    def send(self, data: bytes, to: NodeId, key: Key | None = None) -> int: ...

    def cancel(self, key: Key) -> None: ...


def wall_clock() -> Instant:
    """Microseconds since 1970, by the machine's clock."""
    return time.time_ns() // 1000


class Driver:
    """Runs one node. Inputs are plain calls on the event loop's thread; they queue up and run one by one.

    `speed` is how many of the node's seconds pass in one of the machine's.
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
        """Packets wait until `wires` neighbours were heard by wire; then they are taken in their order."""
        self.store = store
        self.outside: dict[Medium, Outside] = {}
        self.garbled: Counter[str] = Counter()
        self.inspection: Inspection | None = None
        self.transfers: Transfers | None = None
        self.rows_logged = 0
        self.on_deliver: Callable[[int, Message], None] = lambda place, message: None
        self.on_arrive: Callable[[Message], None] = lambda message: None
        self.on_discard: Callable[[Message, str], None] = lambda message, reason: None
        self.on_failure: Callable[[StoreFailed], None] = lambda error: None
        self._codec = codec
        self._read_clock = clock
        self._speed = speed
        self._latest = self._clock_kept = store.remembered("clock", 0)
        self._slowed: tuple[Instant, Instant] | None = None
        self._clock_read: Instant = 0
        self.incarnation = _life(store)
        self.node_id: NodeId = -1
        self._accepted = store.remembered("accepted", 0)
        self.node = make_node(self.incarnation)
        self._rows = rows
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._inputs: deque[Callable[[Instant], Effects]] = deque()
        self._wires_to_come = wires
        self._wired: dict[NodeId, None] = {}
        self._early: list[Callable[[Instant], Effects]] = []
        self._encoded: tuple[Packet | None, bytes] = (None, b"")
        self._leaving: list[tuple[Instant, Send] | tuple[int, Message]] = []
        self._running = False
        self._scheduled = False
        self._stopped = False

    # -- inputs -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to live; what the application had not taken is handed over first."""
        if self._rows is not None:
            self._rows.node_event(STARTED, self._now())
        self.store.remember("starts", self.store.remembered("starts", 0) + 1)
        place = 0
        while untaken := self.store.undelivered(place, _MOST_TOGETHER):
            for place, message in untaken:
                self.on_deliver(place, message)
        self._input(lambda now: self.node.start(now, self.store.saved()))
        self._drain()

    def broadcast(
        self, payload: bytes, to: Sequence[NodeId] | None = None, lifetime: Duration | None = None
    ) -> None:
        """The application sends. Raises what the node raises (Refused), with nothing changed."""
        self._drain()
        now = self._now()
        effects = self.node.broadcast(payload, now, to, lifetime)
        try:
            self._carry_out(effects, now)
        except StoreFailed as error:
            self.fail(error)
            raise
        self._drain()

    def packet(self, data: bytes, sender: NodeId, over: Medium = RADIO) -> None:
        """Bytes from a neighbour. What is no packet of ours is counted and forgotten."""
        try:
            packet = self._codec.decode(data)
        except Garbled as error:
            self.garbled[error.reason] += 1
            return
        if self.inspection is not None:
            reason = self.inspection.incoming(packet, len(data), self._now(), self._accepted)
            if reason is not None:
                self.garbled[reason] += 1
                return
        if len(self._inputs) + len(self._early) >= MOST_WAITING:
            self.garbled["overrun"] += 1
            return
        if self._rows is not None:
            self._rows.packet(PACKET_RECEIVED, self._now(), packet, sender, over, len(data))
        if self._wires_to_come:
            self._early.append(lambda now: self.node.receive(packet, sender, now, over))
        elif self.transfers is None or over != RADIO:
            self._input(lambda now: self.node.receive(packet, sender, now, over))
        else:
            transfers = self.transfers
            self._input(lambda now: self._received(packet, sender, now, transfers))

    def link_up(self, peer: NodeId, over: Medium = RADIO) -> None:
        self._input(lambda now: self._link_up(peer, now, over))
        if over == WIRED and self._wires_to_come and peer not in self._wired:
            self._wired[peer] = None
            self._wires_to_come -= 1
            if not self._wires_to_come:
                early, self._early = self._early, []
                for receive in early:
                    self._input(receive)

    def link_down(self, peer: NodeId, over: Medium = RADIO) -> None:
        self._input(lambda now: self._link_down(peer, now, over))

    def _link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        if self.transfers is not None and over == RADIO:
            self.transfers.link(now, self.node_id, peer, True)
        return self.node.link_up(peer, now, over)

    def _link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        if self.transfers is not None and over == RADIO:
            self.transfers.link(now, self.node_id, peer, False)
        return self.node.link_down(peer, now, over)

    def _received(self, packet: Packet, sender: NodeId, now: Instant, transfers: Transfers) -> Effects:
        transfers.received(now, self.node_id, sender, packet)
        return self.node.receive(packet, sender, now, RADIO)

    def left(self, key: Key, ok: bool) -> None:
        """A keyed packet has left, or was dropped before it could."""
        self._input(lambda now: self.node.sent(key, now, ok))

    def leave(self) -> None:
        """The application leaves for good."""
        if self._rows is not None:
            self._rows.node_event(LEFT, self._now())
        self._input(self.node.leave)

    def taken(self, place: int) -> None:
        """The application has a delivered message and all before it."""
        if not self._stopped:
            try:
                self.store.taken(place)
            except StoreFailed as error:
                self.fail(error)
                raise

    @property
    def keeps(self) -> bool:
        """Is there a store in which delivered messages wait?"""
        return isinstance(self.store, Store)

    def undelivered(self, after: int, most: int) -> list[tuple[int, Message]]:
        """Delivered messages that wait in the store behind a place."""
        try:
            return self.store.undelivered(after, most)
        except StoreFailed as error:
            self.fail(error)
            raise

    def stop(self) -> None:
        """No further input is taken; what was persisted is on disk."""
        self._drain()
        self._stopped = True
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        self.store.remember("clock", self._latest)
        if self._rows:
            self.store.log(self._rows.taken())
        self.store.commit()

    def crash(self) -> None:
        """Stop in the middle: what was not committed is gone."""
        self._stopped = True
        for handle in self._timers.values():
            handle.cancel()
        self._inputs.clear()
        self._leaving.clear()
        self.store.abandon()

    def fail(self, error: StoreFailed) -> None:
        """The store does not work any more: a crash, and somebody is told."""
        if not self._stopped:
            self.crash()
            self.on_failure(error)

    # -- the machine --------------------------------------------------------------------------------------

    def _input(self, call: Callable[[Instant], Effects]) -> None:
        """One of this turn's inputs; those that come in together are committed together."""
        if self._stopped:
            return
        self._inputs.append(call)
        if not self._running and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        with suppress(StoreFailed):  # `on_failure` was told
            self._drain()

    def _drain(self) -> None:
        """Run queued inputs to completion, one by one, commit, let out what must leave; until all is done."""
        if self._running or self._stopped:
            return
        self._running = True
        try:
            while self._inputs or self._leaving:
                for _ in range(min(len(self._inputs), _MOST_TOGETHER)):
                    call = self._inputs.popleft()
                    now = self._now()
                    self._carry_out(call(now), now)
                self._commit()
                self._let_out()
            self._commit()
        except StoreFailed as error:
            self.fail(error)
            raise
        finally:
            self._running = False

    def _now(self) -> Instant:
        """Never backwards. Ahead of a clock that was set back, time passes at half its pace until it is caught
        up: a clock that stood still would let no timer fire."""
        read = self._read_clock()
        if read >= self._latest:
            self._latest = read
            self._slowed = None
        elif self._slowed is None or read < self._clock_read:
            self._slowed = (read, self._latest)
        else:
            since, latest = self._slowed
            self._latest = max(self._latest, latest + (read - since) // 2)
        self._clock_read = read
        return self._latest

    def _commit(self) -> None:
        """What happened and the rows that tell of it, in one step. Rows alone can wait."""
        if self._rows and (self.store.dirty or len(self._rows) > _MOST_ROWS):
            self.log_rows()
        if self.store.dirty and self._latest > self._clock_kept:
            self._clock_kept = self._latest + SECOND  # a second ahead, so that not every commit writes it
            self.store.remember("clock", self._clock_kept)
        self.store.commit()

    def log_rows(self) -> None:
        """The rows so far into the store, with its next commit."""
        if self._rows:
            self.rows_logged += len(self._rows)
            self.store.log(self._rows.taken())

    def _carry_out(self, effects: Effects, now: Instant) -> None:
        for effect in effects:
            if type(effect) is Send:
                self._leaving.append((now, effect))
            elif type(effect) is Deliver:
                if self.inspection is not None:
                    self.inspection.delivered(effect.message.id)
                self._leaving.append((self.store.deliver(effect.message), effect.message))
                if self._rows is not None:
                    self._rows.message(DELIVERED, now, effect.message.id)
            else:
                self._rare(effect, now)

    def _let_out(self) -> None:
        """Everything is durable: send, and tell the application."""
        leaving, self._leaving = self._leaving, []
        for number, what in leaving:
            if isinstance(what, Send):
                self._send(what, number)
            else:
                self.on_deliver(number, what)

    def _rare(self, effect: Effect, now: Instant) -> None:
        match effect:
            case Persist(key, value):
                self.store.persist(key, value)
            case SetTimer(key, at):
                self._set_timer(key, at)
            case CancelTimer(key):
                self._cancel_timer(key)
            case Accept(message, destinations, deadline):
                if message.id.number > self._accepted:
                    self._accepted = message.id.number
                    self.store.remember("accepted", self._accepted)
                    if self._rows is not None:
                        self._rows.broadcast(now, message.id, destinations, deadline)
            case Arrive(messages):
                for message in messages:
                    self._tell(RECEIVED, message, now)
                    self.on_arrive(message)
            case Discard(message, reason):
                self._tell(DISCARDED, message, now, reason)
                self.on_discard(message, reason)
            case Observe(name, message):
                self._tell(OBSERVED, message, now, name)
            case CancelSend(key):
                self._leaving = [
                    what for what in self._leaving if not (isinstance(what[1], Send) and what[1].key == key)
                ]
                for outside in self.outside.values():
                    outside.cancel(key)
            case _:
                raise TypeError(f"the node returned {effect!r}, which is no effect")

    def _send(self, send: Send, decided: Instant) -> None:
        outside = self.outside.get(send.over)
        if send.packet is not self._encoded[0]:  # one packet often goes to many neighbours
            if self.inspection is not None:
                self.inspection.outgoing(send.packet)
            self._encoded = (send.packet, self._codec.encode(send.packet))
        data = self._encoded[1]
        went = outside.send(data, send.to, send.key) if outside is not None else 0
        if went:
            if self.transfers is not None and send.over == RADIO and send.to >= 0:
                self.transfers.sent(decided, self.node_id, send.to, send.packet)
            if self._rows is not None:
                self._rows.packet(SENT, self._now(), send.packet, send.to, send.over, went)
        elif send.key is not None:
            self.left(send.key, False)

    def _tell(self, kind: int, message: Message, now: Instant, reason: str = "") -> None:
        if self._rows is not None:
            self._rows.message(kind, now, message.id, reason)

    # -- timers -----------------------------------------------------------------------------------------

    def _set_timer(self, key: Key, at: Instant) -> None:
        self._cancel_timer(key)
        delay = max(0, at - self._now()) / SECOND / self._speed
        self._timers[key] = asyncio.get_running_loop().call_later(delay, self._fire, key, at)

    def _cancel_timer(self, key: Key) -> None:
        handle = self._timers.pop(key, None)
        if handle is not None:
            handle.cancel()

    def _fire(self, key: Key, at: Instant) -> None:
        if self._now() < at:  # the loop's clock and the wall clock differ: not yet
            self._set_timer(key, at)
            return
        self._timers.pop(key, None)
        self._input(lambda now: self.node.timer(key, now))


def _life(store: Store | NoStore) -> int:
    """A store that remembers continues its life; a node without a store lives a new one each time."""
    life = store.remembered("incarnation", 0) if isinstance(store, Store) else store.life
    store.remember("incarnation", life)
    store.commit()
    return life
