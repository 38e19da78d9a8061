"""Node ids and message ids.

A node id is a whole number. Protocols compare, order and hash it, and nothing else; names belong to the
drivers, which keep an address book. In a simulation ids are 0, 1, 2 and so on, so an array may be indexed by
them. Over sockets they are derived from the name, so a protocol that needs consecutive ids must say so.

A type of whole numbers declares its range. The runtime decodes untrusted bytes into these types, and a number
outside its range is an error there, so no protocol checks it again. Values that a program makes itself are not
checked, and a simulation pays nothing.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct

NodeId: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 48) - 1)]
Incarnation: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 15) - 1)]
MessageNumber: TypeAlias = Annotated[int, Meta(ge=1, le=1 << 40)]
"""The number of a message in its stream."""
Count: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 40)]
"""How many messages or events there are. As a message number it names the last of them; 0 means none."""

NEIGHBOURS: Final[NodeId] = -1
"""The receiver of a transmission to all nodes in range: one send, any number of receptions."""


class MessageId(Struct, frozen=True, gc=False, order=True, array_like=True, cache_hash=True):
    """The id of one application message: its source, the incarnation of the source, the number within it.

    Numbers start at 1 and grow. A source that lost its saved state starts a new incarnation, again at number 1.

    >>> import precede
    >>> print(precede.MessageId(source=7, incarnation=0, number=3))
    7:3
    """

    source: NodeId
    incarnation: Incarnation
    number: MessageNumber

    def __str__(self) -> str:
        incarnation = f"'{self.incarnation}" if self.incarnation else ""
        return f"{self.source}{incarnation}:{self.number}"
