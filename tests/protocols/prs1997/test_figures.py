"""Figures 1, 2 and 8 of Prakash, Raynal, Singhal (1997): barriers and deliveries as the text derives them.

Processes are numbered as in the paper, so node 0 takes no part.
"""

from __future__ import annotations

from typing import Any

import pytest

from precede.core.effects import Deliver, Send
from tests.protocols.multicast.multicast_world import make

PROCESSES = 6


class Stage:
    """Nodes driven by hand: `send` puts copies of a message on their way, `bring` lets one arrive."""

    def __init__(self, protocol: str = "prs", **options: Any) -> None:
        self.nodes: list[Any] = [make(protocol, process, PROCESSES, **options) for process in range(PROCESSES)]
        self.names: dict[tuple[int, int], str] = {}
        self.post: dict[tuple[str, int], tuple[Any, int]] = {}
        self.delivered: dict[int, list[str]] = {process: [] for process in range(PROCESSES)}

    def send(self, name: str, source: int, *to: int) -> Any:
        packets = [e for e in self.nodes[source].broadcast(b"", 0, to) if isinstance(e, Send)]
        for send in packets:
            id = send.packet.message.id
            self.names[id.source, id.number] = name
            self.post[name, send.to] = (send.packet, source)
        return packets[0].packet.stamp

    def bring(self, name: str, to: int) -> None:
        packet, source = self.post.pop((name, to))
        for effect in self.nodes[to].receive(packet, source, 0, 0):
            if isinstance(effect, Deliver):
                id = effect.message.id
                self.delivered[to].append(self.names[id.source, id.number])

    def named(self, row: dict[int, int]) -> set[str]:
        return {self.names[source, number] for source, number in row.items()}

    def barrier(self, stamp: Any) -> dict[int, set[str]]:
        return {to: self.named(row) for to, row in stamp.barrier.items()}


@pytest.mark.parametrize("protocol", ["prs", "rst", "ses"])
def test_figure_1_m3_waits_for_m1(protocol: str) -> None:
    stage = Stage(protocol)
    stage.send("M1", 1, 3)
    stage.send("M2", 1, 2)
    stage.bring("M2", 2)
    stage.send("M3", 2, 3)
    stage.bring("M3", 3)
    assert stage.delivered[3] == []
    (waiting,) = stage.nodes[3].waiting()
    assert stage.names[waiting.message.source, waiting.message.number] == "M3"
    if protocol == "prs":
        assert [str(id) for id in waiting.waits_for] == ["1:1"]
    stage.bring("M1", 3)
    assert stage.delivered[3] == ["M1", "M3"]
    assert not stage.nodes[3].waiting()


def test_figure_1_barriers() -> None:
    stage = Stage()
    assert stage.barrier(stage.send("M1", 1, 3)) == {}
    assert stage.barrier(stage.send("M2", 1, 2)) == {3: {"M1"}}
    stage.bring("M2", 2)
    assert stage.barrier(stage.send("M3", 2, 3)) == {2: {"M2"}, 3: {"M1"}}


@pytest.mark.parametrize("sender_of_m4", [1, 2])
def test_figure_2_barriers_of_section_4_1(sender_of_m4: int) -> None:
    """The text does not name the sender of M4; its barriers hold for both processes that it can be."""
    stage = Stage()
    stage.send("M1", 1, 2, 3, 5)
    stage.bring("M1", 2)
    stage.send("M2", 2, 3, 4, 5)
    stage.bring("M2", 3)
    stage.bring("M1", 3)
    assert stage.delivered[3] == ["M1", "M2"]
    m3 = stage.barrier(stage.send("M3", 3, 5))
    assert m3 == {3: {"M2"}, 4: {"M2"}, 5: {"M2"}}, "M2 alone: M1 is transitive"
    stage.send("M4", sender_of_m4, 5)
    stage.bring("M2", 4)
    m6 = stage.barrier(stage.send("M6", 4, 3, 5))
    assert m6 == {3: {"M2"}, 4: {"M2"}, 5: {"M2"}}, "direct dependency on M2 for both destinations"
    for name in ("M3", "M4", "M6", "M2"):
        stage.bring(name, 5)
    assert stage.delivered[5] == []
    stage.bring("M1", 5)
    # M2 makes M3, M4 and M6 deliverable, in the order of their arrival; an M4 of P1 needs M1 alone.
    assert stage.delivered[5] == (
        ["M1", "M2", "M3", "M4", "M6"] if sender_of_m4 == 2 else ["M1", "M4", "M2", "M3", "M6"]
    )
    m7 = stage.barrier(stage.send("M7", 5, 3))
    assert m7[3] == {"M6"}, "not M1, not M2; M3 and M4 do not go to P3"
    assert m7[5] == {"M3", "M4", "M6"}, "the mutually concurrent messages last delivered to P5"
    stage.bring("M7", 3)
    assert stage.delivered[3] == ["M1", "M2"]
    stage.bring("M6", 3)
    assert stage.delivered[3] == ["M1", "M2", "M6", "M7"]
    m8 = stage.barrier(stage.send("M8", 3, 5))
    assert 5 not in m8, "P3 knows through M7 that M3, M4 and M6 were delivered to P5"


def _figure_8(**options: Any) -> Stage:
    stage = Stage(**options)
    stage.send("M1", 1, 2, 4)
    stage.bring("M1", 4)
    stage.bring("M1", 2)
    stage.send("M2", 2, 3)
    stage.bring("M2", 3)
    stage.send("M3", 3, 4)
    stage.bring("M3", 4)
    return stage


def test_figure_8_the_printed_algorithm_keeps_the_redundant_tuple() -> None:
    stage = _figure_8()
    assert stage.named(stage.nodes[3].rule.delivered[2]) == {"M1"}, "P3 knows, one hop away"
    assert stage.named(stage.nodes[4].rule.barrier[2]) == {"M1"}, "P4 does not"
    assert stage.barrier(stage.send("M4", 4, 2))[2] == {"M1"}


def test_figure_8_the_optimal_pruning_removes_the_redundant_tuple() -> None:
    stage = _figure_8(pruning="optimal")
    assert not any(2 in left for entries in stage.nodes[4].rule.log.values() for left in entries.values())
    carried = stage.send("M4", 4, 2).log
    assert not any(2 in left for entries in carried.values() for left in entries.values())
    stage.bring("M4", 2)
    assert stage.delivered[2] == ["M1", "M4"]
