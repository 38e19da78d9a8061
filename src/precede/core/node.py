"""The interface of a node: the inputs that every protocol answers with effects (docs/decisions/0001).

An input is a method call with `now`, the reading of the node's own clock, which never goes backwards. It runs
to completion and returns an ordered list of effects. A node uses no clock, socket, file, log or global random
generator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

import msgspec
from mypy_extensions import mypyc_attr

from precede.core.context import Context, Waiting
from precede.core.effects import NOTHING, Effects, Key, Medium
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.peaks import Peaks

Saved: TypeAlias = Mapping[Key, Any]
"""The values that a node has persisted, as plain data: tuples come back as lists."""

AfterCopy: TypeAlias = Literal["state", "empty", "nothing"]

T = TypeVar("T")

__all__ = ["AfterCopy", "Context", "Node", "Saved", "Waiting", "restore", "round_trip"]


@mypyc_attr(allow_interpreted_subclasses=True)
class Node:
    """One participant of a protocol. Override the inputs that the protocol uses; the others do nothing.

    No abstract base class: compiled subclasses of one share its cache, and `isinstance` then mistakes one
    protocol's nodes for another's.
    """

    after_copy: AfterCopy = "nothing"
    """How a node goes on if its saved state may be a copy of one that another process uses.

    `state`: a later incarnation continues from it. `empty`: a later incarnation begins without it. `nothing`:
    no incarnation can take over from an earlier one.
    """

    def __init__(self) -> None:
        """Takes no arguments; a protocol's node takes its `Context`."""

    def start(self, now: Instant, saved: Saved) -> Effects:
        """Start the node. `saved` is empty the first time, later everything persisted and not deleted."""
        return NOTHING

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        """Broadcast a message of the application. Raise Refused, and change nothing, if it is not accepted."""
        return NOTHING

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        """Handle a packet that has arrived completely."""
        return NOTHING

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        """Handle the report that a keyed send has left (`ok`) or was dropped before it left."""
        return NOTHING

    def timer(self, key: Key, now: Instant) -> Effects:
        """Handle a timer that is due. It fires once: set it again to repeat it."""
        return NOTHING

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        """Handle the report that a peer can be reached from now on, over this medium."""
        return NOTHING

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        """Handle the report that a peer cannot be reached any more; packets on their way to it are lost."""
        return NOTHING

    def leave(self, now: Instant) -> Effects:
        """Leave for good, as the application asks. The node may still exchange packets to tell the others."""
        return NOTHING

    def described(
        self, id: MessageId, content: Sequence[Any]
    ) -> tuple[Instant | None, tuple[MessageId, ...] | None]:
        """Read-only: what the source wrote about a delivered message, from the content of its `Deliver` effect.

        `content` has the fields behind the message, as plain data, or is empty. Returns the source's clock at
        the broadcast and the direct predecessors, each None if the protocol does not carry it.
        """
        return None, None

    # -- state transfer (docs/guides/history.md) ---------------------------------------------------------

    def await_state(self) -> None:
        """Called before `start` if the driver can bring the state of another node.

        From then on the node does not skip messages that nobody has any more: it waits for `adopt`.
        """

    def lacks_state(self, now: Instant) -> bool:
        """Read-only: have messages been missing for so long that the driver should get them another way?"""
        return False

    def cut(self) -> bytes | None:
        """Read-only: everything that was delivered here, encoded, for `adopt`; None if that is not possible."""
        return None

    def can_adopt(self, cut: bytes, now: Instant) -> bool:
        """Read-only: is the cut of another node well formed, and has it everything that was delivered here?"""
        return False

    def adopt(self, cut: bytes, now: Instant) -> Effects:
        """Go on from the cut of another node, as if everything in it had been delivered here."""
        return NOTHING

    def delivered_tops(self) -> Sequence[tuple[NodeId, int, int]] | None:
        """Read-only: source, incarnation and number up to which each stream is delivered.

        None if the history of another node is of no use to this one.
        """
        return None

    def history_packet(self, messages: Sequence[tuple[Message, Sequence[Any]]]) -> Packet | None:
        """Return a packet that brings delivered messages, each with its content, to one other node; or None."""
        return None

    def waiting(self) -> Sequence[Waiting]:
        """Read-only: the messages that were received and cannot be delivered yet."""
        return ()

    def sizes(self) -> Mapping[str, int]:
        """Read-only: the sizes of registries and buffers, by name."""
        return {}

    def note_sizes(self, peaks: Peaks) -> None:
        """Read-only: raise the peaks of the sizes. The simulator calls it after every input."""
        peaks.note(self.sizes())

    draining: ClassVar[tuple[str, ...]] = ()
    """The names in `sizes()` that must be 0 once the network has healed and every message was delivered."""

    def drains(self) -> tuple[str, ...]:
        """Read-only: the `draining` names of this node; override it if they depend on its options."""
        return self.draining


def restore(saved: Saved, key: Key, kind: type[T], default: T) -> T:
    """Reads a persisted value back as its own type; returns `default` if there is none."""
    if key not in saved:
        return default
    return msgspec.convert(saved[key], kind)


def round_trip(store: Saved) -> dict[Key, Any]:
    """Return a store as a restart reads it: values are plain data (tuples become lists), keys unchanged."""
    return {key: msgspec.msgpack.decode(msgspec.msgpack.encode(value)) for key, value in store.items()}
