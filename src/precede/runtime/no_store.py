"""What a node has instead of a store if nothing should survive its process."""

from __future__ import annotations

import secrets
from collections import deque
from itertools import islice
from typing import Any, Final

from precede.core.effects import Key
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Message
from precede.runtime.history.kept import Kept, plain_content
from precede.runtime.history.retention import NO_HISTORY, Retention

_MOST_INCARNATIONS: Final = 30_000
MOST_KEPT: Final = 1_000
MOST_KEPT_BYTES: Final = 1 << 24
"""How many delivered messages, and bytes of their payloads, stay in memory for `Group.history`."""


def new_incarnation() -> int:
    """Draw an incarnation for a node that begins without its earlier state, or from a copy of it."""
    return secrets.randbelow(_MOST_INCARNATIONS) + 1


class NoStore:
    """The interface of `Store` without a disk: nothing survives. Without an incarnation, a start draws one."""

    dirty = False

    def __init__(self, incarnation: int | None = None, retention: Retention = NO_HISTORY) -> None:
        self.first_incarnation = new_incarnation() if incarnation is None else incarnation
        self.last_place = 0
        self._kept = KeptInMemory(retention)
        self._log: list[bytes] = []
        self._numbers: dict[str, int] = {}

    def saved(self) -> dict[Key, Any]:
        return {}

    def persist(self, key: Key, value: Any) -> None:
        """Do nothing."""

    def deliver(self, message: Message, at: Instant = 0, content: Any = None) -> Kept:
        self.last_place += 1
        kept = Kept(self.last_place, message, at, plain_content(content))
        self._kept.add(kept)
        return kept

    def unacknowledged(self, after: int = 0, most: int = -1) -> list[Kept]:
        return []

    def history(self) -> KeptInMemory:
        return self._kept

    def tidy(self, now: Instant) -> bool:
        """Evict messages that are too old. There is no file, so no quota is exceeded."""
        self._kept.evict(now)
        return True

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


class KeptInMemory:
    """The last delivered messages of a member without a store, within the retention and a bound of memory."""

    def __init__(self, retention: Retention) -> None:
        self._most = MOST_KEPT if retention.messages is None else min(retention.messages, MOST_KEPT)
        self._most_bytes = MOST_KEPT_BYTES if retention.bytes is None else min(retention.bytes, MOST_KEPT_BYTES)
        self._age = retention.age_us
        self._kept: deque[Kept] = deque()
        self._bytes = 0

    def add(self, kept: Kept) -> None:
        self._kept.append(kept)
        self._bytes += len(kept.message.payload)
        self.evict(kept.at)

    def evict(self, now: Instant) -> None:
        kept = self._kept
        while kept and (
            len(kept) > self._most
            or self._bytes > self._most_bytes
            or (self._age is not None and kept[0].at < now - self._age)
        ):
            self._bytes -= len(kept.popleft().message.payload)

    def first(self) -> int:
        return self._kept[0].place if self._kept else 0

    def read(self, after: int, most: int = -1, source: NodeId | None = None) -> list[Kept]:
        later = (kept for kept in self._kept if kept.place > after and source in (None, kept.message.source))
        return list(later if most < 0 else islice(later, most))

    def place_of_last(self, most: int, source: NodeId | None) -> int:
        matching = [kept.place for kept in self._kept if source in (None, kept.message.source)]
        return matching[-most] - 1 if 0 < most <= len(matching) else 0

    def place_at(self, since: Instant) -> int:
        return max((kept.place for kept in self._kept if kept.at < since), default=0)
