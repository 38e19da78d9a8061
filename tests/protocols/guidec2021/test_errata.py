"""E1 to E11: the errors of the printed algorithms as schedules, with the correction off and on.

papers/guidec2021/reading.md describes the schedules. Each test plays one with the printed form, which fails,
and with ours, which does not. Lifetimes are 100 s unless a test sets another.
"""

from __future__ import annotations

from typing import Any

import pytest

from precede.core.instants import MINUTE, SECOND
from precede.protocols.registry import Entry
from tests.protocols.guidec2021.contact_worlds import contact_world, play
from tests.protocols.guidec2021.literal import PRINTED_CAUSAL, PRINTED_DELTA
from tests.protocols.guidec2021.stage import Stage
from tests.protocols.guidec2021.test_flood_oracle import drawn

OURS = "delta_causal"
AS_PRINTED = {"prune": False, "lazy_expiry": True}


def delta_stage(
    protocol: str | Entry = OURS, ahead: dict[str, int] | None = None, sweep: int = 0, **options: Any
) -> Stage:
    """A stage of Δ-causal orderings whose messages live for 100 seconds."""
    return Stage(protocol, ahead, sweep, **{"lifetime": "100s", **options})


@pytest.mark.parametrize("protocol", [OURS, PRINTED_DELTA], ids=["ours", "printed"])
@pytest.mark.parametrize("lazy", [True, False])
def test_e1_a_message_waits_for_an_expired_predecessor(protocol: str | Entry, lazy: bool) -> None:
    stage = delta_stage(protocol, lazy_expiry=lazy)
    a1 = stage.broadcast("A", 0)
    stage.arrive("B", a1, 1)
    b1 = stage.broadcast("B", 50)
    stage.arrive("C", b1, 60)
    stage.until(99)
    assert stage.delivered("C") == []
    stage.until(200)
    assert stage.delivered("C") == ([] if lazy else ["B1"])
    assert (("C", "expired_pending", "B1") in stage.discarded) == lazy


@pytest.mark.parametrize(
    ("protocol", "options", "violated"),
    [(PRINTED_DELTA, {}, True), (OURS, {}, False), (OURS, {"monotone": True}, False)],
)
def test_e2_a_fast_clock_makes_a_predecessor_outlive_the_message_that_covers_it(
    protocol: str | Entry, options: dict[str, Any], violated: bool
) -> None:
    stage = delta_stage(protocol, ahead={"A": 30}, **options)
    m1 = stage.broadcast("A", 0)
    stage.arrive("C", m1, 1)
    stage.broadcast("C", 2)
    m3 = stage.broadcast("C", 4)
    stage.arrive("D", m3, 5)
    stage.until(103)
    stage.arrive("D", m1, 120)
    stage.until(300)
    assert "A1" in stage.delivered("D")
    assert bool(stage.violations("delta")) == violated


@pytest.mark.parametrize(
    ("protocol", "options", "violated"),
    [(PRINTED_DELTA, {}, True), (OURS, {"skew": "0s"}, True), (OURS, {"skew": "10s"}, False)],
)
def test_e3_the_sender_forgets_a_predecessor_too_early(
    protocol: str | Entry, options: dict[str, Any], violated: bool
) -> None:
    """X's message has expired by A's fast clock when A broadcasts, but not by B's clock."""
    stage = delta_stage(protocol, ahead={"A": 10}, **options)
    x1 = stage.broadcast("X", 0)
    stage.arrive("A", x1, 1)
    a1 = stage.broadcast("A", 95)
    stage.arrive("B", a1, 96)
    stage.arrive("B", x1, 97)
    assert "X1" in stage.delivered("B")
    assert "A1" in stage.delivered("B")
    assert bool(stage.violations("delta")) == violated


@pytest.mark.parametrize(
    ("protocol", "options", "violated"),
    [(PRINTED_DELTA, AS_PRINTED, True), (OURS, {}, False), (OURS, {"skew": "0s"}, False)],
)
def test_e3_fifo_order_breaks_between_two_nodes(
    protocol: str | Entry, options: dict[str, Any], violated: bool
) -> None:
    stage = delta_stage(protocol, ahead={"A": 10}, **options)
    a1 = stage.broadcast("A", 0)
    a2 = stage.broadcast("A", 101)
    stage.arrive("B", a2, 102)
    stage.arrive("B", a1, 103)
    assert "A2" in stage.delivered("B")
    assert bool(stage.violations("fifo")) == violated


@pytest.mark.parametrize(
    ("protocol", "options", "violated"),
    [(PRINTED_DELTA, {}, True), (OURS, {}, False), (OURS, {"monotone": True}, False)],
)
def test_e4_a_later_message_has_a_shorter_lifetime(
    protocol: str | Entry, options: dict[str, Any], violated: bool
) -> None:
    stage = delta_stage(protocol, **options)
    a1 = stage.broadcast("A", 0, lifetime=100)
    a2 = stage.broadcast("A", 10, lifetime=20)
    stage.arrive("B", a1, 11)
    stage.arrive("B", a2, 11)
    b1 = stage.broadcast("B", 12, lifetime=100)
    stage.arrive("D", b1, 13)
    stage.arrive("D", a1, 40)
    stage.until(300)
    assert {"A1", "B1"} <= set(stage.delivered("D"))
    assert bool(stage.violations("delta")) == violated


@pytest.mark.parametrize(
    ("protocol", "options", "violated"), [(PRINTED_DELTA, AS_PRINTED, True), (OURS, {}, False)]
)
def test_e5_two_broadcasts_in_one_tick(protocol: str | Entry, options: dict[str, Any], violated: bool) -> None:
    stage = delta_stage(protocol, **options)
    a1, a2 = stage.broadcast("A", 0), stage.broadcast("A", 0)
    stage.arrive("B", a1, 1)
    stage.arrive("B", a2, 1)
    b1 = stage.broadcast("B", 2)
    stage.arrive("C", a1, 3)
    stage.arrive("C", b1, 4)
    stage.arrive("C", a2, 5)
    assert sorted(stage.delivered("C")) == ["A1", "A2", "B1"]
    assert bool(stage.violations("delta")) == violated


@pytest.mark.parametrize("printed", [True, False])
def test_e6_after_a_restart_the_registry_goes_back(printed: bool) -> None:
    stage = Stage(PRINTED_CAUSAL if printed else "causal_barrier")
    before_restart = [stage.broadcast("A", 0) for _ in range(3)]
    for message in before_restart:
        stage.arrive("B", message, 1)
        stage.arrive("C", message, 1)
    b1 = stage.broadcast("B", 2)
    stage.restart("A", 3)
    stage.arrive("C", stage.broadcast("A", 4), 5)
    stage.arrive("C", b1, 6)
    assert stage.delivered("C") == ["A1", "A2", "A3", "A'1", *([] if printed else ["B1"])]


@pytest.mark.parametrize("printed", [True, False])
def test_e7_an_old_incarnation_satisfies_a_dependency_on_the_new_one(printed: bool) -> None:
    stage = Stage(PRINTED_CAUSAL if printed else "causal_barrier")
    for message in [stage.broadcast("A", 0) for _ in range(3)]:
        stage.arrive("D", message, 1)
    stage.restart("A", 3)
    after_restart = stage.broadcast("A", 4)
    stage.arrive("E", after_restart, 5)
    e1 = stage.broadcast("E", 6)
    stage.arrive("D", e1, 7)
    stage.arrive("D", after_restart, 8)
    assert {"A'1", "E1"} <= set(stage.delivered("D"))
    assert bool(stage.violations("causal")) == printed


@pytest.mark.parametrize(
    ("protocol", "options", "delivered"),
    [
        ("causal_barrier", {}, ["A1"]),
        ("delta_causal", {}, ["A1"]),
        (PRINTED_CAUSAL, {}, ["A1", "A1"]),
        (PRINTED_DELTA, AS_PRINTED, ["A1", "A1"]),
    ],
)
def test_e8_a_message_arrives_again_after_its_eviction(
    protocol: str | Entry, options: dict[str, Any], delivered: list[str]
) -> None:
    stage = Stage(protocol, **options)
    a1 = stage.broadcast("A", 0)
    stage.arrive("B", a1, 1)
    stage.evict("B", a1, 2)
    stage.arrive("B", a1, 3)
    assert stage.delivered("B") == delivered


@pytest.mark.parametrize(
    ("protocol", "options", "late"),
    [(PRINTED_DELTA, AS_PRINTED, True), (OURS, {}, False), (OURS, {"lazy_expiry": True}, False)],
)
def test_e9_a_late_sweep_of_the_cache_frees_a_message_that_has_expired_too(
    protocol: str | Entry, options: dict[str, Any], late: bool
) -> None:
    stage = delta_stage(protocol, sweep=5, **options)
    a1 = stage.broadcast("A", 0, lifetime=300)
    stage.arrive("B", a1, 1)
    x1 = stage.broadcast("B", 2)
    y1 = stage.broadcast("B", 3)
    stage.arrive("C", x1, 4)
    stage.arrive("C", y1, 4)
    stage.until(310)
    assert bool(stage.violations("delta")) == late


def test_e10_the_printed_broadcast_does_not_deliver_pending_messages() -> None:
    """A, restarted, satisfies B1's barrier with its own broadcast and does not check its pending messages."""
    stage = Stage(PRINTED_CAUSAL)
    stage.arrive("B", stage.broadcast("A", 0), 1)
    b1 = stage.broadcast("B", 2)
    stage.restart("A", 3)
    stage.arrive("A", b1, 4)
    stage.broadcast("A", 5)
    assert stage.delivered("A") == ["A'1"]


def test_e10_a_restart_delivers_messages_that_became_deliverable_meanwhile() -> None:
    stage = delta_stage(durable=True)
    stage.arrive("B", stage.broadcast("A", 0), 1)
    b1 = stage.broadcast("B", 50)
    stage.broadcast("C", 51)
    stage.arrive("C", b1, 60)
    stage.stop("C", 61)
    stage.start("C", 120)
    assert stage.delivered("C") == ["C1", "B1"]
    stage.broadcast("C", 121)
    assert stage.violations("delta") == 0


def test_e10_a_broadcast_first_delivers_messages_that_became_deliverable() -> None:
    """This holds even if the node's timer fires too late."""
    stage = delta_stage()
    stage.arrive("B", stage.broadcast("A", 0), 1)
    b1 = stage.broadcast("B", 50)
    stage.arrive("C", b1, 60)
    stage.timers.clear()
    stage.broadcast("C", 110)
    assert stage.delivered("C") == ["B1", "C1"]


@pytest.mark.parametrize("protocol", ["causal_barrier", "delta_causal"])
def test_e11_pruned_barriers_are_smaller_and_deliver_the_same(protocol: str) -> None:
    pruned = unpruned = 0
    for seed in range(15):
        setting = drawn(seed)._replace(network={"overhead": 20 * SECOND})
        instants = []
        for prune in (True, False):
            rows = play(setting, protocol, seed, order="random", prune=prune)
            instants.append(sorted((r.node, r.message, r.at) for r in rows if r.kind == "delivered"))
        assert instants[0] == instants[1], f"seed {seed}"
        pruned += barrier_entries(setting, protocol, seed, True)
        unpruned += barrier_entries(setting, protocol, seed, False)
    assert 0 < 1.5 * pruned < unpruned


def barrier_entries(setting: Any, protocol: str, seed: int, prune: bool) -> int:
    world, sink = contact_world(setting, protocol, seed, prune=prune)
    world.run(60 * MINUTE)
    world.recorder.flush()
    return sum(entries or 0 for entries in sink.events()["control_entries"].to_pylist())
