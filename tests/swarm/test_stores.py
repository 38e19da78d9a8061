"""Stores drain: in worlds of protocols that write own messages, and of a message that nobody acknowledges."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from precede.core.node import Context
from precede.experiments.swarm.swarm import run_seed
from precede.protocols import registry
from tests.protocols.stores import persist


@pytest.mark.parametrize("protocol", ["fifo", "causal_barrier", "prs"])
def test_stores_drain(protocol: str) -> None:
    """`fifo` runs over `direct`, `causal_barrier` over `epidemic`, `prs` with its journal."""
    for seed in range(1_000_000, 1_000_012):
        result = run_seed(protocol, seed)
        assert not result.failed, (seed, result.remarks)


@pytest.mark.parametrize("rto", ["0s", "200ms"])
def test_a_message_to_nobody_leaves_nothing_in_the_store(rto: str) -> None:
    options = {"durable": True, "dissemination": "direct", "rto": rto}
    node = registry.make("fifo", "node", Context(0, (0,), options, Random(1)))
    store: dict[Any, Any] = {}
    persist(store, node.start(0, {}))
    persist(store, node.broadcast(b"", 1))
    assert store == {"own_delivered": 1}
    assert node.sizes()["unacknowledged"] == 0
