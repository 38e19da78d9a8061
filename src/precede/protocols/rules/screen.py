"""`Screen`: the messages that a node shows, sorted by a number and, where numbers are equal, by message id."""

from bisect import bisect_left

from precede.core.identity import MessageId


class Screen:
    """A sorted list of messages. It grows for ever, as the history of a chat does."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, MessageId]] = []
        self._numbers: dict[MessageId, int] = {}

    def __contains__(self, id: MessageId) -> bool:
        return id in self._numbers

    def __len__(self) -> int:
        return len(self._lines)

    def insert(self, number: int, id: MessageId) -> MessageId | None:
        """Insert a message and return the one that is then directly below it; None if it is at the bottom.

        A message that is in the list keeps its place.
        """
        line = (self._numbers.setdefault(id, number), id)
        place = bisect_left(self._lines, line)
        if place == len(self._lines) or self._lines[place] != line:
            self._lines.insert(place, line)
        return self._lines[place + 1][1] if place + 1 < len(self._lines) else None

    def last_number(self) -> int:
        """Return the number of the message at the bottom, which is the largest; 0 if there is none."""
        return self._lines[-1][0] if self._lines else 0

    def last(self, count: int) -> tuple[MessageId, ...]:
        """Return the last messages, from the top down."""
        return tuple(id for _, id in self._lines[-count:])
