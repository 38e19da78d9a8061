"""Joins and foundings in total order (DRIFT) under many schedules of a small world; planted faults are found.

The nodes are whole: `tests/protocols/drift2006` explores the vote and the ballots of the founders alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from precede.core.effects import Effects
from precede.protocols import registry
from precede.protocols.drift2006.founding.ballots import Ballots
from precede.protocols.drift2006.founding.election import Election
from precede.protocols.drift2006.join import Joining
from tests.protocols.explored.deviations import DeviationExplorer
from tests.protocols.explored.test_restarts_explored import without
from tests.protocols.explored.total_order import TotalOrderExplorer
from tests.protocols.explored.worlds import Broken

JOINING = {"durable": True, "suspect_after": "3s", "bootstrap_after": "0s"}
FOUNDING = {"durable": True, "suspect_after": "3s", "founding": "agreed"}
ONE_JOINS_TWO: dict[str, Any] = {"options": JOINING, "members": 2, "broadcasts": (1, 0, 1)}
ONE_JOINS_TWO_UNSUSPECTED: dict[str, Any] = {**ONE_JOINS_TWO, "options": {**JOINING, "suspect_after": "0s"}}
ONE_JOINS_THREE: dict[str, Any] = {"options": JOINING, "members": 3, "broadcasts": (1, 0, 0, 1)}
TWO_JOIN_TWO: dict[str, Any] = {"options": JOINING, "members": 2, "broadcasts": (1, 0, 1, 1)}
THREE_FOUND: dict[str, Any] = {"options": FOUNDING, "members": 3, "broadcasts": (1, 1, 0)}
FOUR_FOUND: dict[str, Any] = {"options": FOUNDING, "members": 4, "broadcasts": (1, 0, 0, 1)}
FOUND_AND_JOIN: dict[str, Any] = {"options": FOUNDING, "members": 3, "broadcasts": (1, 0, 0, 1)}
WORLDS = {
    "one joins two": ONE_JOINS_TWO,
    "one joins three": ONE_JOINS_THREE,
    "two join two": TWO_JOIN_TWO,
    "three found": THREE_FOUND,
    "four found": FOUR_FOUND,
    "three found and one joins": FOUND_AND_JOIN,
}


def deviations(world: dict[str, Any], **more: Any) -> DeviationExplorer:
    return DeviationExplorer(registry.find("drift"), **world, **more)


@pytest.mark.parametrize(("name", "every"), [("one joins two", 2), ("one joins three", 9), ("three found", 9)])
def test_no_deviation_breaks_an_invariant(name: str, every: int) -> None:
    explorer = deviations(WORLDS[name])
    explorer.explore_deviations(1, every=every)
    assert explorer.count > 100


@pytest.mark.parametrize("world", [ONE_JOINS_TWO, THREE_FOUND], ids=["joining", "founding"])
def test_no_schedule_breaks_an_invariant(world: dict[str, Any]) -> None:
    explorer = TotalOrderExplorer(registry.find("drift"), **world, timers=1, crashes=1, heal_every=20)
    assert explorer.explore(1_200) > 1_000


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", WORLDS)
def test_every_single_deviation(name: str) -> None:
    explorer = deviations(WORLDS[name])
    states = explorer.explore_deviations(1)
    print(name, states, explorer.count)
    assert explorer.count > 500


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ["one joins two", "one joins three", "three found"])
def test_two_crashes_or_cuts(name: str) -> None:
    """Each fortieth first crash or cut, with every second one."""
    explorer = deviations(WORLDS[name], kinds_tried=("crash", "cut"))
    print(name, explorer.explore_deviations(2, every=40), explorer.count)
    assert explorer.count > 500


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("world", [ONE_JOINS_THREE, TWO_JOIN_TWO, THREE_FOUND], ids=str)
def test_larger_bounds_breadth_first(world: dict[str, Any]) -> None:
    explorer = TotalOrderExplorer(registry.find("drift"), **world, timers=2, crashes=1, heal_every=50)
    count = explorer.explore(40_000)
    print(world, count)
    assert count > 10_000


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("world", [ONE_JOINS_THREE, TWO_JOIN_TWO, THREE_FOUND], ids=str)
def test_a_thousand_random_schedules(world: dict[str, Any]) -> None:
    explorer = TotalOrderExplorer(registry.find("drift"), **world, timers=25, crashes=3)
    for seed in range(1_000):
        explorer.walk(seed, 100)


# -- planted faults ----------------------------------------------------------------------------------------


def never_asks_again(patch: pytest.MonkeyPatch) -> None:
    """A node that should be a source does not ask for it after a restart, or when it has entered."""
    patch.setattr(Joining, "_apply_soon", lambda self, now, effects: None)


def unused_streams_stay(patch: pytest.MonkeyPatch) -> None:
    """A stream whose admission a node did not see is neither used nor closed. Others wait for its clock."""
    patch.setattr(Joining, "take_up_unused", lambda self, now, effects: None)


def one_founder_decides(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ballots, "quorum", property(lambda self: 1))


def founders_do_not_begin(patch: pytest.MonkeyPatch) -> None:
    """A founder that hears of the group which its list has founded does not begin in it."""
    patch.setattr(Election, "begins", lambda self, origin, group: False)


def nothing(patch: pytest.MonkeyPatch) -> None:
    return None


Fault = tuple[str, Callable[[pytest.MonkeyPatch], None], str, dict[str, Any], str]
FAULTS: list[Fault] = [
    ("joining: never asks again", never_asks_again, "", ONE_JOINS_TWO, "healing"),
    ("joining: admissions not stored", nothing, "admitted", ONE_JOINS_TWO, "healing"),
    ("joining: floods not stored", nothing, "held", ONE_JOINS_TWO, "healing"),
    ("joining: clock not stored", nothing, "clock", ONE_JOINS_TWO, "order|healing"),
    ("joining: group not stored", nothing, "group", ONE_JOINS_TWO, "healing"),
    ("joining: unused streams stay", unused_streams_stay, "", ONE_JOINS_TWO_UNSUSPECTED, "healing"),
    ("founding: one founder decides", one_founder_decides, "", THREE_FOUND, "healing|group"),
    ("founding: founders do not begin", founders_do_not_begin, "", THREE_FOUND, "healing"),
    ("founding: votes not stored", nothing, "founding", THREE_FOUND, "healing|group"),
]


@pytest.mark.parametrize(
    ("patched", "not_stored", "world", "invariant"),
    [each[1:] for each in FAULTS],
    ids=[each[0] for each in FAULTS],
)
def test_a_planted_fault_is_found(
    patched: Callable[[pytest.MonkeyPatch], None],
    not_stored: str,
    world: dict[str, Any],
    invariant: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patched(monkeypatch)
    spoil: Callable[[Effects], Effects] = without(not_stored) if not_stored else lambda effects: effects
    with pytest.raises(Broken, match=f"^({invariant}):"):
        deviations(world, spoil=spoil).explore_deviations(1)


def nobody_leads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ballots, "lead", lambda self, now, effects: None)


def acceptances_do_not_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ballots, "_receive_acceptance", lambda self, leading, voter, now, effects: None)


SHALLOW: list[Fault] = [
    ("joining: message numbers not stored", nothing, "number", ONE_JOINS_TWO, "order"),
    ("joining: floods not stored", nothing, "held", ONE_JOINS_TWO, "healing"),
    ("joining: group not stored", nothing, "group", ONE_JOINS_TWO, "healing"),
    ("founding: founders do not begin", founders_do_not_begin, "", THREE_FOUND, "healing"),
    ("founding: nobody leads", nobody_leads, "", THREE_FOUND, "healing"),
    ("founding: acceptances do not count", acceptances_do_not_count, "", THREE_FOUND, "healing"),
]


@pytest.mark.parametrize(
    ("patched", "not_stored", "world", "invariant"),
    [each[1:] for each in SHALLOW],
    ids=[each[0] for each in SHALLOW],
)
def test_a_planted_fault_is_found_breadth_first(
    patched: Callable[[pytest.MonkeyPatch], None],
    not_stored: str,
    world: dict[str, Any],
    invariant: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patched(monkeypatch)
    spoil: Callable[[Effects], Effects] = without(not_stored) if not_stored else lambda effects: effects
    with pytest.raises(Broken, match=f"^{invariant}:"):
        TotalOrderExplorer(
            registry.find("drift"), **world, timers=2, crashes=1, heal_every=20, spoil=spoil
        ).explore(2_000)


def test_no_crash_breaks_an_invariant_after_a_view_removed_a_node() -> None:
    explorer = deviations(ONE_JOINS_TWO, kinds_tried=("crash",))
    explorer.explore_after_cut(2, 1)
    assert explorer.count > 100


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("name", "node"), [("one joins two", 2), ("one joins three", 3)])
def test_every_deviation_after_a_view_removed_a_node(name: str, node: int) -> None:
    explorer = deviations(WORLDS[name])
    print(name, explorer.explore_after_cut(node, 1), explorer.count)
    assert explorer.count > 100


@pytest.mark.parametrize(
    ("kind", "invariant"), [("restamp", "healing"), ("own", "healing"), ("held", "healing"), ("done", "order")]
)
def test_a_crash_after_a_view_removed_a_node_shows_what_was_not_stored(kind: str, invariant: str) -> None:
    """`restamp`: the view cut off the node's last message, which must be sent again in its next stream."""
    with pytest.raises(Broken, match=f"^{invariant}:"):
        deviations(ONE_JOINS_TWO, kinds_tried=("crash",), spoil=without(kind)).explore_after_cut(2, 1)
