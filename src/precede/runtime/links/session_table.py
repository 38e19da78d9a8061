"""The sessions and handshakes under way of one member, by index and by peer, within bounds."""

import os
from collections import OrderedDict
from typing import Final

from precede.core.identity import NodeId
from precede.runtime.links.noise import Cipher, Handshake
from precede.runtime.links.replay_window import ReplayWindow
from precede.runtime.transports.transport import Where

FIRST_RETRY_S: Final = 0.15
LAST_RETRY_S: Final = 0.6
MOST_SESSIONS: Final = 4
MOST_EPHEMERALS: Final = 4096
MOST_FRAMES: Final = (1 << 32) - 1
NEVER: Final = float("inf")


class Session:
    """One agreed pair of keys with a peer, valid until either side starts again.

    `mine` and `theirs` are the indices that name it in frames to us and to the peer. It is unconfirmed until
    the initiator has sent a frame in it, which proves that the initiator holds the key. `answer` is message 2.
    `order` is its number among the handshakes that this member began or answered.
    """

    def __init__(self, peer: NodeId, boot: int, mine: int, theirs: int, where: Where, now: float) -> None:
        self.peer = peer
        self.boot = boot
        self.mine = mine
        self.theirs = theirs
        self.where = where
        self.sending = Cipher(None)
        self.receiving = Cipher(None)
        self.window = ReplayWindow()
        self.began = self.used = now
        self.confirmed = False
        self.answer = b""
        self.order = 0

    def agree(self, ciphers: tuple[Cipher, Cipher]) -> None:
        self.sending, self.receiving = ciphers


class Attempt:
    """A handshake that this member began, not answered yet. `frame` is message 1, repeated unchanged."""

    def __init__(
        self, peer: NodeId, boot: int, index: int, where: Where, handshake: Handshake, now: float
    ) -> None:
        self.peer = peer
        self.boot = boot
        self.index = index
        self.where = where
        self.handshake = handshake
        self.frame = b""
        self.began = now
        self.wait = FIRST_RETRY_S
        self.retry_at = now + FIRST_RETRY_S
        self.order = 0


class PeerSessions:
    """The sessions and handshakes with one peer.

    `sessions` are ordered by age, confirmed ones last. `ephemerals` maps the key of each message 1 that was
    accepted lately to the index of its session. `start_at` is when this member begins a handshake unless the
    peer has. `ping_at` is when an unanswered ping is repeated. `boot` is the peer's last known start, `order`
    that of the latest session that proved it.
    """

    def __init__(self) -> None:
        self.sessions: list[Session] = []
        self.attempt: Attempt | None = None
        self.boot: int | None = None
        self.order = 0
        self.ephemerals: OrderedDict[bytes, int] = OrderedDict()
        self.start_at: tuple[float, int, Where] | None = None
        self.ping_at = NEVER
        self.ping_wait = FIRST_RETRY_S

    def current(self) -> Session | None:
        """Return the session to send in: the newest confirmed one that has counters left, or None."""
        for session in reversed(self.sessions):
            if session.confirmed and session.sending.counter < MOST_FRAMES:
                return session
        return None


class SessionTable:
    """Finds sessions and attempts by the index in a frame, and peers by their number."""

    def __init__(self) -> None:
        self.peers: dict[NodeId, PeerSessions] = {}
        self._handshakes = 0
        self._by_index: dict[int, Session | Attempt] = {}

    def peer(self, number: NodeId) -> PeerSessions:
        return self.peers.setdefault(number, PeerSessions())

    def current(self, number: NodeId) -> Session | None:
        peer = self.peers.get(number)
        return None if peer is None else peer.current()

    def session(self, index: int) -> Session | None:
        session = self._by_index.get(index)
        return session if isinstance(session, Session) else None

    def attempt(self, index: int) -> Attempt | None:
        session = self._by_index.get(index)
        return session if isinstance(session, Attempt) else None

    def new_index(self) -> int:
        """Draw an index that no session and no handshake has."""
        while True:
            index = int.from_bytes(os.urandom(4), "big")
            if index not in self._by_index:
                return index

    def begin(self, attempt: Attempt) -> None:
        """Record a handshake that this member begins; an earlier one with the same peer is given up."""
        peer = self.peer(attempt.peer)
        self.end_attempt(peer)
        attempt.order = self._next_order()
        peer.attempt = attempt
        peer.start_at = None
        self._by_index[attempt.index] = attempt

    def _next_order(self) -> int:
        self._handshakes += 1
        return self._handshakes

    def end_attempt(self, peer: PeerSessions) -> None:
        if peer.attempt is not None:
            self._by_index.pop(peer.attempt.index, None)
            peer.attempt = None

    def add(self, session: Session, ephemeral: bytes | None = None, order: int | None = None) -> None:
        """Add a session; beyond `MOST_SESSIONS` remove the peer's oldest unconfirmed one, or its oldest.

        `ephemeral` is the key of the message 1 that began it, remembered to recognise a repetition. `order` is
        that of the attempt which it completes; None if this member answers.
        """
        peer = self.peer(session.peer)
        session.order = self._next_order() if order is None else order
        self._by_index[session.mine] = session
        peer.sessions.append(session)
        if len(peer.sessions) > MOST_SESSIONS:
            unconfirmed = [each for each in peer.sessions[:-1] if not each.confirmed]
            self.end(peer, (unconfirmed or peer.sessions)[0])
        if ephemeral is not None:
            peer.ephemerals[ephemeral] = session.mine
            if len(peer.ephemerals) > MOST_EPHEMERALS:
                peer.ephemerals.popitem(last=False)

    def is_superseded(self, session: Session) -> bool:
        """Is a session with an earlier start of its peer, though its proof comes only now?

        A peer is in a start before we begin or answer a handshake with it, and a confirmed session proves that
        it is still in it afterwards. So of two starts, the one with the later handshake is the later start.
        """
        peer = self.peers[session.peer]
        return peer.boot is not None and peer.boot != session.boot and session.order < peer.order

    def confirm(self, session: Session) -> bool:
        """Confirm a session, and end those with the peer's earlier starts. True if the peer started anew."""
        peer = self.peers[session.peer]
        session.confirmed = True
        fresh = peer.boot != session.boot
        peer.boot, peer.order = session.boot, max(peer.order, session.order)
        for other in [each for each in peer.sessions if self.is_superseded(each)]:
            self.end(peer, other)
        attempt = peer.attempt
        if attempt is not None and attempt.boot != peer.boot and attempt.order < peer.order:
            self.end_attempt(peer)
        peer.sessions.sort(key=lambda each: (each.confirmed, each.began))
        peer.start_at = None
        return fresh

    def end(self, peer: PeerSessions, session: Session) -> None:
        peer.sessions.remove(session)
        self._by_index.pop(session.mine, None)

    def forget(self, number: NodeId) -> None:
        """Remove all sessions and handshakes with a peer: the peer or a key was removed."""
        peer = self.peers.pop(number, None)
        if peer is not None:
            self.end_attempt(peer)
            for session in list(peer.sessions):
                self.end(peer, session)
