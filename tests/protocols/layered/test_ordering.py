"""An ordering that overrides `arrive` gets every batch through it, also where its base is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from precede.core.effects import Effect
from precede.core.instants import Instant
from precede.core.node import Context
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.protocols import registry
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.parsed_envelopes import Batch

NAMES = ("unordered", "fifo", "vector_clock", "hash_dag", "delta_causal")
NODES = 5
MEETINGS = [[str(k), str(k + 1), f"{k}s", f"{k + 3}s"] for k in range(NODES - 1)]
CONTACTS = {"kind": "contacts", "nodes": NODES, "meetings": MEETINGS}
WORLDS = (CONTACTS, {**CONTACTS, "overhead": "100ms"}, {"kind": "point_to_point", "nodes": NODES})

Extend = Callable[[type[Ordering], list[str]], type[Ordering]]


def from_its_class(ordering: type[Ordering], calls: list[str]) -> type[Ordering]:
    class Own(ordering):  # type: ignore[valid-type, misc]
        def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
            calls.extend("arrive" for _ in envelopes)
            super().arrive(envelopes, now, effects)

    return Own


def from_a_mixin(ordering: type[Ordering], calls: list[str]) -> type[Ordering]:
    class Counting:
        def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
            calls.extend("arrive" for _ in envelopes)
            super().arrive(envelopes, now, effects)  # type: ignore[misc]

    class Mixed(Counting, ordering):  # type: ignore[valid-type, misc]
        pass

    return Mixed


def of_one_instance(ordering: type[Ordering], calls: list[str]) -> type[Ordering]:
    class Instance(ordering):  # type: ignore[valid-type, misc]
        def __init__(self, context: Context[Any]) -> None:
            super().__init__(context)
            arrive = self.arrive

            def counting(envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
                calls.extend("arrive" for _ in envelopes)
                arrive(envelopes, now, effects)

            self.arrive = counting

    return Instance


def below_a_batch_of_its_own(ordering: type[Ordering], calls: list[str]) -> type[Ordering]:
    class Batches(ordering):  # type: ignore[valid-type, misc]
        def arrive_batch(self, batch: Batch, now: Instant, effects: list[Effect]) -> None:
            calls.extend("batch" for _ in batch.contents)
            super().arrive_batch(batch, now, effects)

    return from_its_class(Batches, calls)


def events(name: str, world: Mapping[str, Any], ordering: type[Ordering]) -> list[Any]:
    sink = TableSink()
    workload = {"every": "700ms", "size": 10, "until": "6s"}
    run = Run(protocol=name, world=dict(world), workload=workload, seed=1)
    carry_out(run, sink, replace(registry.find(name), ordering=ordering))
    return sink.events().to_pylist()


@pytest.mark.parametrize("extend", [from_its_class, from_a_mixin, of_one_instance, below_a_batch_of_its_own])
@pytest.mark.parametrize("world", WORLDS, ids=["at once", "timed", "direct"])
@pytest.mark.parametrize("name", NAMES)
def test_every_message_arrives_by_the_overridden_method(name: str, world: Mapping[str, Any], extend: Extend):
    calls: list[str] = []
    ordering = registry.find(name).ordering
    assert ordering is not None
    rows = events(name, world, extend(ordering, calls))
    received = sum(row["kind"] == "received" for row in rows)
    assert calls.count("arrive") == received > 10
    if extend is below_a_batch_of_its_own and world["kind"] == "contacts":
        assert calls.count("batch") == received
    assert rows == events(name, world, ordering)


@pytest.mark.parametrize("world", WORLDS[:2], ids=["at once", "timed"])
@pytest.mark.parametrize("name", NAMES)
def test_gauges_have_the_sizes_of_a_subclass(name: str, world: Mapping[str, Any]):
    ordering: Any = registry.find(name).ordering

    class InBytes(ordering):
        def sizes(self) -> Mapping[str, int]:
            sizes = {size: 100 * value for size, value in super().sizes().items()}
            return {**sizes, "late": 7} if any(sizes.values()) else sizes

    def gauges(ordering: type[Ordering]) -> dict[Any, int]:
        sink = TableSink()
        workload = {"every": "700ms", "size": 10, "until": "6s"}
        run = Run(protocol=name, world=dict(world), workload=workload, seed=1, gauges="1s")
        carry_out(run, sink, replace(registry.find(name), ordering=ordering))
        return {(row["node"], row["at_us"], row["name"]): row["value"] for row in sink.gauges().to_pylist()}

    usual, own = gauges(ordering), gauges(InBytes)
    carried = ("cache", "cache_bytes", "evicted", "links")  # sizes of the dissemination
    expected = {key: value if key[2] in carried else 100 * value for key, value in usual.items()}
    assert {key: value for key, value in own.items() if key[2] != "late"} == expected
    assert 7 in [value for key, value in own.items() if key[2] == "late"]
