"""A lane: the node of one order, with its driver and its store, shared by all topics of that order.

Every member that hears a lane takes part in it: it carries the messages of all topics for the others, whether
its application has opened them or not. The application gets the messages of the topics that it has opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from precede.core.effects import Medium
from precede.core.errors import StoreFailed
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration
from precede.core.messages import Message
from precede.core.node import Waiting
from precede.runtime.deliveries import ArrivalState
from precede.runtime.driver import Driver
from precede.runtime.flow.waiting_news import WaitingNews
from precede.runtime.history.kept import Kept
from precede.runtime.membership import Membership
from precede.runtime.topics.topic_messages import messages_of, stripped, without_name
from precede.runtime.topics.topic_names import split_payload
from precede.runtime.topics.topic_places import TopicPlaces
from precede.runtime.topics.unopened import Unopened

MOST_LEFT_UNREAD: Final = 100_000
"""How many messages wait for a topic that the application opened before a restart and has not opened since."""
_TOGETHER: Final = 256


class TopicReader:
    """Where a lane puts the messages of one open topic."""

    def deliver(self, kept: Kept, above: MessageId | None) -> None:
        raise NotImplementedError

    def news(self, message: Message, state: ArrivalState, waits_for: tuple[MessageId, ...] = ()) -> None:
        raise NotImplementedError


class Lane:
    """One lane. `on_foreign` is called with the source and the name of a topic that no reader here has."""

    def __init__(
        self,
        order: str,
        membership: Membership,
        driver: Driver,
        on_foreign: Callable[[NodeId, str], None],
    ) -> None:
        self.order = order
        self.membership = membership
        self.driver = driver
        self.rolled_back = False
        self.deliveries = 0
        self._on_foreign = on_foreign
        self._places = TopicPlaces(driver.store)
        self._readers: dict[str, TopicReader] = {}
        self._unopened = Unopened()
        self._latest = dict.fromkeys(self._places.places, 0)
        self._unread = dict.fromkeys(self._places.places, 0)
        self._last = 0
        self._acknowledged = 0
        self._is_running = False
        self._taken_since = 0
        self._undelivered: dict[MessageId, str] = {}
        self._news = WaitingNews(driver.node.waiting, self._publish_waiting)
        driver.on_deliver = self._on_deliver
        driver.on_arrive = self._on_arrive
        driver.on_discard = self._on_discard

    # -- running -----------------------------------------------------------------------------------------

    def start(self, neighbours: list[tuple[NodeId, Medium]]) -> None:
        self._places.flush()
        self.driver.start()
        self._is_running = True
        for peer, over in neighbours:
            self.driver.link_up(peer, over)

    def stop(self) -> None:
        """Stop in good order: everything is committed. Then `close_store` closes the store."""
        self._is_running = False
        self._places.flush()
        self._advance()
        self.driver.stop()

    def close_store(self) -> None:
        self.driver.store.close()
        self._places.close()

    def crash(self) -> None:
        self._is_running = False
        self.driver.crash()
        self._places.close()

    def broadcast(self, payload: bytes, lifetime: Duration | None) -> None:
        self.driver.broadcast(payload, None, lifetime)

    # -- topics ------------------------------------------------------------------------------------------

    def open(self, name: str, reader: TopicReader) -> None:
        """Give a topic its reader, and the reader the messages that wait for it."""
        self._readers[name] = reader
        self._unread.pop(name, None)
        if name in self._places.places:
            place = self._places.places[name]
            while page := self.unacknowledged(name, place, _TOGETHER):
                for kept in page:
                    reader.deliver(kept, None)
                place = page[-1].place
            return
        waiting = self._unopened.take(name)
        self._places.open(name, waiting[0].place - 1 if waiting else self._last)
        self._latest[name] = waiting[-1].place if waiting else 0
        self._flush_soon()
        for kept in waiting:
            reader.deliver(kept, None)

    def _flush_soon(self) -> None:
        """Make the topics that are opened in this turn durable together: a flush takes milliseconds."""
        if self._is_running:
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        try:
            self._places.flush()
        except StoreFailed as error:
            self.driver.fail(error)

    def close(self, name: str) -> None:
        """End a topic at this member. Its messages are carried for others, as those of an unopened topic."""
        del self._readers[name]
        self._forget(name)

    def _forget(self, name: str) -> None:
        self._places.forget(name)
        self._flush_soon()
        self._latest.pop(name, None)
        self._unread.pop(name, None)
        self._advance()

    def acknowledge(self, name: str, place: int) -> None:
        self._places.take(name, place)
        self._advance_now_and_then()

    def _advance_now_and_then(self) -> None:
        self._taken_since += 1
        if self._taken_since >= _TOGETHER:
            self._advance()

    def _advance(self) -> None:
        """Let the store drop the messages that no topic waits for any more."""
        self._taken_since = 0
        places = self._places.places
        waiting = [places[name] for name, latest in self._latest.items() if latest > places[name]]
        place = min(waiting, default=self._last)
        if place > self._acknowledged:
            self._acknowledged = place
            self.driver.acknowledge(place)

    def unacknowledged(self, name: str, after: int, most: int) -> list[Kept]:
        """Return at most `most` messages of a topic in the store, those behind a place."""
        return messages_of(name, self.driver.unacknowledged, after, most)

    def waiting(self, name: str) -> list[Waiting]:
        """Return the messages of a topic that wait. Those that waited before a restart are not listed."""
        return [item for item in self.driver.node.waiting() if self._undelivered.get(item.message) == name]

    # -- what the driver reports -------------------------------------------------------------------------

    def _on_deliver(self, kept: Kept, above: MessageId | None) -> None:
        place, message = kept.place, kept.message
        self.deliveries += 1
        self._last = place
        self._news.settled(message.id)
        self._undelivered.pop(message.id, None)
        named = split_payload(message.payload)
        if named is None:
            self.driver.dropped["no_topic"] += 1
            return
        name, payload = named
        if name in self._places.places:
            self._latest[name] = place
        reader = self._readers.get(name)
        if reader is not None:
            reader.deliver(stripped(kept, payload), above)
        elif name in self._unread:
            self._unread[name] += 1
            if self._unread[name] > MOST_LEFT_UNREAD:
                self._forget(name)
        else:
            self._on_foreign(message.id.source, name)
            self._unopened.add(name, stripped(kept, payload))
            self._advance_now_and_then()

    def _on_arrive(self, message: Message) -> None:
        named = split_payload(message.payload)
        if named is not None and named[0] in self._readers:
            self._undelivered[message.id] = named[0]
            self._news.arrived(message)

    def _publish_waiting(self, message: Message, waits_for: tuple[MessageId, ...]) -> None:
        named = split_payload(message.payload)
        if named is not None and named[0] in self._readers:
            self._readers[named[0]].news(without_name(message, named[1]), "waiting", waits_for)

    def _on_discard(self, message: Message, reason: str) -> None:
        self._news.settled(message.id)
        self._undelivered.pop(message.id, None)
        named = split_payload(message.payload)
        if named is not None and named[0] in self._readers:
            self._readers[named[0]].news(without_name(message, named[1]), "given_up")
