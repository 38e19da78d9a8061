"""Turns links that go up and down, farewells and warnings into events."""

from collections.abc import AsyncGenerator, Callable
from typing import Final

from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.runtime.deliveries import MemberState
from precede.runtime.notices import GroupWarning, Notices
from precede.runtime.presence.event_feed import EventFeed
from precede.runtime.presence.group_event import EventKind, GroupEvent

FAREWELL: Final = b"\xff"
"""A packet of one byte, which is no packet of any protocol: the sender leaves the group for good."""


class Presence:
    """The presence of the other members, as one member sees it. A member can have several links."""

    def __init__(
        self,
        state: MemberState,
        name_of: Callable[[NodeId], str],
        clock: Callable[[], Instant],
        notices: Notices,
    ) -> None:
        self._clock = clock
        self._links: dict[NodeId, int] = {}
        self._feed = EventFeed(state, name_of)
        for warning in notices.listed():
            self._warn(warning)
        notices.on_given = self._warn

    def link_up(self, peer: NodeId) -> None:
        self._links[peer] = self._links.get(peer, 0) + 1
        if self._links[peer] == 1:
            self._publish("heard_again" if self._latest(peer) == "lost" else "joined", peer)

    def link_down(self, peer: NodeId) -> None:
        links = self._links.pop(peer, 0) - 1
        if links > 0:
            self._links[peer] = links
        elif self._latest(peer) != "left":
            self._publish("lost", peer)

    def left(self, peer: NodeId, text: str = "it said so") -> None:
        """Publish that a member left for good, unless that is known."""
        if self._latest(peer) != "left":
            self._publish("left", peer, text)

    def end(self) -> None:
        self._feed.end()

    def events(self) -> AsyncGenerator[GroupEvent, None]:
        return self._feed.listen()

    def _latest(self, peer: NodeId) -> EventKind | None:
        latest = self._feed.latest_of(peer)
        return None if latest is None else latest.kind

    def _publish(self, kind: EventKind, peer: NodeId, text: str = "") -> None:
        self._feed.publish(GroupEvent(kind, text=text, at_us=self._clock()), peer)

    def _warn(self, warning: GroupWarning) -> None:
        kind: EventKind = "mismatch" if warning.code.startswith("other_") else "warning"
        peer, code, text, topic = warning.peer, warning.code, warning.text, warning.topic
        self._feed.publish(GroupEvent(kind, peer, code, text, topic, self._clock()))
