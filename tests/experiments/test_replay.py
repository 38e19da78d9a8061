"""Simulation with measured times: the records of real nodes decide what arrives; differences are explained."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from precede.core.identity import MessageId
from precede.core.instants import SECOND
from precede.core.transfers import DOWN, RECEIVED, SENT, UP, LinkRecord
from precede.experiments.emulation.compare import compared
from precede.experiments.emulation.explain import explained, summed_up, write_differences
from precede.experiments.emulation.plan import plan_of
from precede.experiments.emulation.replay import put_together, run_again
from precede.experiments.run import Run

M = MessageId(0, 0, 1)
MESSAGES = ("messages", (M,))
RUN = Run(
    world={"kind": "contacts", "nodes": 3, "meetings": [["0", "1", "10s", "25s"], ["1", "2", "30s", "40s"]]},
    workload={"messages": "messages.csv"},
    protocol="delta_causal",
    options={"lifetime": "60s"},
    end="60s",
)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "messages.csv").write_text("id,src,time\n1,0,5\n")
    return Run(**{**{f: getattr(RUN, f) for f in RUN.__struct_fields__}, "base": str(tmp_path)})


def link(a: int, b: int, up: int, down: int) -> list[LinkRecord]:
    return [
        LinkRecord(what, at * SECOND, *ends)
        for ends in ((a, b), (b, a))
        for what, at in ((UP, up), (DOWN, down))
    ]


def passed(a: int, b: int, sent: int, out: int | None, kind: str = "messages") -> list[LinkRecord]:
    ids = (M,) if kind == "messages" else ()
    records = [LinkRecord(SENT, sent * SECOND, a, b, kind, ids)]
    return records if out is None else [*records, LinkRecord(RECEIVED, out * SECOND, b, a, kind, ids)]


def met(a: int, b: int, up: int, down: int, sent: int, out: int | None) -> list[LinkRecord]:
    """A link on which both nodes sent a summary, and one of them a message."""
    greetings = [*passed(a, b, up, up + 1, "summary"), *passed(b, a, up, up + 1, "summary")]
    return [*link(a, b, up, down), *greetings, *passed(a, b, sent, out)]


def delivered(events: pa.Table) -> dict[str, int]:
    rows = [row for row in events.to_pylist() if row["kind"] == "delivered" and row["node"] != "0"]
    return {row["node"]: row["at_us"] // SECOND for row in rows}


def test_the_nth_packet_sent_is_the_nth_packet_received() -> None:
    records = [*link(0, 1, 10, 25), *passed(0, 1, 11, 12), *passed(0, 1, 13, 17), *passed(0, 1, 24, None)]
    measured = put_together(records)
    (end,) = (end for end in measured.ends if end.node == 0)
    assert [one.time for one in end.sent] == [1 * SECOND, 4 * SECOND, None]
    assert (end.up, end.down) == (10 * SECOND, 25 * SECOND)
    assert measured.hops == {(1, M): (12 * SECOND, 0)}
    assert (measured.packets, measured.arrived) == (3, 2)


def test_a_link_that_comes_up_again_is_a_new_period() -> None:
    records = [*met(0, 1, 10, 20, 11, None), *met(0, 1, 30, 40, 31, 33)]
    ends = [end for end in put_together(records).ends if end.node == 0]
    assert [[one.time for one in end.sent] for end in ends] == [[SECOND, None], [SECOND, 2 * SECOND]]


def test_measured_times_decide_when_a_message_is_delivered(run: Run) -> None:
    plan, nominal = plan_of(run)
    assert delivered(nominal) == {"1": 10, "2": 30}
    measured = put_together([*met(0, 1, 11, 25, 12, 15), *met(1, 2, 31, 40, 32, 35)])
    again = run_again(run, plan, measured, nominal)
    assert delivered(again.events) == {"1": 15, "2": 35}
    assert again.counters["transfers_like_others"] == 0
    assert explained(plan, measured, again, again.events) == []


def test_a_lost_transfer_explains_the_deliveries_that_follow_from_it(run: Run, tmp_path: Path) -> None:
    plan, nominal = plan_of(run)
    hops = put_together([*met(0, 1, 11, 25, 23, 24), *met(1, 2, 31, 40, 32, 33)]).hops
    measured = put_together([*met(0, 1, 11, 25, 12, None), *met(1, 2, 31, 40, 32, 33)])
    measured.hops = hops  # as if the real nodes had got it in the last second of the contact
    again = run_again(run, plan, measured, nominal)
    assert delivered(again.events) == {}
    assert compared(again.events, nominal)["delivered_in_emulation_alone"] == 2
    differences = explained(plan, measured, again, nominal)
    assert [(one.node, one.kind, one.via, one.margin_s) for one in differences] == [
        ("1", "edge of a contact", "0", 1.0),
        ("2", "follows", "1", None),
    ]
    assert [(row["kind"], row["count"]) for row in summed_up(differences)] == [
        ("follows", 1),
        ("edge of a contact", 1),
    ]
    write_differences(tmp_path / "differences.csv", differences)
    assert (tmp_path / "differences.csv").read_text().splitlines()[1:] == [
        "1,0,1,emulation,edge of a contact,0,1.0",
        "2,0,1,emulation,follows,1,",
    ]


def test_a_difference_far_from_any_edge_stays_unexplained(run: Run) -> None:
    plan, nominal = plan_of(run)
    measured = put_together([*met(0, 1, 11, 25, 12, None), *met(1, 2, 31, 40, 32, 33)])
    measured.hops = {(1, M): (13 * SECOND, 0), (2, M): (33 * SECOND, 1)}
    again = run_again(run, plan, measured, nominal)
    first = explained(plan, measured, again, nominal)[0]
    assert (first.kind, first.margin_s) == ("unexplained", 12.0)
