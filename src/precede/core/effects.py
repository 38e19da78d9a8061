"""The effects: what a node asks its driver to do, in the order in which it must happen.

Effects are cheap immutable values; `core.dispatch` carries them out. A node may crash between any two effects
of one list; only a `Persist` directly followed by a `Deliver` is one atomic step.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from precede.core.frequent_effects import RADIO, WIRED, Arrive, Deliver, Discard, Key, Medium, Send
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
    """Record a new own message. `destinations` None: all nodes. `deadline` is by the node's own clock.

    `content` has the message and the order data that all its copies have, and a method `written`, if there are
    such data: the runtime signs them.
    """

    message: Message
    destinations: tuple[NodeId, ...] | None = None
    deadline: Instant | None = None
    content: Any = None


class CancelSend(Struct, frozen=True, gc=False):
    """Take back a keyed send that is still queued. Nothing happens if it has left. No `sent` follows."""

    key: Key


class Observe(Struct, frozen=True, gc=False):
    """Record a measured instant that is no delivery, such as when another ordering rule would deliver."""

    name: str
    message: Message


class SetTimer(Struct, frozen=True, gc=False):
    """Call `timer(key, now)` when the node's clock reads `at` or later. Replaces a timer with the same key."""

    key: Key
    at: Instant


class CancelTimer(Struct, frozen=True, gc=False):
    """Cancel a timer. Nothing happens if there is none."""

    key: Key


class Persist(Struct, frozen=True, gc=False):
    """Store a value durably before the next effect is carried out. The value is plain data; None deletes it."""

    key: Key
    value: Any


Effect: TypeAlias = (
    Accept | Arrive | Send | CancelSend | Deliver | Discard | Observe | SetTimer | CancelTimer | Persist
)
Effects: TypeAlias = Sequence[Effect]
NOTHING: Final[Effects] = ()
