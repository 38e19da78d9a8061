"""A member that lies while the founders of a total-order group agree: it speaks for itself only."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from precede.core.effects import RADIO
from precede.core.instants import SECOND
from precede.protocols.drift2006.founding.numbers import group_number, list_number
from precede.protocols.drift2006.packets import (
    Accepted,
    Application,
    Body,
    Candidacy,
    ControlPacket,
    Founded,
    Founder,
    FoundingAccepted,
    FoundingPrepare,
    FoundingPromise,
    FoundingProposal,
    Origin,
    Piggyback,
    Prepare,
    Promise,
    Propose,
    ViewRecord,
)
from precede.protocols.drift2006.state import NO_GROUP
from precede.runtime.links.authorship import Authors
from tests.hostile.members import BEGIN, GROUP, HONEST, MAL, ROSTER, SEEDS, Combination, Group

DRIFT = Combination("drift")
FOUNDERS = list_number(HONEST)
VIEW = ViewRecord(0, ((MAL, 1),), ())


def bodies(node: int) -> list[Any]:
    """One body of each kind, in the name of a node."""
    stream, ballot = (node, 1), (9, node, 1)
    return [
        Prepare(0, ballot, ()),
        Promise(0, ballot, stream, None, None, ()),
        Propose(0, ballot, VIEW),
        Accepted(0, ballot, stream),
        Application(stream, (0, 1)),
        Founder(FOUNDERS, node),
        FoundingPrepare(FOUNDERS, ballot),
        FoundingPromise(FOUNDERS, ballot, stream, None, None),
        FoundingProposal(FOUNDERS, ballot, VIEW),
        FoundingAccepted(FOUNDERS, ballot, stream),
        Founded(Origin(FOUNDERS, VIEW, stream, True)),
    ]


def control(body: Any, number: int = 1) -> ControlPacket:
    """A control packet of mal, which it has signed."""
    group = group_number(FOUNDERS, VIEW, agreed=True) if isinstance(body, Founded) else NO_GROUP
    packet = ControlPacket(MAL, number, body, Piggyback(group, 0, 0))
    Authors(GROUP, MAL, SEEDS[MAL], ROSTER).sign(packet)
    return packet


def founding() -> Group:
    return Group(DRIFT, founding="agreed", bootstrap_after="2s", durable=True)


def test_every_body_that_names_its_sender_is_tied_to_it() -> None:
    assert {type(body) for body in bodies(0)} | {Candidacy} == set(get_args(Body))
    made = founding()
    member = made.members[1]
    for body in bodies(0):
        assert not made.attack(member, member.codec.encode(control(body)), RADIO), body
    assert member.dropped["forged"] == len(bodies(0))
    for number, body in enumerate((*bodies(MAL), Candidacy(BEGIN)), 1):
        assert made.attack(member, member.codec.encode(control(body, number)), RADIO), body


@pytest.mark.parametrize("liar", [0, MAL])
def test_founders_agree_while_a_member_lies_about_them(liar: int) -> None:
    """In the name of a founder, or in its own: it is no founder, so its word does not count."""
    made = founding()
    for step in range(40):
        for member in made.members.values():
            for number, body in enumerate(bodies(liar)):
                made.attack(member, member.codec.encode(control(body, 100 * step + number + 1)), RADIO)
        made.run_until(made.now + SECOND // 4)
    for member in made.members.values():
        made.broadcast(member)
    made.run_until(made.now + 30 * SECOND)
    assert len(made.sent_messages) == len(HONEST)
    assert not made.lost()
    nodes: list[Any] = [member.node for member in made.members.values()]
    assert {node.state.origin.record.voters for node in nodes} == {nodes[0].state.origin.record.voters}
    assert sorted(source for source, _ in nodes[0].state.origin.record.voters) == list(HONEST)
