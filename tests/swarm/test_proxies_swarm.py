"""CK and prs_mobile in swarm worlds, and wrong versions of them that must be caught."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from precede.core.identity import NodeId
from precede.core.node import Context, Node
from precede.experiments.swarm.draw.proxies import REGIMES
from precede.experiments.swarm.plan import draw_plan, find_drawer
from precede.experiments.swarm.swarm import Tally, run_plan, run_seed
from precede.protocols.cells.packets import ProxyGivePacket, ProxyUpPacket, Vector
from precede.protocols.cells.record import ProxyRecord
from precede.protocols.prs1997 import mobile as prs_mobile
from precede.protocols.prs1997.mobile import MobileRule, PrsHost, PrsStation
from precede.protocols.registry import Entry
from precede.protocols.was2021 import ck
from precede.protocols.was2021.ck import CkRule, CkStation


@pytest.mark.parametrize("protocol", ["ck", "prs_mobile"])
@pytest.mark.parametrize("place", range(len(REGIMES)), ids=REGIMES)
def test_worlds_with_faults_hold(protocol: str, place: int) -> None:
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


class IgnoresTheBarrier(MobileRule):
    """Sends the next message without looking at its barrier."""

    def is_ready(self, record: ProxyRecord, app: Any) -> bool:
        return True


class MovesWithoutTheBarrier(MobileRule):
    """Takes over h_RECD at a hand-off and loses CB_h and Delivered_h."""

    def take_over(self, packet: ProxyGivePacket, record: ProxyRecord) -> None:
        """Take over nothing."""


class MovesBeforeTheUpdate(PrsHost):
    """Does not say what it has delivered, as if its station always knew."""

    def _delivered_vector(self) -> Vector:
        return ()


class DeletesEarly(MobileRule):
    """Deletes a message when the first destination has it."""

    def acknowledge(self, host: NodeId, number: int) -> bool:
        if number in self.lacking:
            self.finished.append((self.node, number))
        return super().acknowledge(host, number)


class ForgetsOwnPast(CkRule):
    """Does not put a message after those the host sent through other stations."""

    def stamp(self, packet: ProxyUpPacket, number: int, record: ProxyRecord) -> Any:
        record.order.clear()
        return super().stamp(packet, number, record)


class IgnoresTheVector(CkRule):
    """Sends the next message without looking at its vector."""

    def is_ready(self, record: ProxyRecord, app: Any) -> bool:
        return True


def build_wrong(wrong: type, context: Context) -> Node:
    """A wrong host, or a station with a wrong rule."""
    if issubclass(wrong, CkRule):
        return CkStation(context, wrong(context.node))
    if issubclass(wrong, MobileRule):
        return PrsStation(context, wrong(context.node, len(context.members)))
    return wrong(context)


def entry_with(wrong: type, entry: Entry, role: str) -> Entry:
    """An entry that builds the wrong node in one role."""

    def build(built_role: str, context: Context) -> Node:
        assert entry.build is not None
        return build_wrong(wrong, context) if built_role == role else entry.build(built_role, context)

    return replace(entry, build=build)


@pytest.mark.parametrize(
    ("entry", "role", "wrong"),
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
def test_a_wrong_node_is_caught(entry: Entry, role: str, wrong: type) -> None:
    drawer = find_drawer(entry.name)
    wrong_entry = entry_with(wrong, entry, role)
    plans = (draw_plan(entry.name, seed, drawer) for seed in range(5_000, 5_030))
    assert any(run_plan(plan, drawer, wrong_entry).failed for plan in plans), f"{wrong.__name__} passed"
