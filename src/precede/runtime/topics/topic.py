"""A topic as an application sees it: a conversation of its own, with the interface of a group."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from precede.core.errors import BadInput, Refused
from precede.core.identity import MessageId
from precede.core.instants import Duration
from precede.core.messages import Message
from precede.core.node import Waiting
from precede.runtime.deliveries import (
    Arrival,
    ArrivalState,
    Delivered,
    Deliveries,
    DeliveryIterator,
    Describer,
    MemberState,
)
from precede.runtime.flow.arrival_feed import ArrivalFeed
from precede.runtime.flow.sending import Sending
from precede.runtime.history.kept import Kept
from precede.runtime.history.reading import History
from precede.runtime.names import MemberNames
from precede.runtime.settings import read_lifetime
from precede.runtime.topics.lane import Lane, TopicReader
from precede.runtime.topics.topic_messages import TopicKept
from precede.runtime.topics.topic_names import encoded_name

NewSending: TypeAlias = Callable[[MemberState, Deliveries], Sending]


class Topic(TopicReader):
    """One ordered conversation in a group, made by `Group.topic`. Members that open it get its messages.

    It has the interface of the group: `broadcast`, `async for`, `arrivals`, `waiting`, `history`. Its order and
    its lifetime are its own. Messages are acknowledged, and delivered again after a crash, as in the group. The
    numbers and places of its messages grow, with gaps: they count the messages of all topics of this order.

    >>> import asyncio, precede
    >>> async def main() -> None:
    ...     async with precede.join("house", "ana", key=None) as group:
    ...         garden = group.topic("garden", order="fifo")
    ...         await garden.broadcast(b"the roses need water")
    ...         async for message in garden:
    ...             print(garden.name, message.source, message.payload)
    ...             break
    >>> asyncio.run(main())
    garden ana b'the roses need water'
    """

    def __init__(
        self,
        name: str,
        lifetime: Duration | None,
        lane: Lane,
        names: MemberNames,
        phase: MemberState,
        backlog: int,
        new_sending: NewSending,
        on_missed: Callable[[], None],
    ) -> None:
        self.name = name
        self.order = lane.order
        self._lifetime = lifetime
        self._head = encoded_name(name)
        self._lane = lane
        self._state = MemberState(f"{phase.name}, topic {name!r}")
        self.follow(phase)
        self._names = names
        self._describe = Describer(names.name_of, lane.driver.node)
        self._deliveries = Deliveries(_TopicOutbox(name, lane), self._state, self._describe, backlog)
        self._deliveries.on_missed = on_missed
        self._arrivals = ArrivalFeed(self._state, names.name_of)
        self._sending = new_sending(self._state, self._deliveries)
        self._place = 0

    # -- for the application -----------------------------------------------------------------------------

    async def broadcast(self, payload: bytes, lifetime: str | timedelta | None = None) -> None:
        """Send a message to all members that open this topic. It waits and raises as `Group.broadcast` does.

        `lifetime` replaces that of the topic, if the topic's order has lifetimes.
        """
        self._state.check_open()
        if self._lane.rolled_back:
            raise Refused(f"{self._state.name}: its store was rolled back; join again, as a new incarnation")
        chosen = self._lifetime if lifetime is None else read_lifetime(lifetime)
        self._lane.broadcast(self._head + self._sending.checked(payload, len(self._head)), chosen)
        await self._sending.wait()

    def __aiter__(self) -> AsyncIterator[Delivered]:
        return DeliveryIterator(self._deliveries)

    def arrivals(self) -> AsyncGenerator[Arrival, None]:
        """Yield news of this topic's messages, as `Group.arrivals` does."""
        return self._arrivals.listen()

    def waiting(self) -> Sequence[Waiting]:
        """Return this topic's messages that wait. They may wait for messages of other topics of this order."""
        return self._lane.waiting(self.name)

    def history(
        self,
        *,
        since: Delivered | MessageId | int | datetime | timedelta | str | None = None,
        source: str | None = None,
        limit: int | None = None,
    ) -> History:
        """Return the messages of this topic that this member keeps, as `Group.history` does for the group.

        The retention counts the messages of all topics of the order together.
        """
        self._state.check_open()
        if source is not None and source not in self._names:
            raise BadInput(f"source: no member is known by the name {source!r}")
        node = None if source is None else self._names.id_of(source)
        store = self._lane.driver.store
        return History(self._kept, store.last_place, self._describe, since, node, limit)

    def _kept(self) -> TopicKept:
        self._state.check_open()
        with self._lane.driver.failing():
            return TopicKept(self.name, self._lane.driver.store.history())

    @property
    def untaken(self) -> int:
        """How many delivered messages the application has not taken."""
        return len(self._deliveries)

    def close(self) -> None:
        """End this topic at this member: its loops end, and its messages are only carried for others.

        `Group.topic` opens it again, for messages that are delivered from then on.
        """
        if self._state.phase != "closed":
            self._state.phase = "closed"
            self._deliveries.clear()
            self._lane.close(self.name)
            self.end()

    # -- for the lane and the group ----------------------------------------------------------------------

    def follow(self, group: MemberState) -> None:
        """Take over whether the member runs, unless this topic has ended before."""
        if self._state.phase != "closed":
            self._state.phase, self._state.failure = group.phase, group.failure

    @property
    def is_closed(self) -> bool:
        return self._state.phase == "closed"

    def deliver(self, kept: Kept, above: MessageId | None) -> None:
        if kept.place > self._place:  # it was not read from the store before
            self._place = kept.place
            self._deliveries.add(kept)
            self._arrivals.publish(kept.message, "delivered", above=above)

    def news(self, message: Message, state: ArrivalState, waits_for: tuple[MessageId, ...] = ()) -> None:
        self._arrivals.publish(message, state, waits_for)

    def keep_in_hand(self) -> None:
        self._deliveries.keep_in_hand()

    def acknowledge(self) -> None:
        self._deliveries.acknowledge()

    def end(self) -> None:
        """End all loops: the topic or the member has closed or failed."""
        self._deliveries.wake()
        self._arrivals.end()


class _TopicOutbox:
    """The part of a lane's outbox that has the messages of one topic."""

    def __init__(self, name: str, lane: Lane) -> None:
        self._name = name
        self._lane = lane

    @property
    def has_store(self) -> bool:
        return self._lane.driver.has_store

    def acknowledge(self, place: int) -> None:
        self._lane.acknowledge(self._name, place)

    def unacknowledged(self, after: int, most: int) -> list[Kept]:
        return self._lane.unacknowledged(self._name, after, most)
