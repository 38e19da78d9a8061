"""Sessions between pairs of members: handshakes, data frames, proven paths (docs/security.md).

Each pair of members that hear each other runs the Noise handshake KKpsk0. It binds both identities, both boots,
the group and the wire version, and ends in one key for each direction. Nothing outside a session changes the
state of a pair: frames for everybody (`group_seal.py`) carry beacons, introductions, messages that may be lost.

This module has no clock and no socket: inputs bring `now` in seconds, frames leave through `send`.

    message 1   1, own index 4, hint 4, mac 8, e 32, sealed boot 8, tag 16       73 bytes
    message 2   2, their index 4, own index 4, e 32, tag 16                      57 bytes
    data        3, receiver's index 4, counter 4, sealed data, tag 16            25 bytes and the data
    cookie      4, receiver's index 4, nonce 16, sealed cookie 32                53 bytes
    message 1 with cookie   6, as message 1, cookie 16                           89 bytes
"""

import hmac
from collections import Counter
from hashlib import blake2b
from typing import Final

from precede.core.identity import NodeId
from precede.runtime.links.cookies import Cookies, open_cookie
from precede.runtime.links.group_seal import BROADCAST, GroupKeys, GroupSeal, derive_keys
from precede.runtime.links.introductions import Directory, Identity, Introduction
from precede.runtime.links.link_events import Arrived, LinkEvents
from precede.runtime.links.noise import KKPSK0, Handshake, NoiseError
from precede.runtime.links.paths import Paths
from precede.runtime.links.session_table import (
    FIRST_RETRY_S,
    LAST_RETRY_S,
    NEVER,
    Attempt,
    PeerSessions,
    Session,
    SessionTable,
)
from precede.runtime.transports.transport import Where

WIRE_VERSION: Final = 2
MESSAGE_1: Final = 1
MESSAGE_2: Final = 2
DATA: Final = 3
COOKIE: Final = 4
MESSAGE_1_COOKIE: Final = 6
_SIZES: Final = {MESSAGE_1: 73, MESSAGE_2: 57, COOKIE: 53, MESSAGE_1_COOKIE: 89}

PING: Final = 0
PONG: Final = 1
CHALLENGE: Final = 2
RESPONSE: Final = 3
PAYLOAD: Final = 4
"""The first byte inside a data frame. A ping asks for a pong; both also confirm a session."""

DATA_OVERHEAD: Final = 1 + 4 + 4 + 16 + 1
GIVE_UP_S: Final = 10.0
SECOND_STARTS_AFTER_S: Final = 0.3
IDLE_S: Final = 24 * 3600.0
REKEY_S: Final = 3600.0
REKEY_FRAMES: Final = 1 << 20


class Sessions:
    """All sessions of one member over one transport."""

    def __init__(
        self,
        number: NodeId,
        identity: Identity,
        directory: Directory,
        group: str,
        keys: tuple[bytes, ...],
        boot: int,
        events: LinkEvents,
    ) -> None:
        self.dropped: Counter[str] = Counter()
        self.handshakes: Counter[str] = Counter()
        self.boot = boot
        self.paths = Paths()
        self._number = number
        self._identity = identity
        self._directory = directory
        self._group = group.encode()
        self._group_keys = keys
        self._keys = [derive_keys(key) for key in keys]
        self._seal_for_all = GroupSeal(self._keys)
        self._table = SessionTable()
        self._cookies = Cookies()
        self._events = events

    def rekey(self, keys: tuple[bytes, ...]) -> None:
        """Use these group keys from now on, newest first. If a key is removed, all sessions end."""
        removed = any(key not in keys for key in self._group_keys)
        self._group_keys = keys
        self._keys = [derive_keys(key) for key in keys]
        self._seal_for_all.rekey(self._keys)
        if removed:
            for number in list(self._table.peers):
                self._table.forget(number)

    def forget(self, peer: NodeId) -> None:
        self._table.forget(peer)

    # -- out -------------------------------------------------------------------------------------------------

    def seal_to(self, peer: NodeId, data: bytes) -> tuple[bytes, Where] | None:
        """Seal data for a member. Return the frame and its address; None without a confirmed session."""
        session = self._table.current(peer)
        return None if session is None else (_seal(session, PAYLOAD, data), session.where)

    def seal_to_all(self, data: bytes) -> bytes:
        """Seal data into a frame that every member can read, and that every member could have made."""
        return self._seal_for_all.seal(data)

    def current(self, peer: NodeId) -> Session | None:
        return self._table.current(peer)

    def ping(self, peer: NodeId) -> None:
        """Send a ping to test whether a member still receives frames of its session."""
        session = self._table.current(peer)
        if session is not None:
            self._transmit(_seal(session, PING), session.where)

    def _transmit(self, frame: bytes, where: Where) -> None:
        """Send a frame of the session layer. Beyond the budget of an unproven address, count and drop it."""
        if self.paths.may_send(where, len(frame)):
            self._events.send(frame, where)
        else:
            self.dropped["unproven_address"] += 1

    # -- in --------------------------------------------------------------------------------------------------

    def frame(self, frame: bytes, where: Where, now: float) -> Arrived | None:
        """Handle a frame. Returns authentic data for the layer above, or None."""
        self.paths.heard(where, len(frame))
        kind = frame[0] if frame else -1
        if kind == DATA:
            return self._data(frame, where, now)
        if kind == BROADCAST:
            data = self._seal_for_all.open(frame)
            if isinstance(data, bytes):
                return Arrived(None, data)
            self.dropped[data] += 1
        elif kind not in _SIZES:
            self.dropped["version" if frame else "truncated"] += 1
        elif len(frame) != _SIZES[kind]:
            self.dropped["truncated"] += 1
        elif kind == MESSAGE_2:
            self._message_2(frame, where, now)
        elif kind == COOKIE:
            self._cookie(frame)
        else:
            self._message_1(frame, where, now)
        return None

    def _data(self, frame: bytes, where: Where, now: float) -> Arrived | None:
        session = self._table.session(int.from_bytes(frame[1:5], "big"))
        counter = int.from_bytes(frame[5:9], "big")
        if len(frame) < DATA_OVERHEAD or session is None:
            self.dropped["truncated" if session is not None else "no_session"] += 1
            return None
        if session.window.seen(counter):
            self.dropped["replayed"] += 1
            return None
        data = session.receiving.decrypt_at(counter, frame[9:], frame[:9])
        if data is None:
            self.dropped["tampered"] += 1
            return None
        newest = session.window.mark(counter)
        if not session.confirmed:
            if not self._confirm(session, where):
                return None
        elif where != session.where and newest:
            for address, token in self.paths.challenge(session.peer, session.where, where, now):
                self._transmit(_seal(session, CHALLENGE, token), address)
        session.used = now
        self._table.peer(session.peer).ping_at = NEVER
        self._events.on_alive(session.peer)
        return self._inside(session, data, where, now)

    def _inside(self, session: Session, data: bytes, where: Where, now: float) -> Arrived | None:
        kind, rest = data[0], data[1:]
        if kind == PAYLOAD:
            return Arrived(session.peer, rest)
        if kind == PING:
            self._transmit(_seal(session, PONG), where)
        elif kind == CHALLENGE:
            self._transmit(_seal(session, RESPONSE, rest), where)
        elif kind == RESPONSE:
            self._move(session, self.paths.answered(session.peer, rest, where, now))
        elif kind != PONG:
            self.dropped["kind"] += 1
        return None

    def _move(self, session: Session, where: Where | None) -> None:
        if where is None or where == session.where:
            return
        for each in self._table.peer(session.peer).sessions:
            each.where = where
        self.paths.prove(where)
        self._events.on_moved(session.peer, where)

    # -- handshakes ------------------------------------------------------------------------------------------

    def meet(self, peer: NodeId, boot: int, where: Where, now: float) -> None:
        """Begin a handshake with a member, unless there is a session since its last start (`boot`).

        The member with the smaller number begins at once. If both begin, both sessions work.
        """
        known = self._table.peer(peer)
        current = known.current()
        if current is not None and current.boot == boot:
            return
        if known.attempt is not None and known.attempt.boot == boot:
            return
        if self._number < peer:
            self._begin(peer, boot, where, now)
        elif known.start_at is None or known.start_at[1] != boot:
            known.start_at = (now + SECOND_STARTS_AFTER_S, boot, where)

    def _begin(self, peer: NodeId, boot: int, where: Where, now: float) -> None:
        introduction = self._directory.find(peer)
        if introduction is None:
            return
        own, keys = self._directory.own, self._keys[0]
        handshake = self._handshake(True, self._prologue(own.id, introduction.id, boot), introduction, keys)
        attempt = Attempt(peer, boot, self._table.new_index(), where, handshake, now)
        noise = handshake.write(self.boot.to_bytes(8, "big"))
        head = bytes((MESSAGE_1,)) + attempt.index.to_bytes(4, "big") + _mask(keys, noise[:32], own.id[:4])
        attempt.frame = head + _mac(keys, introduction.id, boot, head + noise) + noise
        self._table.begin(attempt)
        self.handshakes["begun"] += 1
        self._transmit(attempt.frame, where)

    def _message_1(self, frame: bytes, where: Where, now: float) -> None:
        head, mac, noise = bytes((MESSAGE_1,)) + frame[1:9], frame[9:17], frame[17:73]
        own_id = self._directory.own.id
        for keys in self._keys:
            if hmac.compare_digest(mac, _mac(keys, own_id, self.boot, head + noise)):
                break
        else:
            self.dropped["stranger"] += 1
            return
        candidates = self._directory.with_hint(_mask(keys, noise[:32], head[5:9]))
        for number in candidates:
            peer = self._table.peers.get(number)
            if peer is not None and noise[:32] in peer.ephemerals:
                self._repeat_answer(peer, noise[:32], where)
                return
        cookie = frame[73:]
        if self._cookies.needed(now) and not (cookie and self._cookies.accepts(cookie, where, now)):
            self._transmit(bytes((COOKIE,)) + frame[1:5] + self._cookies.seal(keys, where, mac, now), where)
            return
        theirs = int.from_bytes(frame[1:5], "big")
        if not any(self._answer(number, keys, theirs, noise, where, now) for number in candidates):
            self._cookies.count_failure(now)
            self.dropped["forged" if candidates else "unknown_member"] += 1
            if not candidates:
                self._events.on_stranger(where)

    def _answer(
        self, number: NodeId, keys: GroupKeys, theirs: int, noise: bytes, where: Where, now: float
    ) -> bool:
        """Answer message 1 and return True if the member `number` wrote it; else return False."""
        introduction = self._directory.find(number)
        if introduction is None or number == self._number:
            return False
        prologue = self._prologue(introduction.id, self._directory.own.id, self.boot)
        handshake = self._handshake(False, prologue, introduction, keys)
        try:
            payload = handshake.read(noise)
        except NoiseError:
            return False
        boot = int.from_bytes(payload, "big")
        session = Session(number, boot, self._table.new_index(), theirs, where, now)
        indices = theirs.to_bytes(4, "big") + session.mine.to_bytes(4, "big")
        session.answer = bytes((MESSAGE_2,)) + indices + handshake.write()
        session.agree(handshake.split())
        self._table.add(session, noise[:32])
        self.handshakes["answered"] += 1
        self._transmit(session.answer, where)
        return True

    def _repeat_answer(self, peer: PeerSessions, ephemeral: bytes, where: Where) -> None:
        """Repeat the answer to a repeated message 1, but not to another address: that may be a replay."""
        session = self._table.session(peer.ephemerals[ephemeral])
        if session is not None and not session.confirmed and session.where == where:
            self._transmit(session.answer, where)
        else:
            self.dropped["replayed"] += 1

    def _message_2(self, frame: bytes, where: Where, now: float) -> None:
        attempt = self._table.attempt(int.from_bytes(frame[1:5], "big"))
        if attempt is None:
            self.dropped["no_session"] += 1
            return
        try:
            attempt.handshake.read(frame[9:])
        except NoiseError:
            self.dropped["forged"] += 1
            return
        peer = self._table.peer(attempt.peer)
        self._table.end_attempt(peer)
        theirs = int.from_bytes(frame[5:9], "big")
        session = Session(attempt.peer, attempt.boot, attempt.index, theirs, where, now)
        session.agree(attempt.handshake.split())
        self._table.add(session, order=attempt.order)
        if not self._confirm(session, where):
            return
        peer.ping_wait = FIRST_RETRY_S
        peer.ping_at = now + FIRST_RETRY_S
        self.ping(attempt.peer)

    def _confirm(self, session: Session, where: Where) -> bool:
        """Confirm a session: the peer has proven its key and address. End it (False) if it restarted since."""
        if self._table.is_superseded(session):
            self._table.end(self._table.peer(session.peer), session)
            self.dropped["no_session"] += 1
            return False
        session.where = where
        self.paths.prove(where)
        self.handshakes["confirmed"] += 1
        if self._table.confirm(session):
            self._events.on_ready(session.peer, session.boot, where)
        return True

    def _cookie(self, frame: bytes) -> None:
        attempt = self._table.attempt(int.from_bytes(frame[1:5], "big"))
        if attempt is None or attempt.frame[0] == MESSAGE_1_COOKIE:
            self.dropped["no_session"] += 1
            return
        cookie = open_cookie(self._keys[0], frame[5:], attempt.frame[9:17])
        if cookie is None:
            self.dropped["forged"] += 1
            return
        attempt.frame = bytes((MESSAGE_1_COOKIE,)) + attempt.frame[1:] + cookie
        self._transmit(attempt.frame, attempt.where)

    # -- time ------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Repeat unanswered frames, settle paths, renew old sessions. Call it about every 50 ms."""
        for number, peer in list(self._table.peers.items()):
            self._tick_attempt(peer, now)
            if peer.start_at is not None and now >= peer.start_at[0]:
                _, boot, where = peer.start_at
                self._begin(number, boot, where, now)
            if now >= peer.ping_at:
                peer.ping_wait = min(2 * peer.ping_wait, LAST_RETRY_S)
                peer.ping_at = now + peer.ping_wait
                self.ping(number)
            session = peer.current()
            if session is not None:
                self._move(session, self.paths.due(number, now))
                self._tick_session(peer, session, now)

    def _tick_attempt(self, peer: PeerSessions, now: float) -> None:
        attempt = peer.attempt
        if attempt is None or now < attempt.retry_at:
            return
        if now - attempt.began > GIVE_UP_S:
            self._table.end_attempt(peer)
            self.handshakes["unanswered"] += 1
            return
        attempt.wait = min(2 * attempt.wait, LAST_RETRY_S)
        attempt.retry_at = now + attempt.wait
        self._transmit(attempt.frame, attempt.where)

    def _tick_session(self, peer: PeerSessions, session: Session, now: float) -> None:
        for other in [each for each in peer.sessions if now - each.used > IDLE_S]:
            self._table.end(peer, other)
        old = now - session.began > REKEY_S or session.sending.counter > REKEY_FRAMES
        if old and peer.attempt is None and now - session.used < GIVE_UP_S:
            self._begin(session.peer, session.boot, session.where, now)

    def _handshake(self, initiator: bool, prologue: bytes, other: Introduction, keys: GroupKeys) -> Handshake:
        own = self._identity.link
        return Handshake(KKPSK0, initiator, prologue, static=own, remote_static=other.link, psk=keys.psk)

    def _prologue(self, initiator: bytes, responder: bytes, responder_boot: int) -> bytes:
        version = bytes((WIRE_VERSION,))
        return b"precede" + version + initiator + responder + responder_boot.to_bytes(8, "big") + self._group


def _seal(session: Session, kind: int, data: bytes = b"") -> bytes:
    counter = session.sending.counter
    header = bytes((DATA,)) + session.theirs.to_bytes(4, "big") + counter.to_bytes(4, "big")
    return header + session.sending.encrypt(bytes((kind,)) + data, header)


def _mask(keys: GroupKeys, ephemeral: bytes, hint: bytes) -> bytes:
    """Hide the start of a member's id from strangers. Applied to its own result, it gives the start again."""
    mask = blake2b(ephemeral, key=keys.hint, digest_size=4).digest()
    return bytes(left ^ right for left, right in zip(mask, hint, strict=True))


def _mac(keys: GroupKeys, receiver: bytes, boot: int, data: bytes) -> bytes:
    """Return a keyed hash that rejects strangers cheaply and binds message 1 to its receiver's boot."""
    return blake2b(receiver + boot.to_bytes(8, "big") + data, key=keys.mac, digest_size=8).digest()
