"""Figures 1, 2 and 4 of drift2006, step by step."""

from __future__ import annotations

from random import Random

import pytest

from precede.core.effects import RADIO, Deliver, Send
from precede.core.node import Context
from precede.protocols.floods.virtual_flooding import VirtualFlooding
from precede.protocols.registry import make_entry
from tests.protocols.drift2006.literal import ENTRY, LiteralDrift, PrintedPacket


class Line:
    """Nodes in a line, each within reach of its neighbours; each relays a flood once, the nearest first."""

    def __init__(self, nodes: str) -> None:
        self.nodes = nodes
        self.data: dict[str, VirtualFlooding[str, str]] = {node: VirtualFlooding(Random(1)) for node in nodes}

    def flood(self, origin: str) -> list[str]:
        """Send one physical flood; returns, after each transmission, the nodes that have m'."""
        steps = []
        start = self.nodes.index(origin)
        for place in sorted(range(len(self.nodes)), key=lambda place: (abs(place - start), place)):
            carried = self.data[self.nodes[place]].attach()
            for neighbour in (place - 1, place + 1):
                if 0 <= neighbour < len(self.nodes):
                    self.data[self.nodes[neighbour]].merge(carried)
            steps.append("".join(node for node in self.nodes if self.data[node].get("m'") is not None))
        return steps


def test_figure_1_virtual_data_spreads_on_a_physical_flood() -> None:
    line = Line("abcde")
    line.data["c"].put("m'", 1, "white box")
    assert line.flood("a") == ["c", "c", "bcd", "bcde", "bcde"]
    assert line.flood("d")[-1] == "abcde"


def test_figure_2_one_flood_is_enough_when_both_begin_at_the_same_end() -> None:
    line = Line("abc")
    line.data["a"].put("m'", 1, "")
    assert line.flood("a") == ["ab", "abc", "abc"]


@pytest.mark.parametrize("nodes", ["abc", "abcde", "abcdefghi"])
def test_figure_2_data_from_the_other_end_needs_as_many_floods_as_hops(nodes: str) -> None:
    """The figure shows two floods, the text says "proportional to the diameter": one hop per flood."""
    line = Line(nodes)
    line.data[nodes[-1]].put("m'", 1, "")
    floods = 0
    while line.data["a"].get("m'") is None:
        line.flood("a")
        floods += 1
    assert floods == len(nodes) - 1


class Figure4:
    """Four nodes that run Figure 3 as printed: a and b are sources, c and d destinations."""

    def __init__(self) -> None:
        options = {"sources": "0-1", "destinations": "2-3"}
        self.nodes: dict[str, LiteralDrift] = {}
        for number, name in enumerate("abcd"):
            node = make_entry(ENTRY, "node", Context(number, (0, 1, 2, 3), options, Random(1)))
            assert isinstance(node, LiteralDrift)
            self.nodes[name] = node

    def sends(self, node: str, message: str) -> PrintedPacket:
        """The packet of a new message."""
        return self._packet(self.nodes[node].broadcast(message.encode(), 0))

    def receives(self, node: str, packet: PrintedPacket) -> tuple[PrintedPacket | None, list[str]]:
        """The packet that a node forwards, if any, and the messages that it delivers."""
        effects = self.nodes[node].receive(packet, 0, 0, RADIO)
        delivers = [effect.message.payload.decode() for effect in effects if isinstance(effect, Deliver)]
        forwards = any(isinstance(effect, Send) for effect in effects)
        return (self._packet(effects) if forwards else None), delivers

    def state(self, node: str) -> tuple[list[int], set[tuple[str, int, int]]]:
        """RcvdSN and Seen as in the figure, with the highest timestamp of each number."""
        own = self.nodes[node]
        seen = {("abcd"[source], number, at) for (source, number), at in own.seen.items()}
        return [own.rcvd_sn[0], own.rcvd_sn[1]], seen

    def _packet(self, effects: object) -> PrintedPacket:
        assert isinstance(effects, list)
        (packet,) = [effect.packet for effect in effects if isinstance(effect, Send)]
        assert isinstance(packet, PrintedPacket)
        return packet


def test_figure_4_line_by_line() -> None:
    figure = Figure4()
    m1 = figure.sends("a", "m1")
    assert (m1.number, m1.timestamp, m1.seen) == (1, 1, ((0, 1, 1),))
    m2 = figure.sends("b", "m2")
    assert (m2.number, m2.timestamp, m2.seen) == (1, 1, ((1, 1, 1),))
    m3 = figure.sends("a", "m3")
    assert (m3.number, m3.timestamp, m3.seen) == (2, 2, ((0, 2, 2),))
    m2_by_a, _ = figure.receives("a", m2)
    assert m2_by_a is not None
    assert m2_by_a.seen == ((0, 2, 3), (1, 1, 1))
    m3_by_b, _ = figure.receives("b", m3)
    assert m3_by_b is not None
    # The figure has <b,1,2>: a slip, b's clock goes from 1 to max(1, 2) + 1.
    assert m3_by_b.seen == ((0, 2, 2), (1, 1, 3))

    assert figure.receives("c", m1)[1] == []
    assert figure.state("c") == ([1, 0], {("a", 1, 1)})
    # The figure lets c deliver m1 only; by Figure 3 m2 is READY as well, as it is at d in the same state below.
    assert figure.receives("c", m2_by_a)[1] == ["m1", "m2"]
    assert figure.state("c") == ([1, 1], {("a", 1, 1), ("a", 2, 3), ("b", 1, 1)})
    m3_by_c, delivers = figure.receives("c", m3_by_b)
    assert delivers == ["m3"]
    assert m3_by_c is not None
    assert m3_by_c.seen == ((0, 2, 3), (1, 1, 3))
    assert figure.state("c") == ([2, 1], {("a", 1, 1), ("a", 2, 3), ("b", 1, 3)})

    assert figure.receives("d", m2)[1] == []
    assert figure.state("d") == ([0, 1], {("b", 1, 1)})
    assert figure.receives("d", m1)[1] == ["m1", "m2"]
    assert figure.state("d") == ([1, 1], {("a", 1, 1), ("b", 1, 1)})
    assert figure.receives("d", m3_by_b)[1] == ["m3"]
    figure.receives("d", m3_by_c)
    assert figure.state("d") == ([2, 1], {("a", 1, 1), ("a", 2, 3), ("b", 1, 3)})
