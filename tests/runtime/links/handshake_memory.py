"""The memory of a member's links as a value: what tells two states apart, and what invariants look at."""

from __future__ import annotations

from typing import Any, NamedTuple

from precede.core.identity import NodeId
from precede.runtime.links.admission import SealedAdmission
from precede.runtime.links.noise import Cipher
from precede.runtime.links.paths import OLD_PATH_ANSWERS_WITHIN_S
from precede.runtime.links.session_table import NEVER, Attempt, PeerSessions, Session
from precede.runtime.links.sessions import GIVE_UP_S, REKEY_S

SESSION_FIELDS = (
    *("peer", "boot", "mine", "theirs", "where", "sending", "receiving", "window"),
    *("began", "used", "confirmed", "answer", "order"),
)
ATTEMPT_FIELDS = ("peer", "boot", "index", "where", "handshake", "frame", "began", "wait", "retry_at", "order")
PEER_FIELDS = ("sessions", "attempt", "boot", "order", "ephemerals", "start_at", "ping_at", "ping_wait")
"""All attributes of these objects; `key_of` has each. A test compares them with the code."""


class SessionFacts(NamedTuple):
    peer: NodeId
    boot: int
    mine: bytes
    theirs: bytes
    confirmed: bool
    sending: bytes
    receiving: bytes


class Facts(NamedTuple):
    """What invariants ask of a member. `leaked`: entries of the index table that belong to no peer."""

    sessions: tuple[SessionFacts, ...]
    current: dict[NodeId, int]
    most_sessions: int
    leaked: int
    has_timer: bool


def key_of(admission: SealedAdmission, clock: float, draws: int) -> Any:
    """A hashable value that is equal for equal memories, with instants relative to the clock."""
    sessions = admission._sessions
    peers = sorted((number, _peer_key(peer, clock)) for number, peer in sessions._table.peers.items())
    moves = [
        (number, move.old, move.new, _ago(move.began, clock), move.new_answered)
        for number, move in sorted(sessions.paths._moves.items())
    ]
    return (admission.boot, draws, tuple(peers), tuple(moves))


def _ago(instant: float, clock: float) -> float:
    return round(instant - clock, 3)


def _peer_key(peer: PeerSessions, clock: float) -> Any:
    start = None if peer.start_at is None else (_ago(peer.start_at[0], clock), *peer.start_at[1:])
    return (
        tuple(_session_key(session, clock) for session in peer.sessions),
        None if peer.attempt is None else _attempt_key(peer.attempt, clock),
        peer.boot,
        peer.order,
        tuple(peer.ephemerals.items()),
        start,
        _ago(peer.ping_at, clock),
        peer.ping_wait,
    )


def _session_key(session: Session, clock: float) -> Any:
    return (
        *(session.peer, session.boot, session.mine, session.theirs, session.where),
        *(_cipher_key(session.sending), _cipher_key(session.receiving)),
        *(session.window._highest, session.window._bits),
        *(_ago(session.began, clock), _ago(session.used, clock), session.confirmed, session.answer),
        session.order,
    )


def _attempt_key(attempt: Attempt, clock: float) -> Any:
    handshake = attempt.handshake
    return (
        *(attempt.peer, attempt.boot, attempt.index, attempt.where, attempt.frame),
        *(handshake.hash, handshake._place, attempt.wait),
        *(_ago(attempt.began, clock), _ago(attempt.retry_at, clock)),
        attempt.order,
    )


def _cipher_key(cipher: Cipher) -> tuple[bytes, int]:
    aead: Any = cipher._aead
    return (aead.key, cipher.counter)


def facts_of(admission: SealedAdmission) -> Facts:
    table = admission._sessions._table
    peers = table.peers.items()
    current = {number: peer.current() for number, peer in peers}
    known = sum(len(peer.sessions) + (peer.attempt is not None) for _, peer in peers)
    return Facts(
        tuple(
            SessionFacts(
                *(number, session.boot, session.mine.to_bytes(4, "big"), session.theirs.to_bytes(4, "big")),
                *(session.confirmed, _cipher_key(session.sending)[0], _cipher_key(session.receiving)[0]),
            )
            for number, peer in peers
            for session in peer.sessions
        ),
        {number: session.boot for number, session in current.items() if session is not None},
        max([len(peer.sessions) for _, peer in peers], default=0),
        len(table._by_index) - known,
        next_due(admission, 0.0) < NEVER,
    )


def next_due(admission: SealedAdmission, clock: float) -> float:
    """When the earliest of a member's timers is due."""
    sessions = admission._sessions
    due = [move.began + OLD_PATH_ANSWERS_WITHIN_S + 0.01 for move in sessions.paths._moves.values()]
    for peer in sessions._table.peers.values():
        due.append(peer.ping_at)
        if peer.attempt is not None:
            due.append(peer.attempt.retry_at)
        if peer.start_at is not None:
            due.append(peer.start_at[0])
        current = peer.current()
        if current is not None and current.used - current.began > REKEY_S - GIVE_UP_S:
            due.append(current.began + REKEY_S + 0.01)
    return min(due, default=NEVER)
