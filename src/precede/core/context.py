"""What a node gets when it is built (`Context`), and how it reports a message that waits (`Waiting`)."""

from __future__ import annotations

from random import Random
from typing import Generic, TypeVar

from msgspec import Struct

from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant

OptionsT_co = TypeVar("OptionsT_co", covariant=True)


class Context(Struct, Generic[OptionsT_co], frozen=True):
    """Everything a node's constructor gets.

    `members` are the nodes known at the beginning (perhaps none), in ascending order, this node included.
    `options` is the protocol's own struct in a constructor; `registry.make` also takes a mapping of written
    options and reads it. `random` is this node's own random generator. `incarnation` is 0, and grows by one
    whenever the node restarts without its saved state.
    """

    node: NodeId
    members: tuple[NodeId, ...]
    options: OptionsT_co
    random: Random
    incarnation: int = 0


class Waiting(Struct, frozen=True):
    """A received message that cannot be delivered yet: what it waits for, since when, until when at most.

    >>> import precede
    >>> question, answer = precede.MessageId(1, 0, 5), precede.MessageId(2, 0, 1)
    >>> item = precede.Waiting(answer, waits_for=(question,), since=1_000_000)
    >>> f"{item.message} waits for {item.waits_for[0]}"
    '2:1 waits for 1:5'
    """

    message: MessageId
    waits_for: tuple[MessageId, ...]
    since: Instant
    until: Instant | None = None
