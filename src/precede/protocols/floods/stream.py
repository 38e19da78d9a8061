"""A numbered stream of floods at one node, and how packets name parts of it (drift2006, section 4.4)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Generic, TypeAlias, TypeVar

from msgspec import Meta

from precede.core.identity import Count, NodeId
from precede.core.instants import Duration

F = TypeVar("F")

Serial: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]

StreamId: TypeAlias = tuple[NodeId, Serial]
"""A stream: its source, and a serial that tells the streams of that source apart, such as its incarnation."""

Have: TypeAlias = tuple[NodeId, Serial, Count]
"""A stream (source and serial) and a number: the sender has all of its floods up to there."""

Want: TypeAlias = tuple[NodeId, Serial, Count, Count]
"""A stream (source and serial) and two numbers: the sender lacks its floods from the first to the last."""

_NONE: Final[dict[int, Any]] = {}
"""The floods of every stream that has none. It stays empty."""


class Stream(Generic[F]):
    """The floods of one stream at one node.

    `received`: the number up to which all floods have arrived. `exists`: the highest number known to exist.
    `early`: floods that arrived before an earlier one. `kept`: floods that neighbours may request.
    `since`: while floods are missing, the node's running time when a missing one last arrived, or when the gap
    was detected (`Floods.missing_for`). Add floods by `set_early` and `keep`: streams without any share a
    dictionary, because 1,000 nodes have a million streams.
    """

    __slots__ = ("early", "exists", "id", "kept", "received", "since")

    def __init__(self, id: StreamId, received: int = 0) -> None:
        self.id = id
        self.received = received
        self.exists = received
        self.since: Duration = 0
        self.early: dict[int, F] = _NONE
        self.kept: dict[int, F] = _NONE

    def set_early(self, number: int, flood: F) -> None:
        if self.early is _NONE:
            self.early = {}
        self.early[number] = flood

    def keep(self, number: int, flood: F) -> None:
        if self.kept is _NONE:
            self.kept = {}
        self.kept[number] = flood
