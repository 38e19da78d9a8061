"""CK and section 9 of prs1997 through the swarm: cells that lose, hurry, interfere; nodes that are wrong."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from precede.core.effects import Effect
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.node import Context, Node
from precede.experiments.swarm.draw.proxies import REGIMES
from precede.experiments.swarm.plan import draw_plan, find_drawer
from precede.experiments.swarm.swarm import Tally, run_plan, run_seed
from precede.protocols.cells.packets import ProxyGivePacket, ProxyUpPacket, Vector
from precede.protocols.cells.proxy_station import Record
from precede.protocols.prs1997 import mobile as prs_mobile
from precede.protocols.prs1997.mobile import PrsHost, PrsStation
from precede.protocols.registry import Entry
from precede.protocols.was2021 import ck
from precede.protocols.was2021.ck import CkStation


@pytest.mark.parametrize("protocol", ["ck", "prs_mobile"])
@pytest.mark.parametrize("place", range(len(REGIMES)), ids=REGIMES)
def test_worlds_break_heal_and_hold(protocol: str, place: int) -> None:
    tally = Tally()
    deliveries = 0
    for seed in range(5_000 + place - 5_000 % len(REGIMES), 5_000 + place + 17 * len(REGIMES), len(REGIMES)):
        result = run_seed(protocol, seed)
        assert not result.failed, (seed, result.remarks)
        tally.add(result)
        deliveries += result.deliveries
    assert tally.worlds >= 17
    assert tally.clean
    assert deliveries > 3_000


class IgnoresTheBarrier(PrsStation):
    """Sends what is next without looking at what it comes after."""

    def _ready(self, record: Record, app: Any) -> bool:
        return True


class MovesWithoutTheBarrier(PrsStation):
    """Takes over h_RECD at a hand-off and forgets CB_h and Delivered_h."""

    def _given(self, packet: ProxyGivePacket, record: Record) -> None:
        """The rest is lost."""


class MovesBeforeTheUpdate(PrsHost):
    """Does not say what it has delivered, as if its station always knew."""

    def _told_on_connecting(self) -> Vector:
        return ()


class DeletesEarly(PrsStation):
    """Deletes a message when the first destination has it."""

    def _settle(self, host: NodeId, number: int, now: Instant, effects: list[Effect]) -> None:
        if number in self.lacking:
            self.finished.append((self.node, number))
        super()._settle(host, number, now, effects)


class ForgetsOwnPast(CkStation):
    """Does not put a message after those the host sent from elsewhere."""

    def _stamped(self, packet: ProxyUpPacket, number: int, record: Record) -> Any:
        record.order.clear()
        return super()._stamped(packet, number, record)


class IgnoresTheVector(CkStation):
    """Sends what is next without looking at its vector."""

    def _ready(self, record: Record, app: Any) -> bool:
        return True


def spoiled(entry: Entry, role: str, node: type[Node]) -> Entry:
    def build(wanted: str, context: Context) -> Node:
        assert entry.build is not None
        return node(context) if wanted == role else entry.build(wanted, context)  # type: ignore[call-arg]

    return replace(entry, build=build)


@pytest.mark.parametrize(
    ("entry", "role", "node"),
    [
        (prs_mobile.ENTRY, "station", IgnoresTheBarrier),
        (prs_mobile.ENTRY, "station", MovesWithoutTheBarrier),
        (prs_mobile.ENTRY, "host", MovesBeforeTheUpdate),
        (prs_mobile.ENTRY, "station", DeletesEarly),
        (ck.ENTRY, "station", ForgetsOwnPast),
        (ck.ENTRY, "station", IgnoresTheVector),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_node_that_is_wrong_is_caught(entry: Entry, role: str, node: type[Node]) -> None:
    drawer = find_drawer(entry.name)
    wrong = spoiled(entry, role, node)
    plans = (draw_plan(entry.name, seed, drawer) for seed in range(5_000, 5_030))
    assert any(run_plan(plan, drawer, wrong).failed for plan in plans), f"{node.__name__} passed"
