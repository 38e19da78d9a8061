"""Handshakes under every schedule of a small world, and faults planted into them that are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from precede.runtime.links import sessions as sessions_module
from precede.runtime.links.noise import Handshake
from precede.runtime.links.replay_window import ReplayWindow
from precede.runtime.links.session_table import Attempt, PeerSessions, Session, SessionTable
from precede.runtime.links.sessions import Sessions
from tests.runtime.links.handshake_memory import ATTEMPT_FIELDS, PEER_FIELDS, SESSION_FIELDS
from tests.runtime.links.handshakes import MOST_HEALING_FRAMES, Bounds, Broken, Explorer

SMALL: list[dict[str, Any]] = [
    {"bounds": Bounds(beacons=2, ticks=1, restarts=1)},
    {"bounds": Bounds(beacons=2, ticks=1, says=1)},
    {"bounds": Bounds(beacons=1, ticks=1, says=1, sleeps=1)},
    {"bounds": Bounds(beacons=1, ticks=1, says=1, redirects=1)},
    {"bounds": Bounds(beacons=2, ticks=1), "impostor": True},
    {"bounds": Bounds(beacons=2, ticks=0), "count": 3},
]
LARGE: list[dict[str, Any]] = [
    {"bounds": Bounds(beacons=3, ticks=2, restarts=1, says=1)},
    {"bounds": Bounds(beacons=3, ticks=1, restarts=2, says=1)},
    {"bounds": Bounds(beacons=2, ticks=2, restarts=1, says=1, sleeps=1)},
    {"bounds": Bounds(beacons=2, ticks=1, restarts=1, says=1, redirects=1)},
    {"bounds": Bounds(beacons=3, ticks=1, restarts=1, says=1), "impostor": True},
    {"bounds": Bounds(beacons=3, ticks=1, restarts=1), "count": 3},
]


@pytest.mark.parametrize("world", SMALL, ids=str)
def test_no_schedule_breaks_an_invariant(world: dict[str, Any]) -> None:
    assert Explorer(**world, heal_every=20).explore(2_000) > 100


def test_long_random_schedules_heal() -> None:
    explorer = random_walks()
    assert 0 < max(explorer.walk(seed, 100) for seed in range(6)) <= MOST_HEALING_FRAMES


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("world", LARGE, ids=str)
def test_larger_bounds_breadth_first(world: dict[str, Any]) -> None:
    """Two and three members, up to 150,000 states each."""
    explorer = Explorer(**world, heal_every=50)
    count = explorer.explore(150_000)
    print(world, count, "healed with at most", explorer.most_healing_frames, "frames")
    assert count > 5_000


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_two_thousand_random_schedules() -> None:
    explorer = random_walks()
    assert max(explorer.walk(seed, 120) for seed in range(2_000)) <= MOST_HEALING_FRAMES


def random_walks() -> Explorer:
    return Explorer(3, Bounds(beacons=12, ticks=12, restarts=4, says=6, sleeps=3, redirects=4))


def test_all_attributes_tell_states_apart() -> None:
    """A new attribute of these classes must enter `handshake_memory`, or be left out there for a reason."""
    made: Any = {
        Session: Session(1, 1, 1, 1, "", 0.0),
        Attempt: Attempt(1, 1, 1, "", None, 0.0),  # type: ignore[arg-type]
        PeerSessions: PeerSessions(),
    }
    assert sorted(vars(made[Session])) == sorted(SESSION_FIELDS)
    assert sorted(vars(made[Attempt])) == sorted(ATTEMPT_FIELDS)
    assert sorted(vars(made[PeerSessions])) == sorted(PEER_FIELDS)


# -- planted faults ----------------------------------------------------------------------------------------


def any_counter_is_new(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplayWindow, "seen", lambda self, counter: False)


def boots_are_not_bound(patch: pytest.MonkeyPatch) -> None:
    """A handshake does not name the start of the member that answers it."""
    mac, prologue = sessions_module._mac, Sessions._prologue
    patch.setattr(sessions_module, "_mac", lambda keys, receiver, boot, data: mac(keys, receiver, 0, data))
    patch.setattr(Sessions, "_prologue", lambda self, one, other, boot: prologue(self, one, other, 0))


def static_keys_are_not_mixed(patch: pytest.MonkeyPatch) -> None:
    """A handshake proves the group key only, not who its two members are."""
    mix = Handshake._mix_token
    patch.setattr(
        Handshake,
        "_mix_token",
        lambda self, token: None if "s" in token[:2] and token != "psk" else mix(self, token),
    )


def earlier_starts_stay(patch: pytest.MonkeyPatch) -> None:
    """Sessions with a peer's earlier starts outlive the proof of a later one."""

    def confirm(self: SessionTable, session: Session) -> bool:
        peer = self.peers[session.peer]
        session.confirmed = True
        fresh, peer.boot = peer.boot != session.boot, session.boot
        return fresh

    patch.setattr(SessionTable, "confirm", confirm)


def later_starts_end(patch: pytest.MonkeyPatch) -> None:
    """The late proof of an earlier start ends the session with the present one: the fault that was here."""
    confirm = SessionTable.confirm

    def ends_all(self: SessionTable, session: Session) -> bool:
        peer = self.peers[session.peer]
        if peer.boot != session.boot:
            for other in [each for each in peer.sessions if each.boot != session.boot]:
                self.end(peer, other)
        return confirm(self, session)

    patch.setattr(SessionTable, "confirm", ends_all)


def late_proofs_count(patch: pytest.MonkeyPatch) -> None:
    """An attempt with an earlier start goes on after a later start was proven, and is believed."""
    patch.setattr(SessionTable, "is_superseded", lambda self, session: False)


def attempts_stay_in_the_table(patch: pytest.MonkeyPatch) -> None:
    def end_attempt(self: SessionTable, peer: PeerSessions) -> None:
        peer.attempt = None

    patch.setattr(SessionTable, "end_attempt", end_attempt)


def message_1_is_not_repeated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sessions, "_tick_attempt", lambda self, peer, now: None)


FAULTS: list[tuple[Callable[[pytest.MonkeyPatch], None], str, dict[str, Any]]] = [
    (any_counter_is_new, "freshness", {"bounds": Bounds(beacons=1, ticks=0, says=1)}),
    (boots_are_not_bound, "agreement|identity", {"bounds": Bounds(beacons=1, ticks=0, restarts=1)}),
    (static_keys_are_not_mixed, "identity", {"bounds": Bounds(beacons=2, ticks=0), "impostor": True}),
    (
        earlier_starts_stay,
        "freshness",
        {"bounds": Bounds(beacons=2, ticks=0, restarts=1, says=1), "heal_every": 0},
    ),
    (later_starts_end, "healing", {"bounds": Bounds(beacons=3, ticks=1, restarts=1), "heal_every": 12}),
    (late_proofs_count, "freshness", {"bounds": Bounds(beacons=2, ticks=1, restarts=1), "heal_every": 0}),
    (attempts_stay_in_the_table, "half-open", {"bounds": Bounds(beacons=2, ticks=0, restarts=1)}),
    (message_1_is_not_repeated, "healing", {"bounds": Bounds(beacons=2, ticks=1)}),
]


@pytest.mark.parametrize(
    ("fault", "invariant", "world"), FAULTS, ids=lambda each: getattr(each, "__name__", "")
)
def test_a_planted_fault_is_found(
    fault: Callable[[pytest.MonkeyPatch], None],
    invariant: str,
    world: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fault(monkeypatch)
    with pytest.raises(Broken, match=f"^({invariant}):"):
        Explorer(**{"heal_every": 2, **world}).explore(20_000)
