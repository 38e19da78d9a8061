"""The swarm catches every deliberately wrong protocol and driver within 200 worlds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from precede.core.effects import Effect, Effects, Medium
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.experiments.swarm import swarm
from precede.experiments.swarm.draw.point_to_point import DRAWER
from precede.experiments.swarm.plan import Plan, draw_plan
from precede.experiments.swarm.swarm import WorldResult, run_plan
from precede.protocols.layered import vector_clock
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.vector_clock import VectorClock
from precede.protocols.registry import Entry
from precede.sim.clocks import Clock
from precede.sim.world import World
from tests.swarm.saboteurs import SABOTEURS, entry_of

WORLDS = 200


def first_failure(entry: Entry | None, worlds: int = WORLDS) -> WorldResult | None:
    for seed in range(worlds):
        plan = draw_plan("vector_clock", seed, DRAWER)
        if entry is not None:
            plan = _named(plan, entry.name)
        result = run_plan(plan, DRAWER, entry)
        if result.failed:
            return result
    return None


def _named(plan: Plan, name: str) -> Plan:
    return msgspec.structs.replace(plan, run=msgspec.structs.replace(plan.run, protocol=name))


@pytest.mark.parametrize("name", SABOTEURS)
def test_a_saboteur_is_caught(name: str) -> None:
    result = first_failure(SABOTEURS[name])
    assert result is not None, f"{name} passed {WORLDS} worlds"
    assert result.remarks


class ReversesEffects(World):
    """Carries out every list of effects in reverse."""

    def carry_out(self, node: NodeId, effects: Effects, now: Instant) -> None:
        super().carry_out(node, list(reversed(effects)), now)


class SplitsTheAtom(World):
    """Can crash between a Persist and the Deliver that follows it."""

    def carry_out(self, node: NodeId, effects: Effects, now: Instant) -> None:
        for effect in effects:
            if self.is_up(node):
                super().carry_out(node, [effect], now)


class LosesWhatWasPersisted(World):
    """Loses the store of a node at every restart."""

    def restart(self, node: int, keep: bool) -> None:
        self.nodes[node].store = {}
        super().restart(node, keep)


class GoesBackInTime(World):
    """Moves clocks back and forth by a second."""

    def receive(self, to: int, packet: Packet, sender: int, over: Medium) -> None:
        self.nodes[to].clock = Clock(-1_000_000 * (self.now % 2))
        super().receive(to, packet, sender, over)


class Watchful(VectorClock):
    """A node that raises if its clock goes backwards."""

    last = -(1 << 62)

    def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
        assert now >= self.last, "the clock went backwards"
        self.last = now
        super().arrive(envelopes, now, effects)


def test_a_driver_that_goes_back_in_time_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    watchful = entry_of(vector_clock.ENTRY, Watchful)
    assert first_failure(watchful, worlds=20) is None
    monkeypatch.setattr(swarm, "World", GoesBackInTime)
    caught = first_failure(watchful)
    assert caught is not None
    assert "backwards" in caught.remarks[0]


@pytest.mark.parametrize("driver", [ReversesEffects, SplitsTheAtom, LosesWhatWasPersisted])
def test_a_broken_driver_is_caught(driver: type[World], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swarm, "World", driver)
    assert first_failure(None) is not None, f"{driver.__name__} passed {WORLDS} worlds"
