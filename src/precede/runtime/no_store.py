"""What a node has instead of a store if nothing should survive its process."""

import secrets
from typing import Any, Final

from precede.core.effects import Key
from precede.core.identity import MessageId
from precede.core.messages import Message

_MOST_INCARNATIONS: Final = 30_000


def new_incarnation() -> int:
    """Draw an incarnation for a node that begins without its earlier state, or from a copy of it."""
    return secrets.randbelow(_MOST_INCARNATIONS) + 1


class NoStore:
    """The interface of `Store` without a disk: nothing survives. Without an incarnation, a start draws one."""

    dirty = False

    def __init__(self, incarnation: int | None = None) -> None:
        self.first_incarnation = new_incarnation() if incarnation is None else incarnation
        self._place = 0
        self._log: list[bytes] = []
        self._numbers: dict[str, int] = {}

    def saved(self) -> dict[Key, Any]:
        return {}

    def persist(self, key: Key, value: Any) -> None:
        """Do nothing."""

    def deliver(self, message: Message) -> int:
        self._place += 1
        return self._place

    def unacknowledged(self, after: int = 0, most: int = -1) -> list[tuple[int, Message]]:
        return []

    def acknowledge(self, place: int) -> None:
        """Do nothing."""

    def remember(self, name: str, value: int) -> None:
        self._numbers[name] = value

    def remembered(self, name: str, default: int) -> int:
        return self._numbers.get(name, default)

    def incarnation(self) -> int:
        self.remember("incarnation", self.first_incarnation)
        return self.first_incarnation

    def log(self, rows: bytes) -> None:
        self._log.append(rows)

    def logged(self) -> list[tuple[int, bytes]]:
        return list(enumerate(self._log))

    def forget_log(self, place: int) -> None:
        """Delete all rows, whatever the position, because a file has them now."""
        self._log.clear()

    def add_link(self, id: MessageId, trailer: bytes, link: bytes) -> None:
        """Do nothing: the messages do not outlive the process either."""

    def link_of(self, id: MessageId) -> tuple[bytes, bytes] | None:
        """Return None: nothing is known about earlier messages."""

    def last_link(self) -> tuple[int, int, bytes] | None:
        """Return None: the process begins a new incarnation."""

    def forget_links(self, incarnation: int, up_to: int) -> None:
        """Do nothing."""

    def add_evidence(self, line: bytes) -> None:
        """Do nothing: evidence is kept in memory."""

    def evidence(self) -> list[bytes]:
        return []

    def disown(self) -> None:
        """Do nothing."""

    def commit(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def abandon(self) -> None:
        """Do nothing."""
