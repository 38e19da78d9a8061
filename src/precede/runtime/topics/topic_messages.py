"""The messages of one topic among those that a lane has delivered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Message
from precede.runtime.history.kept import Kept, KeptMessages
from precede.runtime.topics.topic_names import split_payload

_PAGE: Final = 256


def without_name(message: Message, payload: bytes) -> Message:
    """Return a message of a lane with its payload proper."""
    return msgspec.structs.replace(message, payload=payload)


def stripped(kept: Kept, payload: bytes) -> Kept:
    return kept._replace(message=without_name(kept.message, payload))


def messages_of(name: str, read: Callable[[int, int], list[Kept]], after: int, most: int) -> list[Kept]:
    """Return the messages of a topic behind a place, at most `most` if it is not -1. `read` reads a page."""
    chosen: list[Kept] = []
    while page := read(after, _PAGE):
        after = page[-1].place
        for kept in page:
            named = split_payload(kept.message.payload)
            if named is not None and named[0] == name:
                chosen.append(stripped(kept, named[1]))
                if len(chosen) == most:
                    return chosen
    return chosen


class TopicKept:
    """The kept messages of one topic: those of its lane without the others. It implements `KeptMessages`."""

    def __init__(self, name: str, kept: KeptMessages) -> None:
        self._name = name
        self._kept = kept

    def first(self) -> int:
        return self._kept.first()

    def read(self, after: int, most: int = -1, source: NodeId | None = None) -> list[Kept]:
        return messages_of(self._name, lambda place, page: self._kept.read(place, page, source), after, most)

    def place_of_last(self, most: int, source: NodeId | None) -> int:
        """Return the place before the last `most` messages. This reads all messages of the lane."""
        last: deque[int] = deque(maxlen=most + 1)
        after = 0
        while page := self.read(after, _PAGE, source):
            last.extend(kept.place for kept in page)
            after = page[-1].place
        return last[0] if len(last) > most else 0

    def place_at(self, since: Instant) -> int:
        return self._kept.place_at(since)
