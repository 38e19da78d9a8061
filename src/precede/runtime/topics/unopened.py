"""The latest messages of topics that the application has not opened. If it opens one, it gets them."""

from collections import deque
from typing import Final

from precede.runtime.history.kept import Kept

MOST_UNOPENED: Final = 1_000
MOST_UNOPENED_BYTES: Final = 1 << 20
"""How many messages of unopened topics a lane keeps, and how many bytes of payloads; the oldest are dropped."""


class Unopened:
    """The messages of one lane. There is no other state of a topic that only others have opened."""

    def __init__(self) -> None:
        self._messages: deque[tuple[str, Kept]] = deque()
        self._bytes = 0

    def add(self, name: str, kept: Kept) -> None:
        self._messages.append((name, kept))
        self._bytes += len(kept.message.payload)
        while len(self._messages) > MOST_UNOPENED or self._bytes > MOST_UNOPENED_BYTES:
            self._bytes -= len(self._messages.popleft()[1].message.payload)

    def take(self, name: str) -> list[Kept]:
        """Remove and return the messages of a topic, oldest first."""
        taken = [kept for topic, kept in self._messages if topic == name]
        if taken:
            self._messages = deque(entry for entry in self._messages if entry[0] != name)
            self._bytes -= sum(len(kept.message.payload) for kept in taken)
        return taken
