"""The part of a group's interface that is about topics and presence."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import timedelta

from precede.runtime.presence.group_event import GroupEvent
from precede.runtime.presence.presence import Presence
from precede.runtime.topics.lane_plan import TopicOrder
from precede.runtime.topics.topic import Topic
from precede.runtime.topics.topics import Topics


class TopicsFace:
    """What a group inherits; it sets the two parts."""

    _topics: Topics
    _presence: Presence

    def topic(self, name: str, order: TopicOrder = "causal", lifetime: str | timedelta | None = None) -> Topic:
        """Open a topic: a conversation of its own in this group, with an order and a lifetime of its own.

        `order` is "none", "fifo", "causal", "delta" (which needs a `lifetime`) or "total" (which needs
        `members=` of `join`). Members must open a topic with the same order; if one does not, both get an event
        "mismatch". With a store, a topic that was opened stays open through restarts
        (docs/guides/topics-and-presence.md).
        """
        return self._topics.open(name, order, lifetime)

    def events(self) -> AsyncGenerator[GroupEvent, None]:
        """Yield who of the group is heard, lost or gone, and what is wrong with the set-up, as `GroupEvent`s.

        First the present state (events with `replayed`), then each change. A subscriber that falls 1,024 events
        behind gets the state again instead of them.
        """
        return self._presence.events()
