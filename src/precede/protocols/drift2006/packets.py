"""The packets of DRIFT (drift2006, Figure 3 and sections 4.4 and 7), with the paper's size model.

Every packet carries virtual-flooding data (`Piggyback`), not only messages: section 8 says that any traffic
will do. Sizes: a header of 20 bytes, the payload, and 8 bytes per entry of the table (12 when entries are
chosen and must name their source).
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, TypeAlias

from msgspec import Meta, Struct

from precede.core.identity import Count, MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Message, Packet, Size, Written
from precede.protocols.drift2006.fast.prepared import PreparedFlood
from precede.protocols.floods.stream import Have, Serial, StreamId, Want

HEADER_BYTES: Final = 20
ENTRY_BYTES: Final = 8
CHOSEN_BYTES: Final = 12
HAVE_BYTES: Final = 8
WANT_BYTES: Final = 12
STREAM_BYTES: Final = 8

MOST_VOTERS: Final = 4_096
MOST_ENDS: Final = 8_192
"""How many ended streams a view has before a neighbour's word on a stream that never began is ignored."""
ATTEMPT_BITS: Final = 16
"""This many low bits of a stream's serial count its node's tries to be a source; above is the incarnation."""

FloodNumber: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 24) - 1)]
Timestamp: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 39) - 1)]
"""A reading of a logical clock; with a flood's number it fits a wide column of `clock_table`."""
GroupNumber: TypeAlias = Annotated[int, Meta(ge=-1, le=(1 << 63) - 1)]
FoundersNumber: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Layout: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 48) - 1)]
Numbered: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 62)]
"""The number of a flood that belongs to no stream. It is made from its origin's time."""

Chosen: TypeAlias = tuple[NodeId, Serial, FloodNumber, Timestamp]
"""<source, serial of its stream, sequence number, timestamp>: an entry of Seen that names its source."""

Ballot: TypeAlias = tuple[Count, NodeId, Serial]
"""A round of a view change, and the stream (source and serial) that leads it."""


class Flood(Struct, frozen=True, array_like=True, dict=True):
    """The content of one numbered flood: <m, q, qsn, qts> of Figure 3, or a change of the set of sources.

    `source` and `serial` identify the stream. `admits` names a stream that joins through this one. `closes`
    marks the last flood of its stream. A flood with a message is signed there, another one in `signature`.
    """

    source: NodeId
    serial: Serial
    number: FloodNumber
    timestamp: Timestamp
    message: Message | None = None
    admits: StreamId | None = None
    closes: bool = False
    signature: bytes = b""

    @cached_property
    def prepared(self) -> PreparedFlood:
        """The derived values, computed once for each decoded copy: in a simulation once for all nodes."""
        return PreparedFlood(self)


class Piggyback(Struct, frozen=True, gc=False, array_like=True):
    """The virtual-flooding data of a packet.

    Clocks are in `table`, one for every column that `layout` names, or in `chosen`, when the number of entries
    is limited. `floors` has, for each voter of `view`, the timestamp up to which it holds every message.
    """

    group: GroupNumber
    view: Count
    layout: Layout
    table: bytes = b""
    chosen: tuple[Chosen, ...] = ()
    floors: bytes = b""
    size_bytes: Size = 0
    entries: Size = 0


class ViewRecord(Struct, frozen=True, gc=False, array_like=True):
    """The decision of a view change: who votes from now on, and where the streams of removed sources end."""

    number: Count
    voters: Annotated[tuple[StreamId, ...], Meta(max_length=MOST_VOTERS)]
    ends: Annotated[tuple[Have, ...], Meta(max_length=2 * MOST_ENDS)]


class Prepare(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """The leader of a ballot asks for votes on the view after `view`, which is to remove `missed`."""

    view: Count
    ballot: Ballot
    missed: tuple[StreamId, ...]


class Promise(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """A voter joins a ballot. It tells its earlier vote, if any, and how far it has the missed streams."""

    view: Count
    ballot: Ballot
    voter: StreamId
    accepted: Ballot | None
    value: ViewRecord | None
    haves: tuple[Have, ...]


class Propose(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """The leader of a ballot proposes the next view."""

    view: Count
    ballot: Ballot
    value: ViewRecord


class Accepted(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """A voter accepts the proposed view; it holds every flood that the view keeps."""

    view: Count
    ballot: Ballot
    voter: StreamId


class Application(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """A node asks one source, its sponsor, to admit a stream of its own."""

    stream: StreamId
    sponsor: StreamId


class Candidacy(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """Announces that a node in no group wants to be a source and has found no group since `since`."""

    since: Instant


class Founder(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """Announces that a founder of the list with this number is up, and in no group."""

    founders: FoundersNumber
    founder: NodeId


class FoundingPrepare(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """The leader of a ballot asks the founders of a list to join it."""

    founders: FoundersNumber
    ballot: Ballot


class FoundingPromise(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """A founder has joined a ballot; `accepted` and `record` are its last acceptance, if any."""

    founders: FoundersNumber
    ballot: Ballot
    voter: StreamId
    accepted: Ballot | None
    record: ViewRecord | None


class FoundingProposal(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """The leader of a ballot proposes the first view of the group."""

    founders: FoundersNumber
    ballot: Ballot
    record: ViewRecord


class FoundingAccepted(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """A founder accepts the proposed view."""

    founders: FoundersNumber
    ballot: Ballot
    voter: StreamId


class Origin(Struct, frozen=True, gc=False, array_like=True):
    """How a group was founded: the number of the list of its founders, and its first view.

    `by`: the stream of the node that says so. `whole`: it keeps every flood since the beginning.
    """

    founders: FoundersNumber
    record: ViewRecord
    by: StreamId | None = None
    whole: bool = False


class Founded(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """The founders have decided the first view of their group."""

    origin: Origin


Body: TypeAlias = (
    Prepare
    | Promise
    | Propose
    | Accepted
    | Application
    | Candidacy
    | Founder
    | FoundingPrepare
    | FoundingPromise
    | FoundingProposal
    | FoundingAccepted
    | Founded
)


class _DriftPacket(Packet, frozen=True, gc=False):
    """A packet of DRIFT. Sizes are fields, computed once per transmission: every reception reads them."""


class DriftPacket(_DriftPacket, frozen=True, gc=False):
    """A numbered flood."""

    kind: ClassVar[str] = "drift"
    to_all: ClassVar[bool] = True
    flood: Flood
    extra: Piggyback
    size_bytes: Size = 0
    control_bytes: Size = 0
    control_entries: Size = 0
    messages: Size = 0

    def written(self) -> Sequence[Written]:
        """Return what the source signs. Floods without a message are signed too, as they take a number."""
        flood = self.flood
        order = (flood.source, flood.serial, flood.number, flood.timestamp, flood.admits, flood.closes)
        if flood.message is None:
            return (_signed_alone(flood.source, flood.source, order, flood),)
        return (Written(flood.message, None, None, order, flood.source),)


class DummyPacket(_DriftPacket, frozen=True, gc=False):
    """A flood without content (section 4.4, Termination): relays attach their clocks to it.

    `clock` is the origin's own, if the origin is a source; in TOF that is all a dummy shows. `asks`: the origin
    has undelivered messages and waits for the clocks of others.
    """

    kind: ClassVar[str] = "drift_dummy"
    to_all: ClassVar[bool] = True
    origin: NodeId
    number: Numbered
    asks: bool
    clock: Chosen | None
    extra: Piggyback
    size_bytes: Size = 0
    control_bytes: Size = 0
    control_entries: Size = 0
    messages: Size = 0
    signature: bytes = b""

    def written(self) -> Sequence[Written]:
        order = ("dummy", self.number, self.asks, self.clock)
        claimed = self.origin if self.clock is None else self.clock[0]
        return (_signed_alone(self.origin, claimed, order, self),)


class ControlPacket(_DriftPacket, frozen=True, gc=False):
    """A flood about membership. Nobody keeps it, so one that is lost is not recovered."""

    kind: ClassVar[str] = "drift_control"
    to_all: ClassVar[bool] = True
    origin: NodeId
    number: Numbered
    body: Body
    extra: Piggyback
    size_bytes: Size = 0
    control_bytes: Size = 0
    control_entries: Size = 0
    messages: Size = 0
    signature: bytes = b""

    def written(self) -> Sequence[Written]:
        claimed = _speaker(self.body, self.origin)
        return (_signed_alone(self.origin, claimed, ("control", self.number, self.body), self),)


Carried: TypeAlias = Flood | DummyPacket | ControlPacket
"""What is flooded: a numbered flood of a stream, or a flood that belongs to no stream."""


class DigestPacket(_DriftPacket, frozen=True, gc=False):
    """Tells neighbours up to which number the sender has the floods of each stream."""

    kind: ClassVar[str] = "drift_digest"
    to_all: ClassVar[bool] = True
    haves: tuple[Have, ...]
    extra: Piggyback
    size_bytes: Size = 0
    control_bytes: Size = 0
    control_entries: Size = 0
    messages: Size = 0


class WantPacket(_DriftPacket, frozen=True, gc=False):
    """Requests the floods that the sender lacks; for neighbours only."""

    kind: ClassVar[str] = "drift_want"
    to_all: ClassVar[bool] = True
    wants: tuple[Want, ...]
    extra: Piggyback
    size_bytes: Size = 0
    control_bytes: Size = 0
    control_entries: Size = 0
    messages: Size = 0


class ViewPacket(_DriftPacket, frozen=True, gc=False):
    """The sender's view, for neighbours with an older one."""

    kind: ClassVar[str] = "drift_view"
    to_all: ClassVar[bool] = True
    view: ViewRecord
    extra: Piggyback
    size_bytes: Size = 0
    control_bytes: Size = 0
    control_entries: Size = 0
    messages: Size = 0


class KnockPacket(_DriftPacket, frozen=True, gc=False):
    """Requests a checkpoint from the neighbours."""

    kind: ClassVar[str] = "drift_knock"
    to_all: ClassVar[bool] = True
    extra: Piggyback
    size_bytes: Size = 0
    control_bytes: Size = 0
    control_entries: Size = 0
    messages: Size = 0


class CheckpointPacket(_DriftPacket, frozen=True, gc=False):
    """A position in the total order, from which a newcomer receives.

    `timestamp` is the position, `done` the last flood of each stream before it, `sources` the streams whose
    clocks count there. `origin` is how the group was founded, if its founders agreed on it.
    """

    kind: ClassVar[str] = "drift_checkpoint"
    view: ViewRecord
    timestamp: Timestamp
    sources: tuple[StreamId, ...]
    done: tuple[Have, ...]
    extra: Piggyback
    size_bytes: Size = 0
    control_bytes: Size = 0
    control_entries: Size = 0
    messages: Size = 0
    origin: Origin | None = None


def _speaker(body: Body, origin: NodeId) -> NodeId:
    """Return the node in whose name a body speaks; the origin of its packet if it names nobody."""
    match body:
        case Prepare() | Propose() | FoundingPrepare() | FoundingProposal():
            return body.ballot[1]
        case Promise() | Accepted() | FoundingPromise() | FoundingAccepted():
            return body.voter[0]
        case Application():
            return body.stream[0]
        case Founder():
            return body.founder
        case Founded():
            return origin if body.origin.by is None else body.origin.by[0]
        case Candidacy():
            return origin


def _signed_alone(origin: NodeId, claimed: NodeId, order: Any, holder: Any) -> Written:
    """Return what the origin of a flood without a message signs. The flood speaks for the node `claimed`."""
    return Written(Message(MessageId(origin, 0, 0), b""), None, None, order, claimed, holder)


def node_incarnation(id: StreamId) -> int:
    return id[1] >> ATTEMPT_BITS


def sizes_of(
    extra: Piggyback, control: int, entries: int, payload: int = 0, messages: int = 0
) -> tuple[int, int, int, int]:
    """Return the four size fields of a packet. `control` and `entries` come on top of header and piggyback."""
    bytes_ = HEADER_BYTES + extra.size_bytes + control
    return bytes_ + payload, bytes_, extra.entries + entries, messages
