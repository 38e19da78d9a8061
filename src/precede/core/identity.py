"""Who and which: node ids and message ids (DESIGN sections 4 and 5).

A node id is a whole number. Protocols compare, order and hash it and nothing else; names belong to the
drivers, which keep an address book. In a simulation ids are dense (0, 1, 2 ...), so that a registry may be
an array; over sockets they are drawn from the name, so no protocol may rely on density unless it says so.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

NodeId: TypeAlias = int

NEIGHBOURS: Final[NodeId] = -1
"""The receiver of a one-to-many transmission: whoever hears it (one send, any number of receptions)."""


class MessageId(Struct, frozen=True, gc=False, order=True, array_like=True, cache_hash=True):
    """One application message: its source, the life of the source that wrote it, its number in that life.

    Numbers start at 1 and grow; a source that lost its saved state starts a new incarnation at number 1.
    """

    source: NodeId
    incarnation: int
    number: int

    def __str__(self) -> str:
        life = f"'{self.incarnation}" if self.incarnation else ""
        return f"{self.source}{life}:{self.number}"
