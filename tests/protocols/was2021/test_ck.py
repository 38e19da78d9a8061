"""CK, the rival of WAS, on walking hosts: causal order holds, and all messages are delivered and deleted."""

from __future__ import annotations

from typing import Any

import pytest

from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, prepare
from precede.experiments.swarm.events import events_of
from precede.protocols.cells.central_discard import CentralDiscard
from precede.protocols.cells.record import ProxyRecord
from precede.protocols.cells.routes import Routes
from precede.protocols.was2021.ck import CkRule
from precede.witness.verify import verify


@pytest.mark.parametrize("frames", ["cell", "host"])
@pytest.mark.parametrize("speed", [1.39, 30.0])
def test_all_messages_are_delivered_in_causal_order_and_deleted(frames: str, speed: float) -> None:
    hosts = 12
    run = Run(
        world={
            "kind": "cellular",
            "stations": 4,
            "hosts": hosts,
            "speed": speed,
            "step": "100ms",
            "duration": "10s",
        },
        workload={"every": "exponential(0.6)", "first": "uniform(1, 2)", "until": "10s", "size": 20},
        protocol="ck",
        options={"frames": frames},
        seed=3,
        gauges="none",
        log="messages",
    )
    sink = TableSink()
    prepared = prepare(run, sink)
    prepared.world.run(20_000_000)
    prepared.recorder.flush()
    log = sink.events()
    verdict = verify(log, "causal")
    assert verdict.verdict == "holds", verdict.first
    broadcasts = len(events_of(log, "broadcast"))
    assert broadcasts > 100
    assert len(events_of(log, "delivered")) == broadcasts * hosts
    assert all(hosted.node.sizes()["sbuffer"] == 0 for hosted in prepared.world.nodes)


def test_a_newcomer_gets_what_follows_a_deleted_message_only_after_that_message() -> None:
    """Its initial station, which did not know of the newcomer, deletes the message while it is on the air."""
    stored: dict[tuple[int, int], Any] = {(2, 1): "first"}
    hosts = {9: ProxyRecord(1, {})}
    discard = CentralDiscard(5, hosts, CkRule(5), Routes(5), stored, 0)
    hosts[9].sent_at[2, 1] = None
    discard.delete(((2, 1),))
    assert (2, 1) in stored, "the host may still deliver it, so it counts for what may be sent"
    discard.delete_postponed()
    assert (2, 1) in stored
    discard.advance(9, hosts[9], ((2, 1),), 0, [])
    discard.delete_postponed()
    assert not stored
    assert not discard.postponed
