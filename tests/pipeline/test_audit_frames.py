"""`precede.spark.audit`: the counts of one process, from a DataFrame."""

from __future__ import annotations

import pytest

import precede.spark
from precede.audit.bounds import bound_all
from precede.audit.deployment import Deployment
from precede.audit.mobiclique import read_mobiclique
from precede.core.errors import BadInput
from tests.traces.real_data import real

pytestmark = pytest.mark.spark

NAMES = (
    "log string, room string, node string, kind string, message string, at_us long, peer string,"
    " accepted boolean"
)


def rows_of(log: Deployment) -> list[tuple]:
    rows = [
        (log.name, m.group, m.source, "created", m.message, m.at_us, None, None) for m in log.created.values()
    ]
    for hop in log.hops:
        if hop.message is not None:
            peer = hop.receiver if hop.kind == "sent" else hop.sender
            room = log.created[hop.message].group
            rows.append((log.name, room, hop.writer, hop.kind, hop.message, hop.at_us, peer, hop.accepted))
    return rows


def test_the_same_counts_as_in_one_process(session):
    log = read_mobiclique(real("sigcomm2009_mobiclique"))
    events = session.createDataFrame(rows_of(log), NAMES).repartition(3)
    margins = [0, 60_000_000]
    counted = precede.spark.audit(events, by="room", margins=["0s", "60s"], missing=True).collect()
    mine = {(row["room"], row["order"], row["margin_us"]): row for row in counted}
    groups = [group for group in log.groups if len(log.copies(group=group, missing=True).node)]
    assert len(mine) == 4 * len(groups)
    for group in groups:
        for bounds in bound_all(log.copies(group=group, missing=True), margins):
            row = mine[group, bounds.order, bounds.margin_us]
            assert (row["copies"], row["at_least"], row["at_most"], row["verdict"]) == (
                *(bounds.copies, bounds.at_least, bounds.at_most),
                bounds.verdict,
            )
    whole = {row["order"]: row for row in precede.spark.audit(events).collect()}
    assert (whole["causal"]["at_least"], whole["causal"]["at_most"]) == (427, 533)
    assert (whole["fifo"]["at_least"], whole["fifo"]["at_most"]) == (229, 296)


def test_messages_that_nobody_created_are_counted(session):
    rows = [("t", "r", "a", "received", "m", 1, "b", None), ("t", "r", "b", "created", "n", 0, None, None)]
    rows.append(("t", "r", "a", "received", "n", 2, "b", None))
    counted = precede.spark.audit(session.createDataFrame(rows, NAMES), by=["log"]).collect()
    assert [(row["log"], row["copies"], row["ghosts"]) for row in counted] == [("t", 1, 1)] * 2


def test_a_missing_column_is_named(session):
    with pytest.raises(BadInput, match="no column 'at_us'"):
        precede.spark.audit(
            session.createDataFrame([("a",)], "node string").selectExpr("node", "node kind", "node message")
        )
