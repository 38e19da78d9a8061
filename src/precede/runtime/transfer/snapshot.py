"""A snapshot of an application's state, and what the member that made it signs."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import TypeAlias

import msgspec
from msgspec import Struct

from precede.core.identity import NodeId
from precede.runtime.transfer.packets import SnapshotOffer


class Snapshot(Struct, frozen=True):
    """The state of another member's application, as `on_restore` of `join` gets it.

    `state` is what that member's `on_snapshot` returned. `source` is the name of the member. `signed` is True
    if its signature over the snapshot was checked with the roster. `place` is a place in this member's order
    of delivery: every message that follows the snapshot is delivered at a later one, and no other.

    >>> import precede
    >>> precede.Snapshot(state=b"3 loaves", source="ana", signed=True, place=7).source
    'ana'
    """

    state: bytes
    source: str
    signed: bool
    place: int


OnSnapshot: TypeAlias = Callable[[], bytes]
OnRestore: TypeAlias = Callable[[Snapshot], None]


def digest_of(state: bytes) -> bytes:
    return blake2b(state, digest_size=32).digest()


def signed_bytes(group: str, maker: NodeId, offer: SnapshotOffer) -> bytes:
    """Return what the maker of a snapshot signs: the group, itself, and the offer without its signature."""
    content = (group, maker, offer.number, offer.size, offer.digest, offer.cut)
    return b"precede snapshot\0" + msgspec.msgpack.encode(content)
