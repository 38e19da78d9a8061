"""The most frequent effects: `Arrive`, `Send`, `Deliver` and `Discard`.

They are plain classes, not msgspec structs like the other effects, because of speed. This module is compiled,
and compiled code reads a field of a compiled class with one or two machine instructions. A field of a struct
needs Python's attribute lookup, which takes about twenty times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, Literal, TypeAlias, final

from msgspec.structs import astuple
from mypy_extensions import mypyc_attr

from precede.core.identity import MessageId, NodeId
from precede.core.messages import Message, Packet

Key: TypeAlias = str | int | tuple[str | int, ...]
"""Names a timer, a keyed send or a persisted value; unique within one node and one kind."""

Medium: TypeAlias = Literal[0, 1]
RADIO: Final[Medium] = 0
WIRED: Final[Medium] = 1

parts_of: Final[Callable[[MessageId], tuple[int, int, int]]] = astuple
"""The source, incarnation and number of an id, in one call: compiled code looks up each field of a struct."""


@mypyc_attr(acyclic=True)
class Value:  # noqa: PLW1641 - nobody keeps effects in a set, whose order would differ from run to run
    """Base of this module's effects: two are equal if their fields are. They can be printed and pickled."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()

    def _fields(self) -> tuple[object, ...]:
        return tuple([getattr(self, name) for name in self.__match_args__])

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Value) and self._fields() == other._fields()

    def __repr__(self) -> str:
        fields = [f"{name}={getattr(self, name)!r}" for name in self.__match_args__]
        return f"{type(self).__name__}({', '.join(fields)})"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return type(self), self._fields()


@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Arrive(Value):
    """First copies of messages were received, own messages excluded. They are delivered now, later or never.

    `deliveries` may hold the `Deliver` effects of the same messages: the log then reads the ids from these.
    """

    __slots__ = ("deliveries", "incarnation", "messages", "number", "only", "source")
    __match_args__ = ("messages",)

    def __init__(self, messages: tuple[Message, ...], deliveries: list[Deliver] | None = None) -> None:
        self.messages: Final = messages
        self.deliveries: Final = deliveries
        self.only: Final[Message | None] = messages[0] if len(messages) == 1 else None
        self.source = -1
        self.number = 0
        self.incarnation = 0

    def look_up(self) -> None:
        """Reads the id of the message, if it is the only one, once for all nodes that share this effect."""
        if self.only is not None:
            self.source, self.incarnation, self.number = parts_of(self.only.id)


@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Send(Value):
    """Transmit a packet to a node or to NEIGHBOURS. A keyed send replaces a queued one with the same key."""

    __slots__ = ("key", "over", "packet", "to")
    __match_args__ = ("packet", "to", "over", "key")

    def __init__(self, packet: Packet, to: NodeId, over: Medium = RADIO, key: Key | None = None) -> None:
        self.packet: Final = packet
        self.to: Final = to
        self.over: Final[Medium] = over
        self.key: Final[Key | None] = key


@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Deliver(Value):
    """Hand a message to the application, in order. Also holds the parts of its id, for the log.

    `content` is the message with what its source wrote about it, if the protocol gives that: a struct whose
    first field is the message. The runtime keeps it (`Node.described`).
    """

    __slots__ = ("content", "incarnation", "message", "number", "source")
    __match_args__ = ("message",)

    def __init__(self, message: Message, content: object = None) -> None:
        source, incarnation, number = parts_of(message.id)
        self.message: Final = message
        self.content: Final = content
        self.source: Final = source
        self.number: Final = number
        self.incarnation: Final = incarnation


@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Discard(Value):
    """Record that the node gives up a message. `reason` is a word such as `evicted`, `late` or `cut`.

    Also holds the parts of the message's id, for the log.
    """

    __slots__ = ("incarnation", "message", "number", "reason", "source")
    __match_args__ = ("message", "reason")

    def __init__(self, message: Message, reason: str) -> None:
        source, incarnation, number = parts_of(message.id)
        self.message: Final = message
        self.reason: Final = reason
        self.source: Final = source
        self.number: Final = number
        self.incarnation: Final = incarnation
