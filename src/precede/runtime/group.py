"""A group as an application sees it: broadcast, take delivered messages, see which messages still wait.

`Group` connects a node to the world: driver, store, links, transports and event log. Everything runs on the
caller's event loop; there are no threads and no global state.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from datetime import timedelta
from typing import Any

from precede.core.effects import RADIO, WIRED, Key, Medium
from precede.core.errors import Refused, StoreFailed
from precede.core.identity import MessageId, NodeId
from precede.core.messages import Message
from precede.core.node import Node, Waiting
from precede.runtime.codec import Codec
from precede.runtime.deliveries import (
    Arrival,
    Delivered,
    Deliveries,
    DeliveryIterator,
    Describer,
    MemberState,
)
from precede.runtime.driver import Driver
from precede.runtime.flow.arrival_feed import ArrivalFeed
from precede.runtime.flow.incoming import Incoming
from precede.runtime.flow.sending import Sending
from precede.runtime.flow.waiting_news import WaitingNews
from precede.runtime.history.face import HistoryFace
from precede.runtime.history.housekeeping import Housekeeping
from precede.runtime.history.kept import Kept
from precede.runtime.links.neighbours import Links
from precede.runtime.membership import Membership
from precede.runtime.names import MemberNames, UnknownAuthors
from precede.runtime.notices import Notices
from precede.runtime.observe.watch import Watch
from precede.runtime.presence.presence import FAREWELL, Presence
from precede.runtime.presence.roster_face import RosterFace
from precede.runtime.settings import MemberSettings, read_lifetime
from precede.runtime.ticking import Ticking
from precede.runtime.topics.face import TopicsFace
from precede.runtime.topics.topics import Topics
from precede.runtime.transports.transport import Transport


class Group(HistoryFace, TopicsFace, RosterFace):
    """One member of a group, made by `precede.join`. Use it with `async with`.

    Iterating over it takes the delivered messages in order. Requesting the next message acknowledges the
    previous one. With a store, a message that was not acknowledged is delivered again after a crash, a
    `kill -9`, or an exception that left the `async with` block: this can be only the message in hand, and it
    has the same `id`. (After a power failure a few more may be delivered again.) An application with a database
    of its own can store the last `id` there and skip a message it has already processed. One loop at a time may
    iterate. Messages that are not taken wait in the store, or else in memory.

    >>> import asyncio, precede
    >>> async def main() -> None:
    ...     ana = precede.join("picnic", "ana", key=None, beacon=0.05)
    ...     async with ana:
    ...         ben = precede.join("picnic", "ben", key=None, beacon=0.05, peers=[ana.address], members=["ana"])
    ...         async with ben:
    ...             await ana.broadcast(b"who brings bread?")
    ...             async for message in ben:
    ...                 print(message.source, message.payload)
    ...                 break
    ...             print(ben.neighbours(), ben.waiting(), ben.status()["untaken"])
    >>> asyncio.run(main())
    ana b'who brings bread?'
    ['ana'] [] 0
    """

    def __init__(
        self,
        group: str,
        name: str,
        make_node: Callable[[NodeId, int], Node],
        codec: Codec,
        transport: Transport,
        settings: MemberSettings,
    ) -> None:
        self.name = name
        self.group = group
        self._settings = settings
        self._names = MemberNames((name, *settings.members, *(settings.roster or ())), settings.book)
        self.id = self._names.id_of(name)
        self._notices = Notices(group, name)
        self._membership = Membership(group, name, self._names, settings, self._notices)
        self._state = MemberState(name)
        self._presence = Presence(self._state, self._names.name_of, settings.clock, self._notices)
        segments = self._membership.new_segments(group)
        self._driver = self._make_driver(make_node, codec)
        self._housekeeping = [Housekeeping(self._driver, segments, settings, self._notices)]
        how = {"by_hand": settings.by_hand, "patient": settings.patient, "alone": settings.alone}
        self._links = self._make_links(transport, how, RADIO)
        self._transports = [transport]
        self._all_links = [self._links]
        if settings.wired is not None:
            self._transports.append(settings.wired)
            self._all_links.append(self._make_links(settings.wired, {"patient": True}, WIRED))
        self._driver.outside = {RADIO: self._links, WIRED: self._all_links[-1]}
        self._describe = Describer(self._names.name_of, self._driver.node)
        self._deliveries = Deliveries(self._driver, self._state, self._describe, settings.backlog)
        self._deliveries.on_missed = self._on_missed
        self._sending = self._new_sending(self._state, self._deliveries)
        self._transfer = self._new_transfer()
        self._arrivals = ArrivalFeed(self._state, self._names.name_of)
        self._news = WaitingNews(self.waiting, self._publish_waiting)
        self._ticking = Ticking(
            settings, self._state, self._all_links, transport, self._housekeeping, self._notices
        )
        self._topics = Topics(
            *(group, self._state, self._names, settings, self._notices, self._driver),
            list(zip((RADIO, WIRED), self._all_links, strict=False)),
            *(self._housekeeping, self._new_sending, self._on_missed),
        )
        self._incoming = Incoming(self._presence, self._topics, self._transfer, self._driver)
        self._watch = Watch(
            group, settings, self._driver, self._all_links, self._names, self._deliveries, self._notices
        )
        self._watch.readings.lanes = self._topics.lanes
        self._crashed = False

    def _make_driver(self, make_node: Callable[[NodeId, int], Node], codec: Codec) -> Driver:
        settings = self._settings
        driver = self._membership.new_driver(make_node, codec)
        assert driver.inspection is not None
        driver.inspection.on_rollback = self._on_rollback
        driver.on_deliver, driver.on_arrive = self._on_deliver, self._on_arrive
        driver.on_discard = self._on_discard
        driver.on_failure = self._on_failure
        if settings.keys and settings.roster is None and settings.book is None:  # else no name is to come
            driver.hold = UnknownAuthors(self._names, self._tell_unknown).hold
        return driver

    def _tell_unknown(self, author: NodeId) -> None:
        text = f"nobody introduced the author {self._names.name_of(author)}: its messages show this number"
        self._notices.give("unknown_author", text)

    def _new_sending(self, state: MemberState, deliveries: Deliveries) -> Sending:
        return Sending(state, deliveries, self._all_links, self._transports)

    def _make_links(self, transport: Transport, how: dict[str, bool], over: Medium) -> Links:
        admission = self._membership.new_admission()
        return Links(
            transport,
            admission,
            lambda data, sender, to_all: self._on_packet(data, sender, over, to_all),
            lambda peer: self._on_link(peer, over, True),
            lambda peer: self._on_link(peer, over, False),
            self._on_left,
            **how,
        )

    # -- joining and leaving ------------------------------------------------------------------------------

    async def __aenter__(self) -> Group:
        if self._state.phase != "new":
            raise RuntimeError(f"{self.name}: joined before; call join() again")
        self._state.phase = "open"
        try:
            for transport, links in zip(self._transports, self._all_links, strict=True):
                transport.sealed = self._membership.has_keys
                await transport.start(links.frame)
            await self._watch.start(self._driver.incarnation)
            self._driver.start()
            self._topics.start()
            self._transfer.start()
        except BaseException:
            await self.crash()
            raise
        self._ticking.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Close the member. If the block raised, the message in hand is not acknowledged.

        With a store, a restart delivers it again.
        """
        if kind is not None:
            self._deliveries.keep_in_hand()
            self._topics.keep_in_hand()
        await self.close()

    async def close(self) -> None:
        """Stop this member. With a store, the next `join` continues where it stopped."""
        if self._crashed or self._state.phase == "closed":
            return
        self._state.phase = "closed"
        self._end_loops()
        if self._state.failure is not None:
            await self.crash()
            return
        self._ticking.stop()
        self._transfer.stop()
        self._deliveries.acknowledge()
        for links in self._all_links:
            links.stop()
        try:
            self._topics.stop()
            self._driver.stop()
            for each in self._housekeeping:
                each.finish()
            self._topics.close_stores()
            self._driver.store.close()
        finally:
            for transport in self._transports:
                await transport.stop()
            await self._watch.stop("closed")

    async def crash(self) -> None:
        """Stop as if killed: changes that were not committed are lost. For emulations and tests."""
        self._ticking.stop()
        self._transfer.stop()
        self._crashed = True
        for links in self._all_links:
            links.stop()
        self._driver.crash()
        self._topics.crash()
        for transport in self._transports:
            await transport.stop()
        await self._watch.stop("crashed")

    def leave(self) -> None:
        """Leave the group for good: the others stop waiting for this member, if the protocol can do that.

        The neighbours get an event "left".
        """
        self._driver.leave()
        for links in self._all_links:
            for node in links.neighbours():
                links.send(FAREWELL, node)

    # -- sending ------------------------------------------------------------------------------------------

    async def broadcast(self, payload: bytes, lifetime: str | timedelta | None = None) -> None:
        """Send a message to all members now. Then wait while this member is too far behind (backpressure).

        It waits while a loop of another task has more than half of `backlog` bytes (see `join`) to take, and up
        to two seconds while more than 256 KiB wait for the network.

        `lifetime` ("20s" or a timedelta) replaces that of `join`, in a group with lifetimes. Raises Refused if
        the message is not sent. Raises NotYet, a kind of Refused, if a later try may work. In a group with
        `total` order this happens until the member has joined the order, which takes some seconds after a
        start.
        """
        self._state.check_may_send()
        self._watch.broadcast(self._sending.checked(payload), None, read_lifetime(lifetime))
        await self._sending.wait()

    async def multicast(
        self, payload: bytes, to: Sequence[str], lifetime: str | timedelta | None = None
    ) -> None:
        """Send a message to the named members only, in a group with order="multicast".

        It waits as `broadcast` does. Raises Refused if a name is unknown or the message is not sent.
        """
        self._state.check_may_send()
        if isinstance(to, str):
            raise TypeError(f"to: expected a list of names, got {to!r}")
        try:
            ids = sorted(self._names.id_of(name) for name in to)
            self._watch.broadcast(self._sending.checked(payload), ids, read_lifetime(lifetime))
        except (KeyError, Refused) as error:
            unknown = [name for name in to if name not in self._names]
            if unknown and (isinstance(error, KeyError) or "address book" in str(error)):
                raise Refused(f"no member is known by the name {unknown[0]!r}: {error}") from error
            raise
        await self._sending.wait()

    # -- receiving ----------------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[Delivered]:
        return DeliveryIterator(self._deliveries)

    def arrivals(self) -> AsyncGenerator[Arrival, None]:
        """Yield news of messages: when one has to wait, when it is delivered, when it is given up.

        An application can show a message that waits at once, greyed, and confirm it when its place is final. If
        it takes the news too slowly, it loses the oldest.
        """
        return self._arrivals.listen()

    def waiting(self) -> Sequence[Waiting]:
        """Return the received messages that are not delivered: what each waits for, since and until when."""
        return self._driver.node.waiting()

    def neighbours(self) -> list[str]:
        """Return the names of the members that are heard now."""
        return [self._names.name_of(node) for links in self._all_links for node in links.neighbours()]

    def status(self) -> dict[str, Any]:
        """Return neighbours, sizes of registries with their peaks, messages that wait, drops and warnings.

        `warnings` is a list of `GroupWarning`: what is wrong with the set-up of the group, as far as it shows.
        `evidence` is a list of `Equivocation`: members that signed messages which contradict each other.
        """
        return {
            "name": self.name,
            "id": self.id,
            "incarnation": self._driver.incarnation,
            "neighbours": self.neighbours(),
            "sizes": dict(self._driver.node.sizes()),
            "peaks": dict(self._driver.peaks.largest),
            "waiting": len(self.waiting()),
            "untaken": len(self._deliveries),
            "dropped": dict(self._watch.readings.refused()),
            "warnings": self._notices.listed(),
            "evidence": [*self._membership.evidence(), *self._topics.evidence()],
            "metrics": self._watch.address,
            "topics": self._topics.status(),
        }

    @property
    def address(self) -> tuple[str, int]:
        """The host and port this member listens on, over UDP or TCP; known once it has joined."""
        self._state.check_open()
        address = getattr(self._transports[0], "address", None)
        if address is None:
            raise Refused(f"{self.name}: this transport has no host and port")
        return str(address[0]), int(address[1])

    @property
    def links(self) -> Links:
        """The links; internal, for emulations."""
        return self._links

    @property
    def driver(self) -> Driver:
        """The driver; internal, for emulations."""
        return self._driver

    # -- what the links and the driver report -------------------------------------------------------------

    def _on_packet(self, data: bytes, sender: NodeId, over: Medium, to_all: bool) -> None:
        self._incoming.packet(data, sender, over, to_all)

    def _on_left(self, key: Key, ok: bool) -> None:
        self._topics.left(key, ok)

    def _on_link(self, peer: NodeId, over: Medium, up: bool) -> None:
        self._watch.link(peer, over, up)
        self._topics.link(peer, over, up)
        self._transfer.link(peer, up)
        (self._presence.link_up if up else self._presence.link_down)(peer)

    def _end_loops(self) -> None:
        self._deliveries.wake()
        self._arrivals.end()
        self._presence.end()
        self._topics.end()

    def _on_deliver(self, kept: Kept, above: MessageId | None) -> None:
        self._deliveries.add(kept)
        self._news.settled(kept.message.id)
        self._arrivals.publish(kept.message, "delivered", above=above)

    def _on_arrive(self, message: Message) -> None:
        if self._arrivals.has_listeners:
            self._news.arrived(message)

    def _publish_waiting(self, message: Message, waits_for: tuple[MessageId, ...]) -> None:
        self._arrivals.publish(message, "waiting", waits_for)

    def _on_discard(self, message: Message, reason: str) -> None:
        self._news.settled(message.id)
        self._arrivals.publish(message, "given_up")

    def _on_missed(self) -> None:
        self._driver.dropped["missed"] += 1
        text = "the application takes messages too slowly, and there is no store: some are dropped"
        self._notices.give("slow_reader", f"{text} (the loop raises Missed); use store= or a larger backlog=")

    def _on_rollback(self) -> None:
        """Refuse to broadcast if others have messages of this member that its store does not know."""
        if not self._state.rolled_back:
            self._state.rolled_back = self._membership.tell_rollback(self._driver.store)

    def _on_failure(self, error: StoreFailed) -> None:
        """Stop this member after its store failed: others see a crash, and its own loops raise the error."""
        if self._state.failure is not None:
            return
        self._state.failure = error
        self._driver.crash()
        self._topics.crash()
        for links in self._all_links:
            links.stop()
        self._end_loops()
