"""VCube nodes with diagnosis that a test drives one input at a time, and what they send and deliver."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from precede.core.effects import WIRED, Deliver, Effect, Send
from precede.core.instants import SECOND, Instant
from precede.core.node import Context
from precede.protocols import registry
from precede.protocols.vcube2018.diagnosis import DiagnosedVCubeNode
from precede.protocols.vcube2018.packets import Report, VCubePacket, VCubeTestPacket

OPTIONS = {"diagnosis": True, "test_every": "200ms", "test_timeout": "250ms"}
FOUR = (0, 1, 2, 3)


def made(id: int, members: tuple[int, ...] = FOUR) -> DiagnosedVCubeNode:
    node = registry.make("vcube", "node", Context(id, members, OPTIONS, random.Random(id)))
    assert isinstance(node, DiagnosedVCubeNode)
    node.start(0, {})
    return node


def sent(effects: Iterable[Effect], kind: type) -> list[tuple[int, Any]]:
    """The packets of a kind, with their addressees."""
    return [(each.to, each.packet) for each in effects if type(each) is Send and type(each.packet) is kind]


def messages(effects: Iterable[Effect]) -> list[tuple[int, int, int]]:
    """Who is sent which message: addressee, source, number."""
    packets = sent(effects, VCubePacket)
    ids = [(to, each.message.id) for to, packet in packets for each in packet.content]
    return [(to, id.source, id.number) for to, id in ids]


def delivered(effects: Iterable[Effect]) -> list[tuple[int, int]]:
    return [(each.message.id.source, each.message.id.number) for each in effects if type(each) is Deliver]


def spoken(source: DiagnosedVCubeNode, now: Instant = 1) -> VCubePacket:
    """Let a node broadcast, and return the packet."""
    packet = sent(source.broadcast(b"x", now), VCubePacket)[0][1]
    assert isinstance(packet, VCubePacket)
    return packet


def answer_to(effects: Iterable[Effect], to: int, have: tuple[int, ...] | None, **more: Any) -> VCubeTestPacket:
    """The answer of a node to the test that it was sent."""
    test = next(packet for addressee, packet in sent(effects, VCubeTestPacket) if addressee == to)
    return VCubeTestPacket(test.number, True, test.events, have, more.get("report"))


def gone(*nodes: int, members: tuple[int, ...] = FOUR) -> tuple[tuple[int, int], ...]:
    """The view in which these nodes are gone."""
    return tuple((node, int(node in nodes)) for node in members)


def told(node: DiagnosedVCubeNode, sender: int, events: Any, now: Instant) -> list[Effect]:
    """Give a node a view in a test, and return what it does."""
    return list(node.receive(VCubeTestPacket(77, False, events, None, None), sender, now, WIRED))


def report_of(node: DiagnosedVCubeNode, sender: int) -> Report:
    """Test a node, and return the report in its answer."""
    test = VCubeTestPacket(77, False, node._view.events, None, None)
    ((_, answer),) = sent(node.receive(test, sender, 9 * SECOND, WIRED), VCubeTestPacket)
    assert answer.report is not None
    report: Report = answer.report
    return report
