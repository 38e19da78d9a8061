"""A delivered message as a member keeps it: with its place, the local time, and what its source wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Message


class Kept(NamedTuple):
    """A message at a place in this member's order of delivery; places count from 1 and have no gaps.

    `at` is this member's clock at the delivery; 0 if an earlier version delivered it. `content` is the content
    of the effect `Deliver` without the message, as plain data, or () if the protocol gave none.
    """

    place: int
    message: Message
    at: Instant = 0
    content: Sequence[Any] = ()


def plain_content(content: Any) -> Sequence[Any]:
    """Return the fields of a `Deliver` effect's content behind the first one, which is the message."""
    return () if content is None else msgspec.structs.astuple(content)[1:]


class KeptMessages(Protocol):
    """The delivered messages that a store, or the memory of a member without one, still has."""

    def first(self) -> int: ...

    def read(self, after: int, most: int = -1, source: NodeId | None = None) -> list[Kept]: ...

    def place_of_last(self, most: int, source: NodeId | None) -> int: ...

    def place_at(self, since: Instant) -> int: ...
