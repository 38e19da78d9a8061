"""The interface of a node: everything a protocol does, as a value machine (DESIGN sections 2 and 4).

Inputs are method calls that bring `now` (the node's own clock, never backwards); each runs to completion and
returns one ordered list of effects. A node touches no clock, socket, file, log or global random source.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, TypeVar

import msgspec
from mypy_extensions import mypyc_attr

from precede.core.context import Context, Waiting
from precede.core.effects import NOTHING, Effects, Key, Medium
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet

Saved: TypeAlias = Mapping[Key, Any]
"""What a node persisted in its earlier life, after one round through plain data (tuples come back as lists)."""

T = TypeVar("T")

__all__ = ["Context", "Node", "Saved", "Waiting", "restore", "round_trip"]


@mypyc_attr(allow_interpreted_subclasses=True)
class Node(ABC):  # noqa: B024 - every input has a sensible default: a node that does nothing
    """One participant. Override the inputs that the protocol reacts to; the rest do nothing."""

    def __init__(self) -> None:
        """A node that needs its context takes it: whoever forgets is told so, compiled or not."""

    def start(self, now: Instant, saved: Saved) -> Effects:
        """Begin to live; `saved` is empty the first time, else everything persisted and not forgotten."""
        return NOTHING

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        """The application sends. Raises Refused, with the state unchanged, when it cannot be taken."""
        return NOTHING

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        """A packet has arrived whole."""
        return NOTHING

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        """A keyed send has left (`ok`) or was dropped before it left."""
        return NOTHING

    def timer(self, key: Key, now: Instant) -> Effects:
        """A timer is due. It is gone now: set it again if it is wanted again."""
        return NOTHING

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        """A peer can be reached from now on."""
        return NOTHING

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        """A peer cannot be reached any more; what was queued or in flight to it is lost."""
        return NOTHING

    def leave(self, now: Instant) -> Effects:
        """The application leaves for good. The node may go on exchanging packets to say so."""
        return NOTHING

    def waiting(self) -> Sequence[Waiting]:
        """Read-only: what is in hand and not delivered."""
        return ()

    def sizes(self) -> Mapping[str, int]:
        """Read-only: registries and buffers by name; names in `draining` must be 0 in a healed, idle world."""
        return {}

    draining: ClassVar[tuple[str, ...]] = ()
    """Which of `sizes()` must reach 0 once the world has healed and everything due was delivered."""

    def drains(self) -> tuple[str, ...]:
        """Read-only: `draining`, unless it depends on what the node is made of."""
        return self.draining


def restore(saved: Saved, key: Key, kind: type[T], default: T) -> T:
    """A persisted value back in its own type."""
    if key not in saved:
        return default
    return msgspec.convert(saved[key], kind)


def round_trip(store: Saved) -> dict[Key, Any]:
    """What a disk gives back of a store: values as plain data (tuples become lists), keys unchanged."""
    return {key: msgspec.msgpack.decode(msgspec.msgpack.encode(value)) for key, value in store.items()}
