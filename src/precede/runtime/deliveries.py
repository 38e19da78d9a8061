"""Hands delivered messages to the application: in order, one at a time, each until it is acknowledged."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final, Literal, Protocol, TypeAlias
from weakref import ref

from msgspec import Struct

from precede.core.errors import Missed, Refused, StoreFailed
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.node import Node
from precede.runtime.history.kept import Kept

MOST_IN_MEMORY: Final = 1_000
MOST_BYTES_IN_MEMORY: Final = 4 << 20
"""How many delivered messages, and bytes of them, wait in memory if there is a store; others in the store."""
BACKLOG_BYTES: Final = 64 << 20
"""How many bytes of delivered messages may wait for the application: the default of `backlog` of `join`."""
OVERHEAD_BYTES: Final = 512
"""What a waiting message counts beside its payload."""
_LOADED_TOGETHER: Final = 64
_READERS: Final[ContextVar[dict[int, int]]] = ContextVar("readers")
"""The serial numbers of the loops that this task runs, or was started by, for each `Deliveries` by its id."""
_serials: Final = count()

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
        self.serial = next(_serials)

    def __aiter__(self) -> DeliveryIterator:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Delivered]:
        return self._deliveries.take(self)


class Deliveries:
    """The delivered messages that the application has not taken yet, oldest first.

    One loop at a time takes them. Requesting the next message acknowledges the previous one, so a second loop
    would acknowledge messages that the first still works on.

    With a store only the first messages wait in memory. Without one all of them do, up to `backlog` bytes. Then
    further ones are dropped, and the loop raises `Missed` at that place. `on_missed` is called for each.
    """

    def __init__(
        self,
        outbox: Outbox,
        state: MemberState,
        describe: Callable[[Kept], Delivered],
        backlog: int = BACKLOG_BYTES,
    ) -> None:
        self._outbox = outbox
        self._state = state
        self._describe = describe
        self._backlog = backlog
        self._in_memory: deque[Kept] = deque()
        self._bytes_in_memory = 0
        self._last_in_memory = 0
        self._in_store_alone = 0
        self._bytes_in_store_alone = 0
        self._missed = 0
        self.has_gap = False
        """True if messages were dropped since the beginning, or since `clear`."""
        self.on_missed: Callable[[], None] = lambda: None
        self._in_hand: int | None = None
        self._iterator: ref[DeliveryIterator] | None = None
        self._reader: ref[asyncio.Task[Any]] | None = None
        self._requested = False
        self._changed = asyncio.Event()
        self.on_rest: Callable[[], None] = lambda: None
        """Called when the application requests a message: it has processed every message that it got."""

    def __len__(self) -> int:
        return len(self._in_memory) + self._in_store_alone

    @property
    def is_at_rest(self) -> bool:
        """True while the application has no message in hand."""
        return self._in_hand is None

    @property
    def in_memory(self) -> int:
        return len(self._in_memory)

    def holds_up(self) -> bool:
        """Is a loop so far behind that this task should wait before it broadcasts more?

        A loop that broadcasts must not wait for itself, nor must a task that it started. If no loop runs,
        nobody would end the wait.
        """
        if self._bytes_in_memory + self._bytes_in_store_alone <= self._backlog // 2:
            return False
        task = None if self._reader is None else self._reader()
        loop = None if self._iterator is None else self._iterator()
        if task is None or task.done() or loop is None:
            return False
        return _READERS.get({}).get(id(self)) != loop.serial

    def add(self, kept: Kept) -> None:
        """Append a delivered message: in memory, or counted only, if the store has it."""
        size = _size(kept)
        total = self._bytes_in_memory + size
        if not self._outbox.has_store:
            if self._missed or (self._in_memory and total > self._backlog):
                self._missed += 1
                self.has_gap = True
                self.on_missed()
                return
        elif (
            self._in_store_alone
            or len(self._in_memory) >= MOST_IN_MEMORY
            or (self._in_memory and total > MOST_BYTES_IN_MEMORY)
        ):
            self._in_store_alone += 1
            self._bytes_in_store_alone += size
            return
        self._in_memory.append(kept)
        self._bytes_in_memory = total
        self._last_in_memory = kept.place
        if self._requested:
            self._changed.set()

    async def take(self, iterator: DeliveryIterator) -> Delivered:
        """Acknowledge the previous message, wait for the next one and return it.

        Raise RuntimeError if another loop takes messages already, StopAsyncIteration after the member has
        closed, Missed at a place where messages were dropped.
        """
        current = None if self._iterator is None else self._iterator()
        if self._requested or (current is not None and current is not iterator):
            raise RuntimeError(f"{self._state.name}: another loop takes the messages of this group already")
        if current is None:
            self._iterator = ref(iterator)
        self._note_reader(iterator.serial)
        self.acknowledge()
        self.on_rest()
        if not self._in_memory:
            self._tell_missed()
            self._requested = True
            try:
                await self._wait()
            finally:
                self._requested = False
        kept = self._in_memory.popleft()
        self._bytes_in_memory -= _size(kept)
        self._in_hand = kept.place
        return self._describe(kept)

    def _note_reader(self, serial: int) -> None:
        """Remember which task takes messages, and let the task know it."""
        task = asyncio.current_task()
        self._reader = None if task is None else ref(task)
        readers = _READERS.get({})
        if readers.get(id(self)) != serial:
            _READERS.set({**readers, id(self): serial})

    def _tell_missed(self) -> None:
        if self._missed:
            missed, self._missed = self._missed, 0
            raise Missed(
                f"{self._state.name}: {missed:,} messages were dropped here: "
                f"more than {self._backlog:,} bytes waited, and there is no store"
            )

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
        self.has_gap = False
        self._in_memory.clear()
        self._in_store_alone = self._missed = 0
        self._bytes_in_memory = self._bytes_in_store_alone = 0

    def wake(self) -> None:
        """Let a waiting loop see that the member has closed or failed."""
        self._changed.set()

    def _load(self) -> None:
        """Bring the next messages from the store into memory, as many as are allowed there."""
        while (
            self._in_store_alone
            and len(self._in_memory) < MOST_IN_MEMORY
            and self._bytes_in_memory < MOST_BYTES_IN_MEMORY
        ):
            most = min(self._in_store_alone, MOST_IN_MEMORY - len(self._in_memory), _LOADED_TOGETHER)
            loaded = self._outbox.unacknowledged(self._last_in_memory, most)
            size = sum(map(_size, loaded))
            self._in_memory += loaded
            self._bytes_in_memory += size
            self._last_in_memory = loaded[-1].place
            self._in_store_alone -= len(loaded)
            self._bytes_in_store_alone -= size


def _size(kept: Kept) -> int:
    return len(kept.message.payload) + OVERHEAD_BYTES
