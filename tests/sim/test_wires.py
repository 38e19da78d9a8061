"""Wires between stations that are cut for a while."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from precede.core.errors import BadInput
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, prepare
from precede.experiments.swarm.events import events_of
from precede.sim.networks.cellular import Cellular
from precede.sim.networks.lossy_radio import LossyRadio
from precede.sim.randomness import Distribution, Generators

WORLD: dict[str, Any] = {
    "kind": "cellular",
    "stations": 2,
    "hosts": 2,
    "links": [["s0", "s1"]],
    "radio": "lossy",
    "movement": "moves",
    "moves": [{"host": "h0", "at": "0s", "cell": "s0"}, {"host": "h1", "at": "0s", "cell": "s1"}],
}


def delivered_at(cuts: list[dict[str, Any]]) -> int:
    """Return when the other host delivers a message sent after a second."""
    workload = {"script": [{"src": "h0", "at": "1s"}], "size": 1}
    run = Run(world=WORLD | {"wire_cuts": cuts}, workload=workload, protocol="was", options={"stations": 2})
    sink = TableSink()
    prepared = prepare(run, sink)
    prepared.world.run(20_000_000)
    prepared.recorder.flush()
    [row] = [row for row in events_of(sink.events(), "delivered") if row["node"] == "h1"]
    at: int = row["at_us"]
    return at


def test_packets_wait_until_a_cut_wire_is_mended() -> None:
    assert delivered_at([]) < 2_000_000
    assert 5_000_000 <= delivered_at([{"link": ["s1", "s0"], "start": "500ms", "end": "5s"}]) < 6_000_000


def test_only_a_link_of_the_tree_can_be_cut() -> None:
    with pytest.raises(BadInput, match="no link"):
        delivered_at([{"link": ["s0", "h1"], "start": "1s", "end": "2s"}])


@pytest.mark.parametrize("given", [None, [(1.0, 2.0), (3.0, 4.0)]])
def test_stations_stand_where_they_were_put_or_all_at_one_place(given: Any) -> None:
    network = Cellular(LossyRadio(Distribution(0.001)), 2, [(0, 1)], Distribution(0.01), station_places=given)
    network.attach(SimpleNamespace(generators=Generators(1)), 3)  # type: ignore[arg-type]
    assert network.place == [*(given or [(0.0, 0.0)] * 2), (0.0, 0.0)]
