"""Hands delivered messages to the application: in order, one at a time, each until it is acknowledged."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, Protocol, TypeAlias
from weakref import ref

from msgspec import Struct

from precede.core.errors import Refused, StoreFailed
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Message
from precede.core.node import Node
from precede.runtime.history.kept import Kept

MOST_IN_MEMORY: Final = 1_000
"""How many delivered messages wait in memory if there is a store; the others wait in the store alone."""
MOST_UNTAKEN: Final = 100_000
"""`broadcast` waits while more delivered messages than this wait for the application."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

ArrivalState: TypeAlias = Literal["waiting", "delivered", "given_up"]


class Delivered(Struct, frozen=True):
    """A delivered message: `source` is the sender's name, `number` counts the sender's messages from 1.

    `place` is its place in this member's order of delivery, from 1; `delivered_us` the member's clock at its
    delivery, in microseconds since 1970 (0 if a version before 0.2 delivered it), `delivered_at` the same as a
    datetime. `broadcast_us` and `broadcast_at` are the author's clock at the broadcast, as the author wrote it;
    None in the orders "total" and "multicast", which do not carry it. `predecessors` are the ids of the
    messages that directly precede it: in "causal" and "delta" those that its author named, in "fifo" the
    author's message before it, in "none" (). They are None in "total" and "multicast".

    `id` identifies the message at every member and after every restart. Members learn each other's names from
    introductions; without keys (`key=None`) only from neighbours and `members=` of `join`, and the name of any
    other sender is its node id in hexadecimal.

    >>> import asyncio, precede
    >>> async def main() -> None:
    ...     async with precede.join("picnic", "ana", key=None) as group:
    ...         await group.broadcast(b"who brings bread?")
    ...         async for message in group:
    ...             print(message.source, message.number, message.payload)
    ...             break
    >>> asyncio.run(main())
    ana 1 b'who brings bread?'
    """

    source: str
    number: int
    payload: bytes
    id: MessageId
    place: int = 0
    delivered_us: Instant = 0
    broadcast_us: Instant | None = None
    predecessors: tuple[MessageId, ...] | None = None

    @property
    def delivered_at(self) -> datetime:
        """When this member delivered the message, by its own clock."""
        return _as_datetime(self.delivered_us)

    @property
    def broadcast_at(self) -> datetime | None:
        """When the source broadcast the message, by the source's clock; None if the order does not carry it."""
        return None if self.broadcast_us is None else _as_datetime(self.broadcast_us)


def _as_datetime(microseconds: Instant) -> datetime:
    """Return an instant since 1970 in UTC; the first or last year there is, if a clock reads beyond it."""
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        bound = datetime.max if microseconds > 0 else datetime.min
        return bound.replace(tzinfo=UTC)


class Describer:
    """Makes `Delivered` values of delivered messages: with names, and what the order knows about them."""

    def __init__(self, name_of: Callable[[NodeId], str], node: Node) -> None:
        self._name_of = name_of
        self._node = node

    def __call__(self, kept: Kept) -> Delivered:
        message = kept.message
        id = message.id
        broadcast_us, predecessors = self._node.described(id, kept.content)
        source = self._name_of(id.source)
        return Delivered(
            source, id.number, message.payload, id, kept.place, kept.at, broadcast_us, predecessors
        )


class Arrival(Struct, frozen=True):
    """News of one message, from `Group.arrivals()`.

    `state` is "waiting" when the message is received before the messages that precede it (`waits_for`),
    "delivered" when its place in the order is final, and "given_up" when it will never be delivered. With a
    rule that sorts a screen, `above` is the message directly below a delivered one; None means the bottom.

    >>> import asyncio, precede
    >>> async def main() -> None:
    ...     async with precede.join("picnic", "ana", key=None) as group:
    ...         arrivals = group.arrivals()
    ...         news = asyncio.create_task(anext(arrivals))
    ...         await asyncio.sleep(0)
    ...         await group.broadcast(b"who brings bread?")
    ...         arrival = await news
    ...         print(arrival.source, arrival.state, arrival.payload)
    ...         await arrivals.aclose()
    >>> asyncio.run(main())
    ana delivered b'who brings bread?'
    """

    source: str
    payload: bytes
    id: MessageId
    state: ArrivalState
    waits_for: tuple[MessageId, ...] = ()
    above: MessageId | None = None

    @property
    def revision(self) -> bool:
        """True if the message is inserted above others that were already shown."""
        return self.above is not None


class MemberState:
    """Whether a member runs: `phase` is new, open or closed; `failure` is the store's error that stopped it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.phase: Literal["new", "open", "closed"] = "new"
        self.failure: StoreFailed | None = None
        self.rolled_back = False

    def check_may_send(self) -> None:
        """Raise as `check_open` does, and Refused if the store was rolled back: its numbers are used up."""
        self.check_open()
        if self.rolled_back:
            raise Refused(f"{self.name}: its store was rolled back; join again, as a new incarnation")

    def check_open(self) -> None:
        """Raise StoreFailed if the store has failed, RuntimeError if the member has not joined or has left."""
        if self.failure is not None:
            raise StoreFailed(str(self.failure))
        if self.phase != "open":
            cause = "not joined yet: use it with `async with`" if self.phase == "new" else "left already"
            raise RuntimeError(f"{self.name}: {cause}")


class Outbox(Protocol):
    """Where delivered messages are kept until the application acknowledges them: the driver and its store."""

    @property
    def has_store(self) -> bool: ...

    def acknowledge(self, place: int) -> None: ...

    def unacknowledged(self, after: int, most: int) -> list[Kept]: ...


class DeliveryIterator:
    """One `async for` loop over the messages of a group."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries

    def __aiter__(self) -> DeliveryIterator:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Delivered]:
        return self._deliveries.take(self)


class Deliveries:
    """The delivered messages that the application has not taken yet, oldest first.

    One loop at a time takes them. Requesting the next message acknowledges the previous one, so a second loop
    would acknowledge messages that the first still works on.
    """

    def __init__(self, outbox: Outbox, state: MemberState, describe: Callable[[Kept], Delivered]) -> None:
        self._outbox = outbox
        self._state = state
        self._describe = describe
        self._in_memory: deque[Kept] = deque()
        self._last_in_memory = 0
        self._in_store_alone = 0
        self._in_hand: int | None = None
        self._iterator: ref[DeliveryIterator] | None = None
        self._requested = False
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._in_memory) + self._in_store_alone

    @property
    def in_memory(self) -> int:
        return len(self._in_memory)

    def add(self, kept: Kept) -> None:
        """Append a delivered message; beyond `MOST_IN_MEMORY` it is only counted, and read from the store."""
        if self._in_store_alone or (len(self._in_memory) >= MOST_IN_MEMORY and self._outbox.has_store):
            self._in_store_alone += 1
        else:
            self._in_memory.append(kept)
            self._last_in_memory = kept.place
        if self._requested:
            self._changed.set()

    async def take(self, iterator: DeliveryIterator) -> Delivered:
        """Acknowledge the previous message, wait for the next one and return it.

        Raise RuntimeError if another loop takes messages already, StopAsyncIteration after the member has
        closed.
        """
        current = None if self._iterator is None else self._iterator()
        if self._requested or (current is not None and current is not iterator):
            raise RuntimeError(f"{self._state.name}: another loop takes the messages of this group already")
        if current is None:
            self._iterator = ref(iterator)
        self.acknowledge()
        if not self._in_memory:
            self._requested = True
            try:
                await self._wait()
            finally:
                self._requested = False
        kept = self._in_memory.popleft()
        self._in_hand = kept.place
        return self._describe(kept)

    async def _wait(self) -> None:
        """Wait until a message is in memory. Raise StopAsyncIteration after the member has closed."""
        while not self._in_memory:
            if self._state.phase == "closed" and self._state.failure is None:
                raise StopAsyncIteration
            self._state.check_open()
            if self._in_store_alone:
                self._load()
            else:
                self._changed.clear()
                await self._changed.wait()

    def acknowledge(self) -> None:
        """Acknowledge the message that the application has processed: a restart does not deliver it again."""
        if self._in_hand is not None:
            self._outbox.acknowledge(self._in_hand)
            self._in_hand = None

    def keep_in_hand(self) -> None:
        """Leave the message unacknowledged that the application failed on: a restart delivers it again."""
        self._in_hand = None

    def clear(self) -> None:
        """Drop the messages that were not taken: the application does not want them any more."""
        self._in_hand = None
        self._in_memory.clear()
        self._in_store_alone = 0

    def wake(self) -> None:
        """Let a waiting loop see that the member has closed or failed."""
        self._changed.set()

    def _load(self) -> None:
        """Bring the next messages from the store into memory."""
        loaded = self._outbox.unacknowledged(self._last_in_memory, min(self._in_store_alone, MOST_IN_MEMORY))
        self._in_memory += loaded
        self._last_in_memory = loaded[-1].place
        self._in_store_alone -= len(loaded)


class ArrivalFeed:
    """Publishes arrivals to every listener. A listener that does not keep up loses the oldest ones."""

    def __init__(self, state: MemberState, name_of: Callable[[NodeId], str]) -> None:
        self._state = state
        self._name_of = name_of
        self._queues: list[asyncio.Queue[Arrival | None]] = []

    @property
    def has_listeners(self) -> bool:
        return bool(self._queues)

    async def listen(self) -> AsyncGenerator[Arrival, None]:
        """Yield the arrivals from now on, until the feed ends. Raise StoreFailed if the store fails."""
        self._state.check_open()
        queue: asyncio.Queue[Arrival | None] = asyncio.Queue(MOST_UNTAKEN)
        self._queues.append(queue)
        try:
            while (arrival := await queue.get()) is not None:
                yield arrival
            if self._state.failure is not None:
                raise StoreFailed(str(self._state.failure))
        finally:
            self._queues.remove(queue)

    def publish(
        self,
        message: Message,
        state: ArrivalState,
        waits_for: tuple[MessageId, ...] = (),
        above: MessageId | None = None,
    ) -> None:
        """Send news of a message to all listeners."""
        if self._queues:
            source = self._name_of(message.id.source)
            self._put(Arrival(source, message.payload, message.id, state, waits_for, above))

    def end(self) -> None:
        """End every listener: nothing further will be published."""
        self._put(None)

    def _put(self, arrival: Arrival | None) -> None:
        for queue in self._queues:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(arrival)
