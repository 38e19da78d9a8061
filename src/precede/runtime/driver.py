"""The real driver: one task owns a node; every input goes through one queue; effects are carried out in order.

`Persist` is durable before what follows it is carried out: changes gather in one transaction, committed before
anything leaves the node (a send, a delivery handed to the application). `Persist` directly followed by
`Deliver` goes into the same transaction, so it is one step. The clock never runs backwards, not even over a
restart. The event log is the simulator's.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from precede.core.effects import (
    RADIO,
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
from precede.core.identity import MessageId, NodeId
from precede.core.instants import SECOND, Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Node
from precede.eventlog.recorder import Recorder
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
from precede.runtime.store import NoStore, Store

MOST_WAITING: Final = 10_000
_MOST_LIVES: Final = 30_000


class Outside(Protocol):
    """Where packets go: `links.Links`, or a hand in a test."""

    def send(self, data: bytes, to: NodeId) -> int: ...


def wall_clock() -> Instant:
    """Microseconds since 1970, by the machine's clock."""
    return time.time_ns() // 1000


class Driver:
    """Runs one node. Inputs are plain calls on the event loop's thread; they queue up and run one by one."""

    def __init__(
        self,
        make_node: Callable[[int], Node],
        codec: Codec,
        store: Store | NoStore,
        clock: Callable[[], Instant] = wall_clock,
        recorder: Recorder | None = None,
        node_id: NodeId = 0,
        row_of: Callable[[NodeId], NodeId] | None = None,
    ) -> None:
        self.store = store
        self.outside: Outside | None = None
        self.garbled: Counter[str] = Counter()
        self.on_deliver: Callable[[int, Message], None] = lambda place, message: None
        self.on_arrive: Callable[[Message], None] = lambda message: None
        self.on_discard: Callable[[Message, str], None] = lambda message, reason: None
        self._codec = codec
        self._read_clock = clock
        self._latest = store.remembered("clock", 0)
        self.incarnation = _life(store)
        self._accepted = store.remembered("accepted", 0)
        self.node = make_node(self.incarnation)
        self._recorder = recorder
        self._row_of = row_of or (lambda node: node)
        self._process = recorder.process_of(self._row_of(node_id), self.incarnation) if recorder else 0
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._inputs: deque[Callable[[Instant], Effects]] = deque()
        self._running = False
        self._stopped = False

    # -- inputs -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to live; what the application had not taken is handed over first."""
        self._life_row(STARTED)
        for place, message in self.store.undelivered():
            self.on_deliver(place, message)
        self._input(lambda now: self.node.start(now, self.store.saved()))

    def broadcast(
        self, payload: bytes, to: Sequence[NodeId] | None = None, lifetime: Duration | None = None
    ) -> None:
        """The application sends. Raises what the node raises (Refused), with nothing changed."""
        now = self._now()
        self._drain()
        self._carry_out(self.node.broadcast(payload, now, to, lifetime), now)
        self._drain()

    def packet(self, data: bytes, sender: NodeId) -> None:
        """Bytes from a neighbour. What is no packet of ours is counted and forgotten."""
        try:
            packet = self._codec.decode(data)
        except Garbled as error:
            self.garbled[error.reason] += 1
            return
        if len(self._inputs) >= MOST_WAITING:
            self.garbled["overrun"] += 1
            return
        self._log_packet(PACKET_RECEIVED, packet, sender, len(data))
        self._input(lambda now: self.node.receive(packet, sender, now, RADIO))

    def link_up(self, peer: NodeId, over: Medium = RADIO) -> None:
        self._input(lambda now: self.node.link_up(peer, now, over))

    def link_down(self, peer: NodeId, over: Medium = RADIO) -> None:
        self._input(lambda now: self.node.link_down(peer, now, over))

    def leave(self) -> None:
        """The application leaves for good."""
        self._life_row(LEFT)
        self._input(self.node.leave)

    def taken(self, place: int) -> None:
        """The application has a delivered message and all before it."""
        self.store.taken(place)

    def stop(self) -> None:
        """No further input is taken; what was persisted is on disk."""
        self._stopped = True
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        self.store.remember("clock", self._latest)
        self.store.commit()
        if self._recorder is not None:
            self._recorder.flush()

    # -- the machine --------------------------------------------------------------------------------------

    def _input(self, call: Callable[[Instant], Effects]) -> None:
        self._inputs.append(call)
        self._drain()

    def _drain(self) -> None:
        """Run queued inputs to completion, one by one; an input that arises meanwhile waits its turn."""
        if self._running or self._stopped:
            return
        self._running = True
        try:
            while self._inputs:
                call = self._inputs.popleft()
                now = self._now()
                self._carry_out(call(now), now)
        finally:
            self._running = False
        self.store.commit()
        if self._recorder is not None:
            self._recorder.flush_if_full()

    def _now(self) -> Instant:
        self._latest = max(self._latest, self._read_clock())
        return self._latest

    def _carry_out(self, effects: Effects, now: Instant) -> None:
        delivered: list[tuple[int, Message]] = []
        for effect in effects:
            if type(effect) is Send:
                self._hand_over(delivered)
                self._send(effect)
            elif type(effect) is Deliver:
                delivered.append((self.store.deliver(effect.message), effect.message))
                self._message_row(DELIVERED, effect.message)
            else:
                self._rare(effect, now)
        self._hand_over(delivered)

    def _hand_over(self, delivered: list[tuple[int, Message]]) -> None:
        """Commit, then tell the application: nothing leaves before it is durable."""
        self.store.commit()
        for place, message in delivered:
            self.on_deliver(place, message)
        delivered.clear()

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
                    self._broadcast_row(message, destinations, deadline)
            case Arrive(messages):
                for message in messages:
                    self._message_row(RECEIVED, message)
                    self.on_arrive(message)
            case Discard(message, reason):
                self._message_row(DISCARDED, message, reason)
                self.on_discard(message, reason)
            case Observe(name, message):
                self._message_row(OBSERVED, message, name)
            case CancelSend(_):
                pass  # a datagram leaves at once: there is no queue to take it back from
            case _:
                raise TypeError(f"the node returned {effect!r}, which is no effect")

    def _send(self, send: Send) -> None:
        data = self._codec.encode(send.packet)
        went = self.outside.send(data, send.to) if self.outside is not None else 0
        if went:
            self._log_packet(SENT, send.packet, send.to, went)
        if send.key is not None:
            key = send.key
            self._inputs.append(lambda now: self.node.sent(key, now, went > 0))

    def _set_timer(self, key: Key, at: Instant) -> None:
        self._cancel_timer(key)
        delay = max(0, at - self._now()) / SECOND
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

    # -- rows -------------------------------------------------------------------------------------------

    def _life_row(self, kind: int) -> None:
        if self._recorder is not None:
            self._recorder.life(kind, self._process, self._now(), self._latest)

    def _message_row(self, kind: int, message: Message, reason: str = "") -> None:
        if self._recorder is not None:
            self._recorder.message(
                kind, self._process, self._now(), self._latest, self._named(message.id), reason
            )

    def _broadcast_row(
        self, message: Message, destinations: tuple[NodeId, ...] | None, deadline: Instant | None
    ) -> None:
        if self._recorder is not None:
            to = None if destinations is None else tuple(self._row_of(node) for node in destinations)
            id = self._named(message.id)
            self._recorder.broadcast(self._process, self._now(), self._latest, id, to, deadline)

    def _named(self, id: MessageId) -> MessageId:
        return MessageId(self._row_of(id.source), id.incarnation, id.number)

    def _log_packet(self, kind: int, packet: Packet, peer: NodeId, wire: int) -> None:
        if self._recorder is not None:
            now = self._now()
            row = self._row_of(peer) if peer >= 0 else peer
            self._recorder.packet(kind, self._process, now, now, packet, row, RADIO, wire)


def _life(store: Store | NoStore) -> int:
    """A store that remembers continues its life; a node without a store lives a new one each time."""
    life = (
        store.remembered("incarnation", 0) if isinstance(store, Store) else secrets.randbelow(_MOST_LIVES) + 1
    )
    store.remember("incarnation", life)
    store.commit()
    return life
