"""The state of a group as its latest events, and the subscribers that hear of each change."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Final, TypeAlias

from msgspec.structs import replace

from precede.core.errors import StoreFailed
from precede.core.identity import NodeId
from precede.runtime.deliveries import MemberState
from precede.runtime.presence.group_event import GroupEvent

MOST_EVENTS: Final = 1_024
"""How many events wait for a subscriber. If there are more, it gets the state instead of them."""
MOST_KNOWN: Final = 4_096
"""How many members the state has. Then the one that changed longest ago and is not heard is forgotten."""


_Entry: TypeAlias = tuple[NodeId | None, GroupEvent]
"""An event, and the node that it is about; None for a warning."""


class _Subscriber:
    """The events that one loop has not taken. `behind`: they were too many, and the state replaces them."""

    def __init__(self) -> None:
        self.events: deque[_Entry] = deque()
        self.behind = True
        self.changed = asyncio.Event()

    def add(self, entry: _Entry) -> None:
        if not self.behind:
            self.events.append(entry)
            if len(self.events) > MOST_EVENTS:
                self.events.clear()
                self.behind = True
        self.changed.set()


class EventFeed:
    """Keeps the latest event of each member and all warnings, and hands every event to all subscribers.

    A member's name is looked up when a subscriber takes the event: without keys it may be learned after the
    member was first heard.
    """

    def __init__(self, state: MemberState, name_of: Callable[[NodeId], str]) -> None:
        self._state = state
        self._name_of = name_of
        self._members: dict[NodeId, GroupEvent] = {}
        self._warnings: list[GroupEvent] = []
        self._subscribers: list[_Subscriber] = []
        self._ended = False

    def latest_of(self, node: NodeId) -> GroupEvent | None:
        return self._members.get(node)

    def publish(self, event: GroupEvent, node: NodeId | None = None) -> None:
        """Make an event part of the state, as the latest of a node or as a warning. Hand it to subscribers."""
        if node is None:
            self._warnings.append(event)  # `Notices` gives a limited number of warnings
        else:
            self._members.pop(node, None)
            self._members[node] = event
            if len(self._members) > MOST_KNOWN:
                absent = (other for other, each in self._members.items() if each.kind in ("lost", "left"))
                del self._members[next(absent, next(iter(self._members)))]
        for subscriber in self._subscribers:
            subscriber.add((node, event))

    def end(self) -> None:
        """End every subscription: the member has closed or failed."""
        self._ended = True
        for subscriber in self._subscribers:
            subscriber.changed.set()

    async def listen(self) -> AsyncGenerator[GroupEvent, None]:
        """Yield the state as events, then each change. Raise StoreFailed if the store fails.

        There is no gap between the two: the state is taken in the step in which the changes begin to be kept.
        """
        self._state.check_open()
        subscriber = _Subscriber()
        self._subscribers.append(subscriber)
        try:
            while True:
                if subscriber.behind:
                    subscriber.behind = False
                    subscriber.events.extend(self._replayed())
                while subscriber.events and not subscriber.behind:
                    node, event = subscriber.events.popleft()
                    if node is not None:
                        event = replace(event, member=self._name_of(node))
                    yield event
                if self._ended:
                    break
                if not subscriber.behind:
                    subscriber.changed.clear()
                    await subscriber.changed.wait()
            if self._state.failure is not None:
                raise StoreFailed(str(self._state.failure))
        finally:
            self._subscribers.remove(subscriber)

    def _replayed(self) -> Iterator[_Entry]:
        for node, event in self._members.items():
            yield node, replace(event, replayed=True)
        for event in self._warnings:
            yield None, replace(event, replayed=True)
