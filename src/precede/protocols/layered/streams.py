"""How causal_barrier and delta_causal name a predecessor: a stream and a number (guidec2021, section IV-A).

A stream is one life of one source. The paper keys its maps by the host alone; a host that lost its state and
numbers from 1 again would then satisfy, or block, dependencies on its earlier life. We key by (source,
incarnation), and write a first life as the bare source: that is nearly every stream, and an int hashes faster.
"""

from __future__ import annotations

from typing import TypeAlias

from precede.core.identity import MessageId, NodeId

Stream: TypeAlias = NodeId | tuple[NodeId, int]


def stream_of(id: MessageId) -> Stream:
    """The stream a message belongs to."""
    return (id.source, id.incarnation) if id.incarnation else id.source


def id_in(stream: Stream, number: int) -> MessageId:
    """The message that a stream and a number name."""
    if isinstance(stream, tuple):
        return MessageId(stream[0], stream[1], number)
    return MessageId(stream, 0, number)


def top_key(stream: Stream) -> tuple[str | int, ...]:
    """Where the last delivery of a stream is persisted."""
    return ("top", *stream) if isinstance(stream, tuple) else ("top", stream, 0)


def stream_in(key: tuple[str | int, ...]) -> Stream:
    """The stream of such a key."""
    return (int(key[1]), int(key[2])) if key[2] else int(key[1])
