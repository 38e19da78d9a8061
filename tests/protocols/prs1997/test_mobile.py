"""Section 9 of prs1997 with walking hosts, and its form without stations (see also scenarios/prs1997)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from precede.core.effects import RADIO, Accept
from precede.core.errors import Refused
from precede.core.node import Context, Node
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out, prepare
from precede.experiments.swarm.events import events_of
from precede.protocols import registry
from precede.protocols.cells.packets import ProxyConnectAckPacket
from precede.witness.verify import verify

HOSTS = 10


def births(random: Random, by_stations: bool = False) -> list[dict[str, Any]]:
    """A hundred broadcasts to one to nine hosts each; every third by a station if stations send, too."""
    script: list[dict[str, Any]] = []
    for number in range(100):
        source = f"s{number % 4}" if by_stations and number % 3 == 0 else f"h{random.randrange(HOSTS)}"
        others = [host for host in (f"h{number}" for number in range(HOSTS)) if host != source]
        to = random.sample(others, random.randint(1, 9))
        script.append({"src": source, "at": f"{random.randint(1_000, 9_000)}ms", "to": to})
    return script


@pytest.mark.parametrize("frames", ["cell", "host"])
@pytest.mark.parametrize("speed", [1.39, 30.0])
@pytest.mark.parametrize("by_stations", [False, True])
def test_every_destination_and_no_other_host_delivers_each_message_once(
    frames: str, speed: float, by_stations: bool
) -> None:
    script = births(Random(5), by_stations)
    run = Run(
        world={
            "kind": "cellular",
            "stations": 4,
            "hosts": HOSTS,
            "speed": speed,
            "step": "100ms",
            "duration": "10s",
        },
        workload={"script": script, "size": 20},
        protocol="prs_mobile",
        options={"frames": frames},
        seed=3,
        end="20s",
        gauges="none",
        log="messages",
    )
    sink = TableSink()
    prepared = prepare(run, sink)
    prepared.world.run(prepared.end)
    prepared.recorder.flush()
    log = sink.events()
    verdict = verify(log, "multicast")
    assert verdict.verdict == "holds", verdict.first
    got = sorted(
        (row["message_source"], row["message_number"], row["node"]) for row in events_of(log, "delivered")
    )
    sent = {
        (row["message_source"], row["message_number"]): row["destinations"]
        for row in events_of(log, "broadcast")
    }
    assert len(sent) == 100
    assert got == sorted((*message, host) for message, to in sent.items() for host in to)
    assert all(hosted.node.sizes()["sbuffer"] == 0 for hosted in prepared.world.nodes)


def test_without_stations_prs_mobile_writes_the_same_log_as_prs() -> None:
    def rows(protocol: str) -> list[Any]:
        run = Run(
            world={"kind": "point_to_point", "nodes": 6, "loss": 0.2},
            workload={"every": "exponential(0.2)", "until": "4s", "to": [1, 4]},
            protocol=protocol,
            seed=2,
            end="10s",
            gauges="none",
        )
        sink = TableSink()
        carry_out(run, sink)
        verdict = verify(sink.events(), "multicast")
        assert verdict.verdict == "holds"
        assert verdict.deliveries_checked > 100
        return sink.events().drop_columns(["run_id"]).to_pylist()

    assert rows("prs_mobile") == rows("prs")


def host(**options: Any) -> Node:
    return registry.make("prs_mobile", "host", Context(3, (0, 1, 2, 3, 4), options, Random(1)))


@pytest.mark.parametrize(
    ("options", "to", "cause"),
    [
        ({}, None, "name destinations"),
        ({"stations": 2}, (), "empty"),
        ({"stations": 2}, (4, 4), "twice"),
        ({"stations": 2}, (3, 4), "another host"),
        ({"stations": 2}, (0,), "another host"),
    ],
)
def test_bad_destinations_are_refused(options: dict[str, Any], to: Any, cause: str) -> None:
    node = host(**options)
    node.link_up(0, 0, RADIO)
    with pytest.raises(Refused, match=cause):
        node.broadcast(b"m", 0, to)
    assert node.sizes()["sbuffer"] == 0


def test_a_stations_second_message_waits_for_its_first_at_a_host_that_gets_both() -> None:
    """Section 9: a station multicasts, too; its barrier names its own earlier message."""
    options = registry.find("prs_mobile").options(stations=1)
    station = registry.make("prs_mobile", "station", Context(0, (0, 1, 2), options, Random(1)))
    accept, *_ = station.broadcast(b"one", 0, (1,))
    assert isinstance(accept, Accept)
    assert (accept.message.id.source, accept.message.id.number, accept.destinations) == (0, 1, (1,))
    station.broadcast(b"two", 1, (1, 2))
    _, second = station.offers.stored.values()
    assert dict(station.own.order.needs(second.stamp)) == {}
    host = station.rule.new_order(1)
    assert list(host.needs(second.stamp).values()) == [1]
    with pytest.raises(Refused, match="another host"):
        station.broadcast(b"three", 2, (0,))


def test_without_destinations_a_message_goes_to_every_other_host() -> None:
    (accept, *_) = host(stations=2).broadcast(b"m", 0)
    assert isinstance(accept, Accept)
    assert accept.destinations == (2, 4)


def test_a_host_is_connected_only_by_the_answer_to_itself() -> None:
    node = host(stations=2)
    node.start(0, {})
    node.link_up(0, 0, RADIO)
    node.broadcast(b"m", 1, (4,))
    assert node.receive(ProxyConnectAckPacket(4, 1, 0, ()), 0, 2, RADIO) == []
    assert node.receive(ProxyConnectAckPacket(3, 1, 0, ()), 0, 3, RADIO), "it sends its message"
