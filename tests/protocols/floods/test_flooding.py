"""Reliable flooding under any ordering: gaps are noticed, asked for and filled; nothing comes twice."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from precede.core.context import Context
from precede.core.effects import RADIO, Deliver, Effects, Persist
from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.core.node import Node, round_trip
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.protocols import registry
from precede.protocols.floods.flooding import FloodDigestPacket, FloodPacket
from precede.protocols.layered.envelope import Envelope
from precede.witness.verify import verify


def run(protocol: str, seed: int, **world: Any) -> Any:
    sink = TableSink()
    described = Run(
        world={
            "kind": "flood",
            "nodes": 10,
            "field": [200, 200],
            "delay": "exponential(0.02)",
            "jitter": "exponential(0.02)",
            **world,
        },
        workload={"every": "exponential(2)", "until": "20s", "size": 20},
        protocol=protocol,
        options={"beacon": "500ms", "beacon_longest": "4s"} if protocol != "drift" else {"quiet": "1s"},
        seed=seed,
        end="90s",
        gauges="none",
    )
    carry_out(described, sink)
    return sink.events()


def counts(log: Any) -> dict[str, int]:
    kinds = log["kind"].to_pylist()
    return {kind: kinds.count(kind) for kind in ("broadcast", "received", "delivered")}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("protocol", "order"),
    [("unordered", "none"), ("fifo", "fifo"), ("causal_barrier", "causal"), ("drift", "total")],
)
def test_everything_comes_to_everybody_although_a_third_is_lost(protocol: str, order: str, seed: int) -> None:
    log = run(protocol, seed, loss=0.3)
    found = counts(log)
    assert found["broadcast"] > 50
    assert found["received"] == 9 * found["broadcast"]
    assert found["delivered"] == 10 * found["broadcast"]
    if order != "none":
        assert verify(log, order).verdict == "holds"


@pytest.mark.parametrize("protocol", ["fifo", "drift"])
def test_everything_comes_to_everybody_although_all_walk(protocol: str) -> None:
    found = counts(run(protocol, 1, speed=20, field=[250, 250], loss=0.1))
    assert found["delivered"] == 10 * found["broadcast"]


def node(protocol: str) -> Node:
    options = {"durable": True, "dissemination": "flooding"}
    return registry.make(protocol, "node", Context(0, (0, 1), options, Random(1)))


def flood(number: int) -> FloodPacket:
    stamp = ((1, number - 1),) if number > 1 else ()
    return FloodPacket(Envelope(Message(MessageId(1, 0, number), b"x"), stamp, None, None, 4, 1))


def delivered(effects: Effects) -> list[int]:
    return [effect.message.id.number for effect in effects if isinstance(effect, Deliver)]


@pytest.mark.parametrize("protocol", ["unordered", "fifo", "causal_barrier"])
def test_what_came_before_a_digest_told_how_far_one_was_is_not_lost(protocol: str) -> None:
    """After a restart a flood is early until somebody says what came before: that was delivered already."""
    before, store = node(protocol), {}
    for number in (1, 2):
        effects = before.receive(flood(number), 1, number, RADIO)
        assert delivered(effects) == [number]
        store.update({effect.key: effect.value for effect in effects if isinstance(effect, Persist)})
    after = node(protocol)
    after.start(10, round_trip(store))
    assert delivered(after.receive(flood(3), 1, 11, RADIO)) == []
    assert delivered(after.receive(FloodDigestPacket(((1, 0, 3),)), 1, 12, RADIO)) == [3]
