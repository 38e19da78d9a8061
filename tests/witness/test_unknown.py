"""When the witness says `unknown`: only when something that the order needs is missing, and it says what."""

from __future__ import annotations

import gzip

import pytest

from precede.core.errors import BadInput
from precede.witness.verify import verify
from tests.witness.every_way import verify_every_way
from tests.witness.histories import parse

GOOD = "a: +1 a1 +2 a2\nb: a1 +1 b1 a2\nc: a1 b1 a2"


def rows_of(text):
    return sorted(parse(text).table(), key=lambda row: (str(row["node"]), row["step"]))


def without(rows, node, step):
    return [row for row in rows if (row["node"], row["step"]) != (node, step)]


@pytest.mark.parametrize("order", ["fifo", "causal", "total"])
@pytest.mark.parametrize(("node", "step"), [("b", 3), ("a", 2), ("c", 2)])
def test_a_gap_in_the_steps_makes_the_verdict_unknown(order, node, step):
    verdict = verify_every_way(without(rows_of(GOOD), node, step), order)
    assert verdict.verdict == "unknown"
    assert f"node {node} goes from step {step - 1} to step {step + 1}" in verdict.reasons[0]


def test_a_missing_beginning_is_a_gap():
    rows = [row | {"step": row["step"] + 40} if row["node"] == "c" else row for row in rows_of(GOOD)]
    assert verify_every_way(rows, "causal").reasons[0].startswith("node c begins at step 41")
    zero_based = [row | {"step": row["step"] - 1} for row in rows_of(GOOD)]
    assert verify_every_way(zero_based, "causal").verdict == "holds"


def test_a_broadcast_in_a_gap_is_no_ghost():
    verdict = verify_every_way(without(rows_of(GOOD), "a", 3), "causal")
    assert (verdict.verdict, verdict.violations) == ("unknown", 0)


def test_a_log_of_one_member_alone_is_unknown():
    rows = [row for row in rows_of(GOOD) if row["node"] == "b"]
    for order in ("fifo", "causal", "total"):
        verdict = verify_every_way(rows, order)
        assert (verdict.verdict, verdict.counts) == ("unknown", {})
        assert any("node a has no rows" in reason for reason in verdict.reasons)


def test_a_node_outside_the_membership_has_ghosts():
    rows = rows_of(GOOD + " z1")
    assert verify_every_way(rows, "causal").verdict == "unknown"
    verdict = verify_every_way(rows, "causal", members="a,b,c")
    assert verdict.counts == {"ghost": 1}
    assert verdict.first is not None
    assert (verdict.first.kind, verdict.first.message) == ("ghost", "z:1")


def test_a_ghost_of_a_complete_source_is_proven_although_another_log_has_a_gap():
    rows = without(rows_of(GOOD + " b9"), "a", 2)
    assert verify_every_way(rows, "causal").counts == {"ghost": 1}


def test_a_proven_violation_counts_in_spite_of_a_gap():
    rows = without(rows_of("a: +1 +2\nb: a2 a1\nc: a1 a2 a1"), "c", 2)
    verdict = verify_every_way(rows, "fifo")
    assert verdict.verdict == "violated"
    assert verdict.counts == {"fifo": 1, "duplicate": 1}
    assert verdict.reasons


def test_other_rows_count_as_steps():
    rows = without(rows_of(GOOD), "a", 2)
    rows.append({"node": "a", "step": 2, "kind": "sent", "message_source": None, "message_number": None})
    assert verify_every_way(rows, "causal").verdict == "holds"


def test_steps_may_only_order_rows():
    rows = [row | {"step": row["step"] * 1000} for row in rows_of(GOOD)]
    assert verify_every_way(rows, "causal").verdict == "unknown"
    assert verify_every_way(rows, "causal", steps="ordered").verdict == "holds"


def test_steps_may_continue_in_a_new_incarnation():
    rows = rows_of(GOOD)
    row = {"node": "b", "incarnation": 1, "step": 5, "kind": "delivered"}
    rows.append(row | {"message_source": "a", "message_number": 1})
    assert verify_every_way(rows, "causal").verdict == "holds"
    rows[-1] = rows[-1] | {"step": 9}
    assert verify_every_way(rows, "causal").reasons[0].startswith("node b (incarnation 1) begins at step 9")


def test_a_log_without_deliveries():
    assert verify_every_way(rows_of("a: +1 +2"), "causal").reasons == ("no deliveries at all",)
    rows = [row | {"kind": {"broadcast": "tx", "delivered": "rx"}[row["kind"]]} for row in rows_of(GOOD)]
    verdict = verify_every_way(rows, "causal")
    assert verdict.verdict == "unknown"
    assert "kinds: tx, rx" in verdict.reasons[0]
    assert verify_every_way(rows, "causal", kinds="broadcast=tx,delivered=rx").verdict == "holds"


def test_a_missing_column_that_the_order_needs_makes_the_verdict_unknown():
    rows = rows_of(GOOD)
    assert verify_every_way(rows, "multicast").reasons == ("multicast order needs the column destinations",)
    reasons = verify_every_way(rows, "delta").reasons
    assert "deadline_us" in reasons[0]
    assert "clock_us" in reasons[1]
    everybody = [row | {"destinations": None} for row in rows]
    assert verify_every_way(everybody, "multicast").verdict == "holds"
    no_deadline = [row | {"deadline_us": None, "clock_us": 1} for row in rows]
    assert verify_every_way(no_deadline, "delta").verdict == "unknown"
    some = [row | {"deadline_us": 5 if row["kind"] == "broadcast" else None, "clock_us": 1} for row in rows]
    assert verify_every_way(some, "delta").verdict == "holds"
    no_clock = [row | {"clock_us": None} for row in some]
    assert "has no clock_us" in verify_every_way(no_clock, "delta").reasons[0]


class TestDeliveriesOnly:
    def test_fifo_and_total_order_are_decided_without_broadcasts(self):
        rows = [row for row in rows_of("a: +1 +2\nb: a1 a2\nc: a2 a1") if row["kind"] == "delivered"]
        assert verify_every_way(rows, "fifo").counts == {"fifo": 1}
        assert verify_every_way(rows, "total").counts == {"total": 1}
        good = [row for row in rows if row["node"] == "b"]
        verdict = verify_every_way(good, "fifo")
        assert verdict.verdict == "holds"
        assert "no broadcast rows" in verdict.notes[0]

    def test_causal_order_without_broadcasts_is_unknown_with_the_reason(self):
        rows = [row for row in rows_of("a: +1 +2\nb: a1 a2") if row["kind"] == "delivered"]
        for order in ("causal", "multicast", "delta"):
            verdict = verify_every_way(rows, order)
            assert verdict.verdict == "unknown"
            assert "the log has no broadcast rows" in verdict.reasons[0]

    def test_a_duplicate_is_found_without_broadcasts(self):
        rows = [row for row in rows_of("a: +1 +2\nb: a1 a2 a1") if row["kind"] == "delivered"]
        assert verify_every_way(rows, "causal").counts == {"duplicate": 1}

    def test_opaque_ids_decide_total_order_but_not_fifo(self):
        rows = [
            {"node": node, "step": step, "kind": "delivered", "message": message}
            for node, order in (("a", "xyz"), ("b", "xzy"))
            for step, message in enumerate(order, 1)
        ]
        assert verify_every_way(rows, "total").counts == {"total": 1}
        assert "opaque" in verify_every_way(rows, "fifo").reasons[0]

    def test_logs_of_deliveries_in_file_order(self):
        rows = [{"consumer": "c", "key": "k", "value": number, "source": "s"} for number in (1, 2, 4, 3)]
        columns = "node=consumer,kind=:delivered,step=:row,message_source=source,message_number=value"
        verdict = verify_every_way(rows, "fifo", columns=columns)
        assert verdict.counts == {"fifo": 1}
        assert verdict.first is not None
        assert verdict.first.step == 4


CSV = "node,step,kind,message\na,1,broadcast,x\nb,1,delivered,x\nb,2,broadcast,y\na,2,delivered,y\n"


@pytest.mark.parametrize("engine", ["plain", "numba"])
def test_a_text_file_with_a_cut_last_row_is_truncated(tmp_path, engine):
    log = tmp_path / "log.csv"
    log.write_text(CSV + "b,3,deli")
    verdict = verify(log, "causal", engine=engine)
    assert verdict.verdict == "unknown"
    assert verdict.reasons == (f"{log}, row 5 (line 6): the last row is cut, so the log is truncated",)
    lines = tmp_path / "log.jsonl"
    lines.write_text('{"node":"a","step":1,"kind":"broadcast","message":"x"}\n{"node":"b","st')
    assert "truncated" in verify(lines, "causal", engine=engine).reasons[0]


def test_a_ghost_may_be_in_the_part_that_was_cut(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(CSV + "b,3,delivered,z\na,3,broad")
    numbered = tmp_path / "numbered.csv"
    numbered.write_text(
        "node,step,kind,message_source,message_number\na,1,broadcast,a,1\n"
        "b,1,delivered,a,1\nb,2,delivered,a,2\nb,3,delivered,z,1\na,2,broadca"
    )
    for engine in ("plain", "numba"):
        assert verify(log, "causal", engine=engine).verdict == "unknown"
        assert verify(numbered, "causal", engine=engine).verdict == "unknown"


def test_a_last_row_without_a_newline_is_complete(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(CSV.rstrip("\n"))
    assert verify(log, "causal").verdict == "holds"


def test_a_gzip_file_that_ends_too_early(tmp_path):
    log = tmp_path / "log.csv.gz"
    rows = "".join(f"a,{step},broadcast,m{step * 7919 % 10007}\n" for step in range(5, 9000))
    packed = gzip.compress((CSV.replace("a,2", "b,3") + rows).encode())
    log.write_bytes(packed[: len(packed) // 2])
    verdict = verify(log, "causal", steps="ordered")
    assert verdict.verdict == "unknown"
    assert "the gzip stream ends too early" in verdict.reasons[0]
    log.write_bytes(packed[:15])
    with pytest.raises(BadInput, match=r"empty|gzip"):
        verify(log, "causal")


@pytest.mark.parametrize("lost", [[], [3], [4], [3, 4], [1, 2, 3], [1, 2, 3, 4]])
def test_a_gap_between_two_incarnations_may_hide_a_broadcast_of_the_first(lost):
    rows = [
        {"node": node, "incarnation": incarnation_number, "step": step, "kind": kind}
        | {"message_source": "a", "message_incarnation": source_incarnation, "message_number": number}
        for node, incarnation_number, step, kind, source_incarnation, number in [
            ("a", 0, 1, "broadcast", 0, 1),
            ("a", 0, 2, "delivered", 0, 1),
            ("a", 0, 3, "broadcast", 0, 2),
            ("a", 1, 4, "broadcast", 1, 1),
            ("a", 1, 5, "delivered", 1, 1),
            ("b", 0, 1, "delivered", 0, 1),
            ("b", 0, 2, "delivered", 0, 2),
            ("b", 0, 3, "delivered", 1, 1),
        ]
        if node == "b" or step not in lost
    ]
    verdict = verify_every_way(rows, "causal")
    assert (verdict.verdict, verdict.counts) == ("unknown" if lost else "holds", {})
