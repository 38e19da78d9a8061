"""`hash_dag` computes the hash of a message once for all nodes of a simulation, not at every reception."""

from __future__ import annotations

import pytest

from precede.core.compiling import is_compiled
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.protocols.layered import hash_dag

MEETINGS = [[str(k), str(k + 1), f"{k}s", f"{k + 3}s"] for k in range(8)]


@pytest.mark.skipif(is_compiled(hash_dag), reason="functions of compiled modules cannot be replaced")
@pytest.mark.parametrize("overhead", ["0s", "100ms"])
def test_a_message_is_hashed_by_its_source_and_once_for_all_receivers(monkeypatch, overhead: str):
    hashed, digest_of = [], hash_dag.digest_of
    monkeypatch.setattr(hash_dag, "digest_of", lambda envelope: hashed.append(envelope) or digest_of(envelope))
    sink = TableSink()
    run = Run(
        protocol="hash_dag",
        world={"kind": "contacts", "nodes": 9, "meetings": MEETINGS, "overhead": overhead},
        workload={"every": "700ms", "size": 10, "until": "9s"},
    )
    carry_out(run, sink)
    kinds = sink.events()["kind"].to_pylist()
    assert len(hashed) <= 2 * kinds.count("broadcast") < kinds.count("received")
