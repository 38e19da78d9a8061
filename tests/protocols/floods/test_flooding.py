"""Reliable flooding under any ordering: gaps are detected, requested and filled; nothing arrives twice."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from precede.core.context import Context
from precede.core.effects import RADIO, Deliver, Effects, Persist, Send, SetTimer
from precede.core.errors import BadInput
from precede.core.identity import MessageId
from precede.core.instants import MINUTE, SECOND
from precede.core.messages import Message
from precede.core.node import Node, round_trip
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.protocols import registry
from precede.protocols.floods.flooding import FloodDigestPacket, FloodGonePacket, FloodPacket, FloodWantPacket
from precede.protocols.floods.options import parse_node_ids
from precede.protocols.floods.reliable_floods import ASK
from precede.protocols.layered.envelope import Envelope
from precede.witness.verify import verify


def run(protocol: str, seed: int, **world: Any) -> Any:
    """The log of a run with ten nodes."""
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
    """The number of rows of each kind."""
    kinds = log["kind"].to_pylist()
    return {kind: kinds.count(kind) for kind in ("broadcast", "received", "delivered")}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("protocol", "order"),
    [("unordered", "none"), ("fifo", "fifo"), ("causal_barrier", "causal"), ("drift", "total")],
)
def test_every_node_delivers_everything_when_a_third_of_the_packets_is_lost(
    protocol: str, order: str, seed: int
) -> None:
    log = run(protocol, seed, loss=0.3)
    rows = counts(log)
    assert rows["broadcast"] > 50
    assert rows["received"] == 9 * rows["broadcast"]
    assert rows["delivered"] == 10 * rows["broadcast"]
    if order != "none":
        assert verify(log, order).verdict == "holds"


@pytest.mark.parametrize("protocol", ["fifo", "drift"])
def test_every_node_delivers_everything_while_all_move(protocol: str) -> None:
    rows = counts(run(protocol, 1, speed=20, field=[250, 250], loss=0.1))
    assert rows["delivered"] == 10 * rows["broadcast"]


def node(protocol: str) -> Node:
    options = {"durable": True, "dissemination": "flooding"}
    return registry.make(protocol, "node", Context(0, (0, 1), options, Random(1)))


def flood(number: int) -> FloodPacket:
    """A message of node 1 that causally follows the one before it."""
    stamp = ((1, number - 1),) if number > 1 else ()
    return FloodPacket(Envelope(Message(MessageId(1, 0, number), b"x"), stamp, None, None, 4, 1))


def delivered(effects: Effects) -> list[int]:
    """The numbers of the messages that some effects deliver."""
    return [effect.message.id.number for effect in effects if isinstance(effect, Deliver)]


@pytest.mark.parametrize("protocol", ["unordered", "fifo", "causal_barrier"])
def test_a_message_that_arrives_right_after_a_restart_is_delivered(protocol: str) -> None:
    """It is early, until a digest shows that the messages before it were delivered before the restart."""
    before, store = node(protocol), {}
    for number in (1, 2):
        effects = before.receive(flood(number), 1, number, RADIO)
        assert delivered(effects) == [number]
        store.update({effect.key: effect.value for effect in effects if isinstance(effect, Persist)})
    after = node(protocol)
    after.start(10, round_trip(store))
    assert delivered(after.receive(flood(3), 1, 11, RADIO)) == []
    assert delivered(after.receive(FloodDigestPacket(((1, 0, 3),)), 1, 12, RADIO)) == [3]


def test_kept_payloads_are_bounded_in_bytes_and_dropped_ones_are_told() -> None:
    options = {"keep_bytes": 1000, "dissemination": "flooding", "relay_wait": "0s"}
    node = registry.make("fifo", "node", Context(0, (0, 1), options, Random(1)))
    node.start(0, {})
    for number in range(1, 21):
        message = Message(MessageId(1, 0, number), b"x" * 100)
        node.receive(FloodPacket(Envelope(message, number, None, None, 0, 0)), 1, 1, RADIO)
    assert node.sizes()["kept"] == 10
    gone = node.receive(FloodWantPacket(((1, 0, 1, 20),)), 1, 2, RADIO)
    assert [effect.packet.number for effect in gone if isinstance(effect, Send)] == [10]


def kept_after(*instants: int) -> int:
    """How many floods a node keeps that received one at each of these instants; `retention` is 10 minutes."""
    options = {"dissemination": "flooding", "relay_wait": "0s", "beacon": "1s", "beacon_longest": "1min"}
    node = registry.make("unordered", "node", Context(0, (0, 1), options, Random(1)))
    node.start(instants[0], {})
    for number, now in enumerate(instants, start=1):
        node.receive(flood(number), 1, now, RADIO)
    return node.sizes()["kept"]


def test_a_clock_that_is_set_forward_does_not_make_a_node_drop_its_floods() -> None:
    """Boards without a battery begin in 1970. Neighbours that were away still need what came before."""
    years = 50 * 365 * 24 * 3600 * SECOND
    assert kept_after(0, 1 * SECOND, years, years + 1) == 4


def test_a_running_node_drops_its_floods_when_it_has_kept_them_long_enough() -> None:
    assert kept_after(*range(0, 20 * MINUTE, 30 * SECOND)) == 21


def test_a_suspended_node_does_not_take_missing_floods_for_lost() -> None:
    """A neighbour has dropped the message. Others may have it, so the node goes on asking."""
    node = registry.make("unordered", "node", Context(0, (0, 1), {"dissemination": "flooding"}, Random(1)))
    node.start(0, {})
    node.receive(flood(2), 1, 1, RADIO)
    node.receive(FloodGonePacket(1, 0, 1), 1, 2, RADIO)
    awake = 3600 * SECOND
    effects = node.timer(ASK, awake)
    assert [type(effect.packet) for effect in effects if isinstance(effect, Send)] == [FloodWantPacket]
    assert delivered(effects) == []
    assert delivered(node.receive(flood(1), 1, awake + 1, RADIO)) == [1, 2]


def test_ranges_of_node_ids_have_a_largest_length() -> None:
    assert parse_node_ids("0 3, 5-7") == {0, 3, 5, 6, 7}
    assert len(parse_node_ids("1-1000000") or ()) == 1_000_000
    for text in ("1-1000001", "7-5", "a"):
        with pytest.raises(BadInput):
            parse_node_ids(text)


def test_a_digest_that_says_nothing_of_a_stream_begins_none() -> None:
    made = node("fifo")
    made.start(0, {})
    streams = made.dissemination.floods.streams  # type: ignore[attr-defined]
    made.receive(FloodDigestPacket(((5, 0, 0),)), 1, 10, RADIO)
    assert (5, 0) not in streams
    made.receive(FloodDigestPacket(((5, 0, 1),)), 1, 20, RADIO)
    assert (5, 0) in streams


@pytest.mark.parametrize("told", [True, False])
def test_a_flood_that_a_neighbour_reports_as_gone_is_skipped_when_nobody_can_have_it(
    told: bool,
) -> None:
    options = {"dissemination": "flooding", "retention": "1min", "beacon": "0s"}
    made = registry.make("unordered", "node", Context(0, (0, 1), options, Random(1)))
    effects = [*made.start(0, {}), *made.receive(flood(2), 1, 1, RADIO)]
    if told:
        effects += made.receive(FloodGonePacket(1, 0, 1), 1, 2, RADIO)
    arrived: list[int] = []
    now = 0
    while now < 5 * MINUTE:
        arrived += delivered(effects)
        now = max(effect.at for effect in effects if isinstance(effect, SetTimer) and effect.key == ASK)
        effects = made.timer(ASK, now)
        if not effects:
            break
    assert arrived == ([2] if told else [])


def test_a_node_that_runs_in_silence_drops_its_floods_when_it_has_kept_them_long_enough() -> None:
    options = {"dissemination": "flooding", "relay_wait": "0s", "beacon": "1s", "beacon_longest": "1min"}
    made = registry.make("unordered", "node", Context(0, (0, 1), options, Random(1)))
    effects = [*made.start(0, {}), *made.receive(flood(1), 1, 0, RADIO)]
    timers: dict[Any, int] = {}
    while True:
        timers |= {effect.key: effect.at for effect in effects if isinstance(effect, SetTimer)}
        key = min(timers, key=timers.__getitem__)
        if timers[key] > 20 * MINUTE:
            break
        effects = made.timer(key, timers.pop(key))
    made.receive(flood(2), 1, 20 * MINUTE, RADIO)
    assert made.sizes()["kept"] == 1
