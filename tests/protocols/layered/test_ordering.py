"""A class that overrides the `arrive` of an ordering gets batches through it, also where that is compiled."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from precede.core.effects import Effect
from precede.core.instants import Instant
from precede.eventlog.sinks import NoSink
from precede.experiments.run import Run, prepare
from precede.protocols import registry
from precede.protocols.guidec2021.delta_causal import DeltaCausal
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.fifo import Fifo
from precede.protocols.layered.hash_dag import HashDag
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.parsed_envelopes import Batch
from precede.protocols.layered.unordered import Unordered
from precede.protocols.layered.vector_clock import VectorClock

ORDERINGS = (Unordered, Fifo, VectorClock, HashDag, DeltaCausal)


@pytest.mark.parametrize("ordering", ORDERINGS)
def test_an_arrive_of_its_own_gets_batches(ordering: type[Ordering]) -> None:
    arrived = []

    class Counting(ordering):  # type: ignore[valid-type, misc]
        def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
            arrived.append((tuple(envelopes), now))

    class Extended(Counting):
        pass

    for own in (Counting, Extended):
        own.arrive_batch(own.__new__(own), Batch([]), 7, [])
    assert arrived == [((), 7), ((), 7)]


@pytest.mark.parametrize("ordering", ORDERINGS)
def test_a_batch_of_its_own_comes_first(ordering: type[Ordering]) -> None:
    batches = []

    class Both(ordering):  # type: ignore[valid-type, misc]
        def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
            raise AssertionError("the batch was taken apart")

        def arrive_batch(self, batch: Batch, now: Instant, effects: list[Effect]) -> None:
            batches.append(batch)

    batch = Batch([])
    Both.arrive_batch(Both.__new__(Both), batch, 7, [])
    assert batches == [batch]


@pytest.mark.parametrize("bandwidth", ["inf", 1e5])
def test_an_engine_for_contacts_calls_it(bandwidth: float | str) -> None:
    arrived = []

    class Counting(Fifo):
        def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
            arrived.extend(envelopes)
            super().arrive(envelopes, now, effects)

    meetings = [["0", "1", "1s", "5s"], ["1", "2", "6s", "9s"]]
    world = {"kind": "contacts", "nodes": 3, "meetings": meetings, "bandwidth": bandwidth}
    run = Run(world=world, workload={"script": [{"src": "0", "at": "0s"}], "size": 50}, protocol="fifo", seed=1)
    prepared = prepare(run, NoSink(), entry=replace(registry.find("fifo"), ordering=Counting))
    prepared.world.run(prepared.end)
    assert len(arrived) == 2
