"""What crosses the air in DRIFT (drift2006, Figure 3 and sections 4.4 and 7), with the paper's size model.

Every packet carries virtual-flooding data (`Piggyback`), not only messages: section 8 says that any traffic
will do. Sizes: a header of 20 bytes, the payload, and 8 bytes per entry of the table (12 when entries are
chosen and must name their source).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, TypeAlias

from msgspec import Struct

from precede.core.identity import NodeId
from precede.core.messages import Message, Packet, Size, Written
from precede.protocols.floods.reliable_floods import Have, StreamId, Want

HEADER_BYTES: Final = 20
ENTRY_BYTES: Final = 8
CHOSEN_BYTES: Final = 12
HAVE_BYTES: Final = 8
WANT_BYTES: Final = 12
STREAM_BYTES: Final = 8

LIFE_BITS: Final = 16
"""The life of a stream is its node's incarnation, then how often that one has asked to be a source."""

Chosen: TypeAlias = tuple[NodeId, int, int, int]
"""<source, its life, sequence number, timestamp>: an entry of Seen that names its source."""

Ballot: TypeAlias = tuple[int, NodeId, int]
"""A round of a view change and the source that leads it."""


class Flood(Struct, frozen=True, gc=False, array_like=True):
    """What one numbered flood says: <m, q, qsn, qts> of Figure 3, or a change of the set of sources.

    `admits` names a source that joins through this one; `closes` says that nothing of this source follows.
    """

    source: NodeId
    life: int
    number: int
    timestamp: int
    message: Message | None = None
    admits: StreamId | None = None
    closes: bool = False


class Piggyback(Struct, frozen=True, gc=False, array_like=True):
    """The virtual-flooding part: clocks as a whole table (for a set of columns known by its `layout`) or
    chosen.

    `floors` says of each source that votes in `view` up to which timestamp it holds every message.
    """

    group: int
    view: int
    layout: int
    table: bytes = b""
    chosen: tuple[Chosen, ...] = ()
    floors: bytes = b""
    size_bytes: Size = 0
    entries: Size = 0


class ViewRecord(Struct, frozen=True, gc=False, array_like=True):
    """What a view change decides: who votes from now on, and where the streams of the removed sources end."""

    number: int
    voters: tuple[StreamId, ...]
    ends: tuple[Have, ...]


class Prepare(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """Will you follow this ballot to the view after `view`? These sources are missed."""

    view: int
    ballot: Ballot
    missed: tuple[StreamId, ...]


class Promise(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """Yes: what the voter accepted before, and how far it has the streams of the missed sources."""

    view: int
    ballot: Ballot
    voter: StreamId
    accepted: Ballot | None
    value: ViewRecord | None
    haves: tuple[Have, ...]


class Propose(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """Then let this be the next view."""

    view: int
    ballot: Ballot
    value: ViewRecord


class Accepted(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """The voter has everything the value says survives, and accepts it."""

    view: int
    ballot: Ballot
    voter: StreamId


class Application(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """A newcomer asks one source to admit it under this name."""

    stream: StreamId
    sponsor: StreamId


class Candidacy(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """A would-be source that has found no source at all."""

    since: int


Body: TypeAlias = Prepare | Promise | Propose | Accepted | Application | Candidacy


class _DriftPacket(Packet, frozen=True, gc=False):
    """Sizes are fields, reckoned once per transmission: they are read at every reception."""


class DriftPacket(_DriftPacket, frozen=True, gc=False):
    """A numbered flood."""

    kind: ClassVar[str] = "drift"
    flood: Flood
    extra: Piggyback
    size_bytes: Size = 0
    control_bytes: Size = 0
    control_entries: Size = 0
    messages: Size = 0

    def written(self) -> Sequence[Written]:
        flood = self.flood
        if flood.message is None:
            return ()
        order = (flood.source, flood.life, flood.number, flood.timestamp, flood.admits, flood.closes)
        return (Written(flood.message, None, None, order),)


class DummyPacket(_DriftPacket, frozen=True, gc=False):
    """A flood that says nothing (section 4.4, Termination), for the sake of what it carries along.

    `clock` is the origin's own, if it is a source: without virtual flooding that is all there is. `asks`: the
    origin waits for the clocks of others.
    """

    kind: ClassVar[str] = "drift_dummy"
    origin: NodeId
    number: int
    asks: bool
    clock: Chosen | None
    extra: Piggyback
    size_bytes: Size = 0
    control_bytes: Size = 0
    control_entries: Size = 0
    messages: Size = 0


class ControlPacket(_DriftPacket, frozen=True, gc=False):
    """A flood for the sake of membership; not kept, not repeated by those who relay it."""

    kind: ClassVar[str] = "drift_control"
    origin: NodeId
    number: int
    body: Body
    extra: Piggyback
    size_bytes: Size = 0
    control_bytes: Size = 0
    control_entries: Size = 0
    messages: Size = 0


class DigestPacket(_DriftPacket, frozen=True, gc=False):
    """How far the sender has every stream; goes to neighbours only."""

    kind: ClassVar[str] = "drift_digest"
    haves: tuple[Have, ...]
    extra: Piggyback
    size_bytes: Size = 0
    control_bytes: Size = 0
    control_entries: Size = 0
    messages: Size = 0


class WantPacket(_DriftPacket, frozen=True, gc=False):
    """What the sender lacks; goes to neighbours only."""

    kind: ClassVar[str] = "drift_want"
    wants: tuple[Want, ...]
    extra: Piggyback
    size_bytes: Size = 0
    control_bytes: Size = 0
    control_entries: Size = 0
    messages: Size = 0


class ViewPacket(_DriftPacket, frozen=True, gc=False):
    """The sender's view, for a neighbour who has an older one."""

    kind: ClassVar[str] = "drift_view"
    view: ViewRecord
    extra: Piggyback
    size_bytes: Size = 0
    control_bytes: Size = 0
    control_entries: Size = 0
    messages: Size = 0


class KnockPacket(_DriftPacket, frozen=True, gc=False):
    """A newcomer asks its neighbours where to begin."""

    kind: ClassVar[str] = "drift_knock"
    extra: Piggyback
    size_bytes: Size = 0
    control_bytes: Size = 0
    control_entries: Size = 0
    messages: Size = 0


class CheckpointPacket(_DriftPacket, frozen=True, gc=False):
    """A place in the total order to begin behind: the view, and each stream's last flood before that place.

    `sources` are the streams whose clocks count there.
    """

    kind: ClassVar[str] = "drift_checkpoint"
    view: ViewRecord
    timestamp: int
    sources: tuple[StreamId, ...]
    done: tuple[Have, ...]
    extra: Piggyback
    size_bytes: Size = 0
    control_bytes: Size = 0
    control_entries: Size = 0
    messages: Size = 0


def sizes_of(
    extra: Piggyback, control: int, entries: int, payload: int = 0, messages: int = 0
) -> tuple[int, int, int, int]:
    """The four size fields of a packet: `control` and `entries` beside header and piggyback."""
    bytes_ = HEADER_BYTES + extra.size_bytes + control
    return bytes_ + payload, bytes_, extra.entries + entries, messages
