"""The settings of one member, and how an application writes a lifetime."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.instants import MILLISECOND, Duration, Instant, parse_duration
from precede.core.node import AfterCopy
from precede.runtime.deliveries import BACKLOG_BYTES
from precede.runtime.emulation.transfers import Transfers
from precede.runtime.history.retention import Retention
from precede.runtime.rosters import RetiredKey
from precede.runtime.topics.lane_plan import PlanLane
from precede.runtime.transfer.snapshot import OnRestore, OnSnapshot
from precede.runtime.transports.transport import Transport


def wall_clock() -> Instant:
    return time.time_ns() // 1000


def read_lifetime(lifetime: str | timedelta | None) -> Duration | None:
    """Read a lifetime, such as "20s" or a timedelta, as microseconds; at least a millisecond, or None."""
    if lifetime is None:
        return None
    if isinstance(lifetime, timedelta):
        duration = lifetime // timedelta(microseconds=1)
    elif isinstance(lifetime, str):
        duration = _lifetime_in(lifetime)
    else:
        raise BadInput(f"lifetime: expected a duration such as '20s' or a timedelta, got {lifetime!r}")
    if duration < MILLISECOND:
        raise BadInput(f"lifetime: expected at least one millisecond, got {lifetime!r}")
    return duration


def _lifetime_in(text: str) -> Duration:
    try:
        return parse_duration(text)
    except BadInput as error:
        raise BadInput(f"lifetime: {error}") from None


class MemberSettings(Struct, frozen=True, kw_only=True):
    """The settings of a member, all with defaults; most members set only `keys` and `members`."""

    members: Sequence[str] = ()
    """Names of the other members, where the protocol or the application needs them."""
    book: Mapping[str, NodeId] | None = None
    """The members' node ids, for a protocol that needs small ones; else ids are hashes of names."""
    keys: tuple[bytes, ...] = ()
    """The group's keys: the first encrypts, all of them decrypt. Without any, frames are not encrypted."""
    identity: bytes | None = None
    """The secret this member signs its messages with; goes with `roster`."""
    roster: Mapping[str, bytes] | None = None
    """The public key of every member whose signature is accepted."""

    admin: bytes | None = None
    """The public key of the administrator, whose signed rosters replace `roster` while the member runs."""
    retired: tuple[RetiredKey, ...] = ()
    """Keys that were removed from the roster; messages that they signed before still count."""
    epoch: int = 0
    """The epoch of `roster`, if it is signed."""
    enrolled: int = 0
    """The epoch in which this member's key was enrolled: the incarnation of a store that begins with it, unless
    the protocol is `renewable`. Then it is drawn."""
    renewable: bool = False
    after_copy: AfterCopy = "nothing"
    """How this member goes on from a store that was copied, if its protocol is not `renewable`."""
    """A new incarnation can continue from the store of an earlier one."""

    protocol: str = ""
    """The protocol's name. A store remembers it, and refuses another member, group or protocol."""
    terms: Mapping[str, str] = {}
    """The settings that all members must share, by name, as the application wrote them."""
    lifetime: Duration | None = None
    """The lifetime of messages, where members' clocks must roughly agree."""
    store: Path | None = None
    """The file with which a member continues after a restart; None: there is no store."""
    backlog: int = BACKLOG_BYTES
    """How many bytes of delivered messages may wait for the application (`Deliveries`)."""
    synchronous: bool = True
    """Wait for the disk at each commit, so that a commit survives a power failure."""
    incarnation: int | None = None
    """The incarnation of a node without a store; drawn at random if None."""

    retention: Retention = Retention()
    """How much of what this member has delivered and logged is kept."""

    on_snapshot: OnSnapshot | None = None
    """Returns the state of the application, for members that missed messages."""
    on_restore: OnRestore | None = None
    """Replaces the state of the application by that of another member."""
    snapshot_from: Sequence[str] | None = None
    """The members whose snapshots are taken; None: everybody's."""

    log: Path | None = None
    """The folder of the event log."""
    segment: float | None = None
    """Seconds between two files of the event log; None writes a file after many rows."""
    redact: bool = False
    """Write pseudonyms in place of names into the event log."""
    log_packets: bool = True
    """Whether the event log has rows for packets too."""
    keep_rows: bool = False
    """Keep the rows of the event log in the store even without a `log` folder."""

    metrics: tuple[str, int] | None = None
    """The address on which metrics and a status are served over HTTP; None: they are not."""
    plan_lane: PlanLane | None = None
    """Plans the nodes that topics share; None: this member has no topics."""

    wired: Transport | None = None
    """A second transport, for a node that has a radio and wires (a station)."""
    wires: int = 0
    """Receive no packet until so many wired neighbours were heard: a node cannot flood to a neighbour that it
    has not heard."""
    beacon: float = 0.5
    """Seconds between two beacons."""
    by_hand: bool = False
    """Links are opened and closed by the program, not found through beacons."""
    patient: bool = False
    """Packets to an absent neighbour are kept and sent when it returns, as on a wire."""
    alone: bool = False
    """One neighbour at a time, as a mobile host has one cell."""

    clock: Callable[[], Instant] = wall_clock
    """The node's clock, in microseconds."""
    speed: float = 1.0
    """How many of the node's seconds pass in one second of the machine's."""
    transfers: Transfers | None = None
    """Records what crosses the links of an emulation."""
