"""How barriers name a predecessor: a stream and a number (guidec2021, section IV-A).

A stream is all messages of one source in one incarnation. The paper keys its maps by the host alone. If such a
host lost its state and numbered from 1 again, its new messages would satisfy, or block, dependencies on its
earlier ones; we key by (source, incarnation), because that tells them apart. The first incarnation is written
as the bare source: nearly every stream is a first one, and an int hashes faster than a tuple.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from msgspec import Meta

from precede.core.identity import MessageId, NodeId

Stream: TypeAlias = NodeId | Annotated[tuple[NodeId, ...], Meta(min_length=2, max_length=2)]
"""A source, or a source and its incarnation. msgspec 0.22 crashes on `NodeId | tuple[NodeId, Incarnation]`."""


def stream_of(id: MessageId) -> Stream:
    return (id.source, id.incarnation) if id.incarnation else id.source


def id_in(stream: int | Sequence[int], number: int) -> MessageId:
    """Return the id of a message of a stream, which may be plain data: a store reads a pair as a list."""
    if isinstance(stream, int):
        return MessageId(stream, 0, number)
    return MessageId(stream[0], stream[1], number)


def top_key(stream: Stream) -> tuple[str | int, ...]:
    return ("top", *stream) if isinstance(stream, tuple) else ("top", stream, 0)


def stream_in(key: tuple[str | int, ...]) -> Stream:
    return (int(key[1]), int(key[2])) if key[2] else int(key[1])
