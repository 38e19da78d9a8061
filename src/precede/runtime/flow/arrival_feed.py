"""Publishes news of messages to the listeners of `arrivals()`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Final

from precede.core.errors import StoreFailed
from precede.core.identity import MessageId, NodeId
from precede.core.messages import Message
from precede.runtime.deliveries import OVERHEAD_BYTES, Arrival, ArrivalState, MemberState

MOST_NEWS_BYTES: Final = 64 << 20
"""How many bytes of news wait for a listener, each 512 more than its payload; then it loses the oldest."""


class _Listener:
    """The news that one loop has not taken; None ends it."""

    def __init__(self) -> None:
        self.news: deque[Arrival | None] = deque()
        self.changed = asyncio.Event()
        self._bytes = 0

    def add(self, arrival: Arrival | None) -> None:
        self.news.append(arrival)
        self._bytes += _size(arrival)
        while self._bytes > MOST_NEWS_BYTES and len(self.news) > 1:
            self.take()
        self.changed.set()

    def take(self) -> Arrival | None:
        arrival = self.news.popleft()
        self._bytes -= _size(arrival)
        return arrival


class ArrivalFeed:
    """Publishes arrivals to every listener. A listener that does not keep up loses the oldest ones."""

    def __init__(self, state: MemberState, name_of: Callable[[NodeId], str]) -> None:
        self._state = state
        self._name_of = name_of
        self._listeners: list[_Listener] = []

    @property
    def has_listeners(self) -> bool:
        return bool(self._listeners)

    async def listen(self) -> AsyncGenerator[Arrival, None]:
        """Yield the arrivals from now on, until the feed ends. Raise StoreFailed if the store fails."""
        self._state.check_open()
        listener = _Listener()
        self._listeners.append(listener)
        try:
            while True:
                while not listener.news:
                    listener.changed.clear()
                    await listener.changed.wait()
                arrival = listener.take()
                if arrival is None:
                    break
                yield arrival
            if self._state.failure is not None:
                raise StoreFailed(str(self._state.failure))
        finally:
            self._listeners.remove(listener)

    def publish(
        self,
        message: Message,
        state: ArrivalState,
        waits_for: tuple[MessageId, ...] = (),
        above: MessageId | None = None,
    ) -> None:
        """Send news of a message to all listeners."""
        if self._listeners:
            source = self._name_of(message.id.source)
            self._put(Arrival(source, message.payload, message.id, state, waits_for, above))

    def end(self) -> None:
        """End every listener: nothing further will be published."""
        self._put(None)

    def _put(self, arrival: Arrival | None) -> None:
        for listener in self._listeners:
            listener.add(arrival)


def _size(arrival: Arrival | None) -> int:
    return 0 if arrival is None else len(arrival.payload) + OVERHEAD_BYTES
