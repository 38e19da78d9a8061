"""VCube's diagnosis and joins under every schedule of a small world, and planted faults that are found."""

from __future__ import annotations

from typing import Any

import pytest

from precede.core.effects import Effect
from precede.core.identity import NodeId
from precede.protocols import registry
from precede.protocols.vcube2018.diagnosis import DiagnosedVCubeNode
from tests.protocols.explored.crash_stop import CrashStopExplorer
from tests.protocols.explored.worlds import Broken
from tests.protocols.vcube2018.test_diagnosis import ForgetsAtOnce, NeverRepairs, entry_of

OPTIONS = {"diagnosis": True}
SMALL: list[dict[str, Any]] = [
    {"members": 2, "broadcasts": (1, 1), "timers": 2, "crashes": 1},
    {"members": 3, "broadcasts": (1, 1, 0), "timers": 2, "crashes": 1},
    {"members": 2, "broadcasts": (1, 0, 0), "timers": 3, "crashes": 1},
]


@pytest.mark.parametrize("bounds", SMALL, ids=str)
def test_no_schedule_breaks_an_invariant(bounds: dict[str, Any]) -> None:
    explorer = CrashStopExplorer(registry.find("vcube"), OPTIONS, heal_every=40, **bounds)
    assert explorer.explore(1_500) > 1_000


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "bounds",
    [
        {"members": 3, "broadcasts": (2, 1, 0), "timers": 3, "crashes": 1},
        {"members": 4, "broadcasts": (1, 1, 0, 0), "timers": 2, "crashes": 2},
        {"members": 3, "broadcasts": (1, 1, 0, 1), "timers": 4, "crashes": 1},
    ],
    ids=str,
)
def test_larger_bounds_breadth_first(bounds: dict[str, Any]) -> None:
    """Three and four nodes and a newcomer, up to 60,000 states each."""
    count = CrashStopExplorer(registry.find("vcube"), OPTIONS, heal_every=100, **bounds).explore(60_000)
    print(bounds, count)
    assert count > 10_000


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_two_thousand_random_schedules() -> None:
    explorer = CrashStopExplorer(registry.find("vcube"), OPTIONS, 4, (2, 2, 1, 0, 1), timers=12, crashes=2)
    for seed in range(2_000):
        explorer.walk(seed, 60)


class NeverSponsors(DiagnosedVCubeNode):
    """Does not answer a newcomer that asks where to begin."""

    def _sponsor(self, newcomer: NodeId, effects: list[Effect]) -> None:
        return


FAULTS: list[tuple[type[DiagnosedVCubeNode], dict[str, Any]]] = [
    (ForgetsAtOnce, {"members": 4, "broadcasts": (1, 0, 0, 0), "crashes": 2}),
    (NeverRepairs, {"members": 4, "broadcasts": (1, 0, 0, 0), "crashes": 1}),
    (NeverSponsors, {"members": 2, "broadcasts": (1, 0, 0), "timers": 3}),
]


@pytest.mark.parametrize(("saboteur", "bounds"), FAULTS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_planted_fault_is_found(saboteur: type[DiagnosedVCubeNode], bounds: dict[str, Any]) -> None:
    with pytest.raises(Broken):
        CrashStopExplorer(entry_of(saboteur), OPTIONS, **bounds).explore(8_000)
