"""Whatever happened: the witness agrees with the second one, with itself compiled, and its stories are true."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precede.witness.checks import crowds
from precede.witness.checks import numba_engine as compiled
from precede.witness.verify import verify
from tests.witness import second_witness
from tests.witness.every_way import verify_every_way
from tests.witness.histories import Log
from tests.witness.proof import proves


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
def test_every_reader_and_engine_agrees_with_the_second_witness(log):
    rows = log.table()
    for order in ("causal", "fifo", "total"):
        expected = second_witness.judge(rows, order)
        found = verify_every_way(rows, order)
        assert (found.verdict, found.counts) == (expected.verdict, expected.counts)


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
    assert plain.counts == second_witness.judge(rows, "causal").counts


@given(histories(), st.sampled_from(["causal", "total"]))
@settings(max_examples=140)
def test_the_rows_of_an_explanation_prove_it(log, order):
    rows = log.table()
    first = verify(rows, order, engine="plain", duplicates="forbid" if order == "causal" else "allow").first
    assert first is None or proves(first, rows)
