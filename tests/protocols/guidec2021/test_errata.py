"""E1 to E11: the errors of the printed algorithms as schedules, with the correction off and on.

The schedules are told in papers/guidec2021/reading.md. Each test plays one twice: the printed form goes wrong,
ours does not. Lifetimes are 100 s unless said otherwise.
"""

from __future__ import annotations

from typing import Any

import pytest

from precede.core.instants import MINUTE, SECOND
from tests.protocols.guidec2021.contact_worlds import contact_world, play
from tests.protocols.guidec2021.stage import Stage
from tests.protocols.guidec2021.test_flood_oracle import drawn

PRINTED = {"tag": "deadline", "prune": False, "lazy_expiry": True}


def delta(**options: Any) -> Any:
    def open_stage(ahead: dict[str, int] | None = None, sweep: int = 0, **more: Any) -> Stage:
        return Stage("delta_causal", ahead, sweep, **{"lifetime": "100s", **options, **more})

    return open_stage


@pytest.mark.parametrize("tag", ["number", "deadline"])
@pytest.mark.parametrize("lazy", [True, False])
def test_e1_a_message_waits_for_what_has_expired(tag: str, lazy: bool) -> None:
    stage = delta(tag=tag, lazy_expiry=lazy)()
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
    ("options", "violated"),
    [({"tag": "deadline"}, True), ({}, False), ({"monotone": True}, False)],
)
def test_e2_a_fast_clock_makes_a_predecessor_outlive_what_covers_it(
    options: dict[str, Any], violated: bool
) -> None:
    stage = delta(**options)(ahead={"A": 30})
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
    ("options", "violated"),
    [({"tag": "deadline"}, True), ({"skew": "0s"}, True), ({"skew": "10s"}, False)],
)
def test_e3_the_sender_forgets_too_early(options: dict[str, Any], violated: bool) -> None:
    """X's message has expired by A's fast clock when A broadcasts, but not by B's."""
    stage = delta(**options)(ahead={"A": 10})
    x1 = stage.broadcast("X", 0)
    stage.arrive("A", x1, 1)
    a1 = stage.broadcast("A", 95)
    stage.arrive("B", a1, 96)
    stage.arrive("B", x1, 97)
    assert "X1" in stage.delivered("B")
    assert "A1" in stage.delivered("B")
    assert bool(stage.violations("delta")) == violated


def test_e3_even_fifo_breaks_between_two_nodes_as_printed() -> None:
    for options, violated in ((PRINTED, True), ({}, False), ({"skew": "0s"}, False)):
        stage = delta(**options)(ahead={"A": 10})
        a1 = stage.broadcast("A", 0)
        a2 = stage.broadcast("A", 101)
        stage.arrive("B", a2, 102)
        stage.arrive("B", a1, 103)
        assert "A2" in stage.delivered("B")
        assert bool(stage.violations("fifo")) == violated


@pytest.mark.parametrize(
    ("options", "violated"), [({"tag": "deadline"}, True), ({}, False), ({"monotone": True}, False)]
)
def test_e4_a_later_message_that_lives_shorter(options: dict[str, Any], violated: bool) -> None:
    stage = delta(**options)()
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


@pytest.mark.parametrize(("options", "violated"), [(PRINTED, True), ({}, False)])
def test_e5_two_broadcasts_in_one_tick(options: dict[str, Any], violated: bool) -> None:
    stage = delta(**options)()
    a1, a2 = stage.broadcast("A", 0), stage.broadcast("A", 0)
    stage.arrive("B", a1, 1)
    stage.arrive("B", a2, 1)
    b1 = stage.broadcast("B", 2)
    stage.arrive("C", a1, 3)
    stage.arrive("C", b1, 4)
    stage.arrive("C", a2, 5)
    assert sorted(stage.delivered("C")) == ["A1", "A2", "B1"]
    assert bool(stage.violations("delta")) == violated


@pytest.mark.parametrize("literal", [True, False])
def test_e6_a_reboot_makes_the_registry_regress(literal: bool) -> None:
    stage = Stage("causal_barrier", literal=literal)
    old = [stage.broadcast("A", 0) for _ in range(3)]
    for message in old:
        stage.arrive("B", message, 1)
        stage.arrive("C", message, 1)
    b1 = stage.broadcast("B", 2)
    stage.reboot("A", 3)
    stage.arrive("C", stage.broadcast("A", 4), 5)
    stage.arrive("C", b1, 6)
    assert stage.delivered("C") == ["A1", "A2", "A3", "A'1", *([] if literal else ["B1"])]


@pytest.mark.parametrize("literal", [True, False])
def test_e7_an_old_life_meets_a_dependency_on_the_new_one(literal: bool) -> None:
    stage = Stage("causal_barrier", literal=literal)
    for message in [stage.broadcast("A", 0) for _ in range(3)]:
        stage.arrive("D", message, 1)
    stage.reboot("A", 3)
    new = stage.broadcast("A", 4)
    stage.arrive("E", new, 5)
    e1 = stage.broadcast("E", 6)
    stage.arrive("D", e1, 7)
    stage.arrive("D", new, 8)
    assert {"A'1", "E1"} <= set(stage.delivered("D"))
    assert bool(stage.violations("causal")) == literal


@pytest.mark.parametrize(
    ("protocol", "printed"), [("causal_barrier", {"literal": True}), ("delta_causal", PRINTED)]
)
@pytest.mark.parametrize("fixed", [True, False])
def test_e8_a_message_comes_back_after_the_cache_dropped_it(
    protocol: str, printed: dict[str, Any], fixed: bool
) -> None:
    stage = Stage(protocol, **({} if fixed else printed))
    a1 = stage.broadcast("A", 0)
    stage.arrive("B", a1, 1)
    stage.evict("B", a1, 2)
    stage.arrive("B", a1, 3)
    assert stage.delivered("B") == (["A1"] if fixed else ["A1", "A1"])


@pytest.mark.parametrize(("options", "late"), [(PRINTED, True), ({}, False), ({"lazy_expiry": True}, False)])
def test_e9_the_cache_is_swept_late_and_frees_what_has_itself_expired(
    options: dict[str, Any], late: bool
) -> None:
    stage = delta(**options)(sweep=5)
    a1 = stage.broadcast("A", 0, lifetime=300)
    stage.arrive("B", a1, 1)
    x1 = stage.broadcast("B", 2)
    y1 = stage.broadcast("B", 3)
    stage.arrive("C", x1, 4)
    stage.arrive("C", y1, 4)
    stage.until(310)
    assert bool(stage.violations("delta")) == late


def test_e10_a_broadcast_frees_what_waits() -> None:
    """As printed A, back from a reboot, satisfies B1's barrier with its own broadcast and does not notice."""
    stage = Stage("causal_barrier", literal=True)
    stage.arrive("B", stage.broadcast("A", 0), 1)
    b1 = stage.broadcast("B", 2)
    stage.reboot("A", 3)
    stage.arrive("A", b1, 4)
    stage.broadcast("A", 5)
    assert stage.delivered("A") == ["A'1"]


def test_e10_what_became_free_while_a_node_was_down_is_delivered_when_it_is_back() -> None:
    stage = delta(durable=True)()
    stage.arrive("B", stage.broadcast("A", 0), 1)
    b1 = stage.broadcast("B", 50)
    stage.broadcast("C", 51)
    stage.arrive("C", b1, 60)
    stage.sleep("C", 61)
    stage.wake("C", 120)
    assert stage.delivered("C") == ["C1", "B1"]
    stage.broadcast("C", 121)
    assert stage.violations("delta") == 0


def test_e10_a_broadcast_first_delivers_what_has_become_free() -> None:
    """Even where no timer rang: the node was too busy to be told."""
    stage = delta()()
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
