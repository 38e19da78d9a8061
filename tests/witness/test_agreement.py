"""Agreement of a known membership beside pairwise total order: planted faults, and what is not proven."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from precede.core.errors import BadInput
from precede.witness.verify import verify
from tests.witness.every_way import verify_every_way
from tests.witness.histories import parse

ALONE = """
a: +1 a1
b: +1 b1
c: +1 c1
"""
TOGETHER = """
a: +1 a1 b1
b: a1 +1 b1
c: a1 b1
"""
LACKS = """
a: +1 a1 b1
b: a1 +1 b1
c: a1
"""
DISAGREE = """
a: +1 a1 b1
b: +1 b1 a1
"""


def rows(text: str) -> list[dict[str, Any]]:
    return parse(text).table()


def test_members_that_each_deliver_only_their_own_message_do_not_agree() -> None:
    assert verify_every_way(rows(ALONE), "total").verdict == "holds"
    verdict = verify_every_way(rows(ALONE), "total", members="a,b,c")
    assert (verdict.verdict, verdict.counts) == ("violated", {"agreement": 6})
    assert verdict.first is not None
    assert verdict.first.story.startswith("b delivered b:1; a never did.")


def test_members_that_deliver_everything_agree() -> None:
    assert verify_every_way(rows(TOGETHER), "total", members=["a", "b", "c"]).verdict == "holds"


def test_a_lacking_delivery_is_named() -> None:
    verdict = verify_every_way(rows(LACKS), "total", members="a, b, c")
    assert verdict.counts == {"agreement": 1}
    assert verdict.first is not None
    assert (verdict.first.kind, verdict.first.node, verdict.first.message) == ("agreement", "c", "b:1")


def test_other_nodes_neither_count_nor_are_required() -> None:
    assert verify_every_way(rows(LACKS), "total", members="a,b").verdict == "holds"


def test_order_is_judged_beside_agreement() -> None:
    verdict = verify_every_way(rows(DISAGREE), "total", members="a,b")
    assert verdict.counts == {"total": 1}


def test_a_member_that_was_not_gathered_makes_it_unknown_and_its_messages_are_no_ghosts() -> None:
    gathered = [row for row in rows(TOGETHER) if row["node"] != "b"]
    assert verify_every_way(gathered, "total", members="a,c").counts == {"ghost": 2}
    verdict = verify_every_way(gathered, "total", members="a,b,c")
    assert verdict.verdict == "unknown"
    assert "member b neither broadcast nor delivered" in verdict.reasons[0]


def test_a_gap_proves_no_lack() -> None:
    with_gap = [{**row, "step": row["step"] + 5 * (row["node"] == "c")} for row in rows(LACKS)]
    verdict = verify_every_way(with_gap, "total", members="a,b,c")
    assert (verdict.verdict, verdict.counts) == ("unknown", {})


def test_a_member_that_lost_its_state_is_not_correct() -> None:
    log = [{**row, "incarnation": 0, "message_incarnation": 0} for row in rows(LACKS)]
    later = {"node": "c", "incarnation": 1, "step": 2, "kind": "delivered", "message_incarnation": 0}
    log.append({**later, "message_source": "b", "message_number": 1})
    assert verify_every_way(log, "total", members="a,b,c").verdict == "holds"


@pytest.mark.parametrize("members", ["a,,b", ""])
def test_bad_members_are_refused(members: str) -> None:
    with pytest.raises(BadInput, match="members"):
        verify(rows(TOGETHER), "total", members=members)


def test_members_of_other_orders_must_have_rows_and_need_not_agree() -> None:
    assert verify_every_way(rows(LACKS), "causal", members="a,b,c").verdict == "holds"
    verdict = verify_every_way(rows(LACKS), "causal", members="a,b,c,d")
    assert (verdict.verdict, verdict.reasons[0].split(":")[0]) == (
        "unknown",
        "member d neither broadcast nor delivered",
    )


def test_members_are_read_from_run_json(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows(ALONE)), tmp_path / "events.parquet")
    (tmp_path / "run.json").write_text(json.dumps({"order": "total", "members": ["a", "b", "c"]}))
    assert verify(tmp_path).counts == {"agreement": 6}
    (tmp_path / "run.json").write_text(json.dumps({"order": "total"}))
    assert verify(tmp_path).verdict == "holds"


def test_with_opaque_ids_a_message_that_nobody_broadcast_is_a_ghost_only_if_all_logs_are_there() -> None:
    given = [
        {
            "node": row["node"],
            "step": row["step"],
            "kind": row["kind"],
            "message": f"{row['message_source']}{row['message_number']}",
        }
        for row in rows("a: +1 a1 b7\nb: a1 b7")
    ]
    assert verify(given, "total", members="a,b").counts == {"ghost": 2}
    verdict = verify(given, "total", members="a,b,c")
    assert (verdict.verdict, verdict.counts) == ("unknown", {})
