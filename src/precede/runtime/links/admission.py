"""Admission: decides which frames of a transport are data of neighbours.

`SealedAdmission` admits members of a group: pairs of them exchange frames in sessions, frames for everybody are
encrypted with the group key. `OpenAdmission` is for links that have encryption of their own: it believes the
sender that a frame names.

Both sort incoming frames into authentic data of one neighbour (`Arrived.sender`) and data for everybody, in
which the sender only names itself. Both report when a neighbour is ready, alive, or at a new address.
"""

import struct
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, NamedTuple

import msgspec

from precede.core.identity import NodeId
from precede.runtime.links.agreement import VERSION_AT, Agreement
from precede.runtime.links.group_seal import OVERHEAD as GROUP_OVERHEAD
from precede.runtime.links.introductions import (
    MOST_NAME_BYTES,
    MOST_TOGETHER,
    Directory,
    Identity,
    Introduction,
)
from precede.runtime.links.link_events import Arrived, LinkEvents
from precede.runtime.links.sessions import DATA_OVERHEAD, WIRE_VERSION, Sessions
from precede.runtime.transports.transport import Where

_BEACON: Final = struct.Struct(">qQBQ8s")
_OPEN_BEACON: Final = struct.Struct(">qQB8s")
_OPEN: Final = struct.Struct(">BqQB")
MOST_HEARD: Final = 1024
_MOVED_S: Final = 1.0
_INTRODUCTIONS: Final = msgspec.msgpack.Decoder(
    Annotated[tuple[Introduction, ...], msgspec.Meta(max_length=MOST_TOGETHER)]
)


class Beacon(NamedTuple):
    """The content of a beacon: node id, boot (drawn at each start), wire version, digest of members, stamp."""

    number: NodeId
    boot: int
    version: int
    digest: int
    stamp: bytes


class Admission(ABC):
    """Decides which frames are data of neighbours, and seals (encrypts) frames for them. `Links` uses it."""

    overhead: int
    """The most bytes that sealing adds to the data of a frame."""
    version = WIRE_VERSION

    def __init__(self, number: NodeId, boot: int, agreement: Agreement) -> None:
        self.number = number
        self.boot = boot
        self.agreement = agreement
        self.dropped: Counter[str] = Counter()
        self.handshakes: Counter[str] = Counter()

    @abstractmethod
    def connect(self, events: LinkEvents) -> None:
        """Set where frames and reports go. `Links` calls it once, before anything else."""

    @abstractmethod
    def frame(self, frame: bytes, where: Where, now: float) -> Arrived | None:
        """Handle a frame that was heard. Return the authentic data in it for the layer above, or None."""

    @abstractmethod
    def seal_to(self, peer: NodeId, data: bytes) -> tuple[bytes, Where] | None:
        """Seal data for one neighbour. Return the frame and its address; None if there is no session."""

    @abstractmethod
    def seal_to_all(self, data: bytes) -> bytes:
        """Seal data into a frame for everybody."""

    @abstractmethod
    def beacon(self) -> bytes:
        """Return the content of this member's next beacon."""

    @abstractmethod
    def beacon_heard(self, data: bytes, where: Where, now: float) -> NodeId | None:
        """Handle a beacon. Return the member that it names if there is a session with it, else None.

        Without a session, one is begun with a member that was introduced. A member that was never introduced is
        reported as a stranger. Without keys there are no sessions, and every sender is returned.
        """

    def _is_of_another_version(self, data: bytes) -> bool:
        """Return whether a beacon has another version of the wire format; if so, warn of its sender."""
        if len(data) <= VERSION_AT or data[VERSION_AT] == self.version:
            return False
        sender = int.from_bytes(data[:8], "big", signed=True)
        if sender != self.number:
            self.agreement.other_version(sender, data[VERSION_AT], self.version)
        return True

    def trust(self, where: Where) -> None:
        """Trust an address that the application named: frames may go there before it has answered."""

    def ping(self, peer: NodeId) -> None:
        """Send a neighbour a frame that it must answer, to test whether it is alive."""

    def tick(self, now: float) -> None:
        """Repeat unanswered frames; call it about every 50 ms."""

    def introductions(self, peer: NodeId) -> Sequence[bytes]:
        """Return the signed introductions that a neighbour needs, in parts, and record them as sent."""
        return ()

    def introduced(self, data: bytes, now: float) -> None:
        """Handle introductions that another member sent."""

    def own_introduction(self) -> bytes | None:
        """Return this member's introduction, which a stranger needs to begin a session; None without keys."""
        return None

    def may_send(self, where: Where, size: int) -> bool:
        """Return whether `size` bytes may go to an address. If so, they are spent from its budget.

        Only an address that has not proven itself has a budget of bytes. Without keys no address has one.
        """
        return True


class OpenAdmission(Admission):
    """Admission without keys: every node from which a frame arrives is a neighbour.

    Beacons have the sender's name. A member with several interfaces sends from several addresses. Its first
    address is used until no frame has come from there for a second.
    """

    overhead = _OPEN.size

    def __init__(
        self, number: NodeId, boot: int, agreement: Agreement, name: str, on_name: Callable[[NodeId, str], None]
    ) -> None:
        super().__init__(number, boot, agreement)
        self._name = name
        self._on_name = on_name
        self._places: dict[NodeId, tuple[int, Where]] = {}
        self._heard_at: dict[NodeId, float] = {}

    def connect(self, events: LinkEvents) -> None:
        self._events = events

    def frame(self, frame: bytes, where: Where, now: float) -> Arrived | None:
        if len(frame) < _OPEN.size or frame[0] != 0:
            self.dropped["truncated" if len(frame) < _OPEN.size else "version"] += 1
            self.agreement.stranger_heard(where)
            return None
        _, sender, boot, to_all = _OPEN.unpack_from(frame)
        if sender == self.number and boot != self.boot:
            self.agreement.twin_heard()
        if sender == self.number or sender < 0:
            self.dropped["own" if sender == self.number else "absurd"] += 1
            return None
        known = self._places.get(sender)
        if known is None or known[0] != boot:
            self._places[sender] = (boot, where)
            self._events.on_ready(sender, boot, where)
        elif known[1] != where and now > self._heard_at[sender] + _MOVED_S:
            self._places[sender] = (boot, where)
            self._events.on_moved(sender, where)
        if self._places[sender][1] == where:
            self._heard_at[sender] = now
        self._events.on_alive(sender)
        return Arrived(None if to_all else sender, frame[_OPEN.size :])

    def seal_to(self, peer: NodeId, data: bytes) -> tuple[bytes, Where] | None:
        place = self._places.get(peer)
        return None if place is None else (_OPEN.pack(0, self.number, self.boot, 0) + data, place[1])

    def seal_to_all(self, data: bytes) -> bytes:
        return _OPEN.pack(0, self.number, self.boot, 1) + data

    def beacon(self) -> bytes:
        fixed = _OPEN_BEACON.pack(self.number, self.boot, self.version, self.agreement.stamp())
        return fixed + self._name.encode()[:MOST_NAME_BYTES]

    def beacon_heard(self, data: bytes, where: Where, now: float) -> NodeId | None:
        if self._is_of_another_version(data):
            return None
        if not _OPEN_BEACON.size <= len(data) <= _OPEN_BEACON.size + MOST_NAME_BYTES:
            self.dropped["truncated"] += 1
            return None
        sender, _, _, stamp = _OPEN_BEACON.unpack_from(data)
        self._on_name(sender, data[_OPEN_BEACON.size :].decode(errors="replace"))
        if self.agreement.heard(sender, stamp):
            self._events.on_mismatch(where)
        return int(sender)


class SealedAdmission(Admission):
    """Admits members of a group only."""

    overhead = max(DATA_OVERHEAD, GROUP_OVERHEAD)

    def __init__(
        self,
        number: NodeId,
        identity: Identity,
        directory: Directory,
        group: str,
        keys: tuple[bytes, ...],
        boot: int,
        agreement: Agreement,
    ) -> None:
        super().__init__(number, boot, agreement)
        self.directory = directory
        self._heard: OrderedDict[NodeId, tuple[Beacon, Where]] = OrderedDict()
        self._told: dict[NodeId, tuple[int | None, int]] = {}
        self._strange = 0
        self._identity = identity
        self._group = group
        self._keys = keys

    def connect(self, events: LinkEvents) -> None:
        def on_ready(peer: NodeId, boot: int, where: Where) -> None:
            self.agreement.session_begun(peer, boot)
            events.on_ready(peer, boot, where)

        self._events = events._replace(on_ready=on_ready)
        self._sessions = Sessions(
            self.number, self._identity, self.directory, self._group, self._keys, self.boot, self._events
        )
        self.dropped = self._sessions.dropped
        self.handshakes = self._sessions.handshakes

    def rekey(self, keys: tuple[bytes, ...]) -> None:
        self._sessions.rekey(keys)

    def replace_roster(self, roster: Mapping[str, bytes]) -> list[NodeId]:
        """Use another roster. End the sessions with members that it no longer has, and return these members."""
        gone = self.directory.replace(roster)
        for peer in gone:
            self._sessions.forget(peer)
            self._heard.pop(peer, None)
            self._told.pop(peer, None)
        return gone

    def trust(self, where: Where) -> None:
        self._sessions.paths.prove(where)

    def frame(self, frame: bytes, where: Where, now: float) -> Arrived | None:
        arrived = self._sessions.frame(frame, where, now)
        if arrived is None:
            strange = self.dropped["stranger"] + self.dropped["version"]
            if strange > self._strange:
                self._strange = strange
                self.agreement.stranger_heard(where)
        return arrived

    def seal_to(self, peer: NodeId, data: bytes) -> tuple[bytes, Where] | None:
        return self._sessions.seal_to(peer, data)

    def seal_to_all(self, data: bytes) -> bytes:
        return self._sessions.seal_to_all(data)

    def ping(self, peer: NodeId) -> None:
        self._sessions.ping(peer)

    def tick(self, now: float) -> None:
        self._sessions.tick(now)

    def beacon(self) -> bytes:
        stamp = self.agreement.stamp()
        return _BEACON.pack(self.number, self.boot, self.version, self.directory.digest, stamp)

    def beacon_heard(self, data: bytes, where: Where, now: float) -> NodeId | None:
        if self._is_of_another_version(data):
            return None
        if len(data) != _BEACON.size:
            self.dropped["truncated"] += 1
            return None
        beacon = Beacon(*_BEACON.unpack(data))
        if beacon.number == self.number:
            if beacon.boot != self.boot:
                self.agreement.twin_heard()
            return None
        self._heard[beacon.number] = (beacon, where)
        self._heard.move_to_end(beacon.number)
        if len(self._heard) > MOST_HEARD:
            self._heard.popitem(last=False)
        if self.directory.find(beacon.number) is None:
            self._events.on_stranger(where)
            return None
        if self.agreement.heard(beacon.number, beacon.stamp):
            self._events.on_mismatch(where)
        session = self._sessions.current(beacon.number)
        if session is None or session.boot != beacon.boot:
            self._sessions.meet(beacon.number, beacon.boot, where, now)
            return None
        return beacon.number

    def introductions(self, peer: NodeId) -> Sequence[bytes]:
        """Return every accepted introduction, in parts, if the neighbour knows a different set of members.

        Beacons have a digest of the known members. While both digests stay as they are, this returns them once.
        A neighbour whose beacon was not heard yet may know nobody else.
        """
        heard = self._heard.get(peer)
        theirs = None if heard is None else heard[0].digest
        digests = (theirs, self.directory.digest)
        if theirs == self.directory.digest or self._told.get(peer) == digests:
            return ()
        self._told[peer] = digests
        everybody, most = self.directory.everybody(), MOST_TOGETHER
        return [encode_introductions(everybody[n : n + most]) for n in range(0, len(everybody), most)]

    def introduced(self, data: bytes, now: float) -> None:
        """Accept introductions, and begin sessions with new members that were heard."""
        try:
            introductions = _INTRODUCTIONS.decode(data)
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
            self.dropped["introduction"] += 1
            return
        for introduction in introductions:
            number = self.directory.accept(introduction)
            if number is not None and number in self._heard:
                beacon, heard_at = self._heard[number]
                self._sessions.meet(number, beacon.boot, heard_at, now)

    def own_introduction(self) -> bytes | None:
        return encode_introductions([self.directory.own])

    def may_send(self, where: Where, size: int) -> bool:
        return self._sessions.paths.may_send(where, size)


def encode_introductions(introductions: Sequence[Introduction]) -> bytes:
    return msgspec.msgpack.encode(tuple(introductions))
