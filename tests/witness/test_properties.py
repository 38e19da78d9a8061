"""Whatever happened: the witness agrees with the oracle, with itself compiled, and its stories are true."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precede.witness.checks import crowds
from precede.witness.checks import numba_engine as compiled
from precede.witness.verify import verify
from tests.witness import oracle
from tests.witness.every_way import verify_every_way
from tests.witness.histories import Log


@st.composite
def histories(draw, most_rows=40):
    """Any execution at all: a message can be delivered by anybody, at any time after its broadcast, often."""
    nodes = [f"n{i}" for i in range(draw(st.integers(1, 5)))]
    log = Log({node: [] for node in nodes})
    messages: list[str] = []
    counts = dict.fromkeys(nodes, 0)
    acts = st.tuples(st.sampled_from(nodes), st.integers(0, 30), st.booleans())
    for node, pick, speak in draw(st.lists(acts, min_size=2, max_size=most_rows)):
        if (speak and pick < 20) or not messages:
            counts[node] += 1 + (pick == 7)
            messages.append(f"{node}:{counts[node]}")
            log.rows[node].append(("broadcast", messages[-1]))
        elif pick == 30:
            log.rows[node].append(("delivered", f"{node}:999"))
        else:
            log.rows[node].append(("delivered", messages[pick % len(messages)]))
    return log


@given(histories())
@settings(max_examples=80)
def test_every_reader_and_engine_agrees_with_the_oracle(log):
    rows = log.table()
    expected = {
        "causal": ("causal", len(oracle.late_causal(log))),
        "fifo": ("fifo", len(oracle.late_fifo(log))),
    }
    for order, (kind, late) in expected.items():
        verdict = verify_every_way(rows, order)
        assert verdict.counts.get(kind, 0) == late
        assert verdict.counts.get("duplicate", 0) == oracle.duplicates(log)
        assert verdict.counts.get("ghost", 0) == oracle.ghosts(log)
        assert (verdict.verdict == "violated") == bool(late or oracle.duplicates(log) or oracle.ghosts(log))
    total = verify_every_way(rows, "total")
    assert ("total" in total.counts) == bool(oracle.total_disagreements(log))


@given(
    histories(most_rows=120),
    st.sampled_from(["snapshots", "walking", "blocks"]),
    st.sampled_from([1, 3, 16]),
)
@settings(max_examples=100)
def test_the_form_of_clocks_does_not_change_the_verdict(log, way, size):
    rows = log.table()
    plain = verify(rows, "causal", engine="plain")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "_SHORTEST_WINDOW", size)
        patch.setattr(crowds, "_NARROWEST", size)
        if way != "snapshots":
            patch.setattr(compiled, "DENSE_CLOCK_BYTES", 0)
            patch.setattr(crowds, "WALKED_PER_ROW", 0 if way == "blocks" else 1000)
        assert verify(rows, "causal", engine="numba") == plain
    assert plain.counts.get("causal", 0) == len(oracle.late_causal(log))


@given(histories())
@settings(max_examples=80)
def test_the_rows_of_an_explanation_prove_it(log):
    first = verify(log.table(), "causal", engine="plain").first
    if first is None or first.kind != "causal":
        return
    for row in first.rows:
        assert log.rows[row.node][row.step - 1] == (row.event, row.message)
    before = oracle.closure(log)
    assert all(link in before for link in pairwise(first.chain))
    assert first.chain[0] == first.message
    assert first.chain[-1] == first.other
    shown = [message for kind, message in log.rows[first.node][: first.step] if kind == "delivered"]
    assert shown.index(first.other) < shown.index(first.message)
    for message, following in pairwise(first.chain):
        source = following.split(":")[0]
        rows = log.rows[source]
        knew = min(at for at, (_, seen) in enumerate(rows) if seen == message)
        assert knew < rows.index(("broadcast", following))


@given(histories())
@settings(max_examples=60)
def test_the_rows_of_a_total_order_explanation_prove_it(log):
    first = verify(log.table(), "total", engine="plain", duplicates="allow").first
    if first is None or first.kind != "total":
        return
    here, there = first.rows[:2], first.rows[2:]
    assert here[0].node != there[0].node
    assert (here[0].message, here[1].message) == (there[1].message, there[0].message)
    for one, other in (here, there):
        assert one.node == other.node
        assert one.step < other.step
        assert log.rows[one.node][one.step - 1] == ("delivered", one.message)
