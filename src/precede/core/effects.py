"""What a node asks its driver to do, in the order in which it must happen (DESIGN section 4).

Effects are cheap immutable values; a driver dispatches on `type(effect)`. A driver may fail between any two
effects of one list; only a `Persist` directly followed by a `Deliver` is one atomic step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from precede.core.frequent_effects import RADIO, WIRED, Arrive, Deliver, Key, Medium, Send
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Message

__all__ = [
    "MEDIUM_NAMES",
    "NOTHING",
    "RADIO",
    "WIRED",
    "Accept",
    "Arrive",
    "CancelSend",
    "CancelTimer",
    "Deliver",
    "Discard",
    "Effect",
    "Effects",
    "Key",
    "Medium",
    "Observe",
    "Persist",
    "Send",
    "SetTimer",
]

MEDIUM_NAMES: Final[tuple[str, str]] = ("radio", "wired")


class Accept(Struct, frozen=True, gc=False):
    """A new message has its id. `destinations` is None for everybody; `deadline` by the node's own clock."""

    message: Message
    destinations: tuple[NodeId, ...] | None = None
    deadline: Instant | None = None


class CancelSend(Struct, frozen=True, gc=False):
    """Take back a keyed send that is still queued; without effect once it has left. No `sent` follows."""

    key: Key


class Discard(Struct, frozen=True, gc=False):
    """A message in hand is given up: `expired_pending`, `expired_cached`, `evicted`, `late`, `duplicate`"""

    message: Message
    reason: str


class Observe(Struct, frozen=True, gc=False):
    """A measured instant that is no delivery (the moment another rule would have delivered)."""

    name: str
    message: Message


class SetTimer(Struct, frozen=True, gc=False):
    """Call `timer(key, now)` once the node's clock reads `at` or later; replaces a timer with the same key."""

    key: Key
    at: Instant


class CancelTimer(Struct, frozen=True, gc=False):
    """Forget a timer; without effect when there is none."""

    key: Key


class Persist(Struct, frozen=True, gc=False):
    """Durable before what follows is carried out. The value is plain encodable data; None forgets the key."""

    key: Key
    value: Any


Effect: TypeAlias = (
    Accept | Arrive | Send | CancelSend | Deliver | Discard | Observe | SetTimer | CancelTimer | Persist
)
Effects: TypeAlias = Sequence[Effect]
NOTHING: Final[Effects] = ()
