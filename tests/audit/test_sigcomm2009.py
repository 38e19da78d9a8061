"""The MobiClique log: package, witness and a plain program count the same; the columns mean what we say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from precede import cli
from precede.audit.bounds import ORDERS, bound
from precede.audit.mobiclique import other_readings, read_mobiclique
from precede.audit.study import MARGINS_US, audit
from precede.audit.witness_orders import judge
from tests.audit.plain_counts import Log, count
from tests.traces.real_data import real


@pytest.fixture(scope="module")
def folder() -> Path:
    return real("sigcomm2009_mobiclique")


def test_package_and_plain_program_count_the_same(folder: Path) -> None:
    log, plain = read_mobiclique(folder), Log(folder)
    copies = log.copies(missing=True)
    assert len(copies.node) == sum(map(len, plain.seen.values())) == 1284
    for order in ORDERS:
        for margin in MARGINS_US:
            bounds = bound(copies, order, margin)
            assert bounds.at_least == count(plain, order, margin // 1_000_000, True)
            assert bounds.at_most == count(plain, order, margin // 1_000_000, False)
    for group in log.groups:
        name = group.removeprefix("group ")
        bounds = bound(log.copies(group=group, missing=True), "causal", 0)
        assert (bounds.at_least, bounds.at_most) == (
            count(plain, "causal", 0, True, name),
            count(plain, "causal", 0, False, name),
        )


def test_the_witness_counts_the_same(folder: Path) -> None:
    log = read_mobiclique(folder)
    copies = log.copies(missing=True)
    for order in ORDERS:
        for margin in MARGINS_US:
            kindest = judge(copies, order, kindest=True, margin_us=margin)
            assert kindest.violations == bound(copies, order, margin).at_least
    copies = log.copies()
    for order in ORDERS:
        assert judge(copies, order, kindest=False).violations == bound(copies, order, 0).at_most


def test_published_numbers(folder: Path) -> None:
    study = audit(read_mobiclique(folder), alternatives=other_readings(folder))
    fifo, causal = (study.count("all", order) for order in ORDERS)
    assert (fifo.rows.at_least, fifo.rows.at_most, fifo.rows.copies) == (229, 296, 1247)
    assert (causal.rows.at_least, causal.rows.at_most, causal.rows.copies) == (427, 533, 1247)
    assert (causal.traces.at_least, causal.traces.at_most, causal.traces.copies) == (429, 1084, 1284)
    assert study.clocks.suspects == ("12", "15", "48")
    assert len(study.assumptions) == 8


def test_what_the_columns_mean(folder: Path) -> None:
    """A relay has what it sends, and nobody receives his own message: only if column three is the receiver."""
    shown, headed = read_mobiclique(folder), read_mobiclique(folder, "headed")
    for log, own, unexplained in ((shown, 0, 28), (headed, 483, 917)):
        received = {(hop.receiver, hop.message) for hop in log.hops if hop.kind == "received" and hop.message}
        named = [hop for hop in log.hops if hop.kind == "received" and hop.message]
        sources = {hop.message: log.created[hop.message].source for hop in named if hop.message}
        assert sum(hop.receiver == sources[hop.message] for hop in named) == own
        assert (
            sum(
                hop.sender != sources[hop.message] and (hop.sender, hop.message) not in received
                for hop in named
            )
            == unexplained
        )


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["audit", str(folder), "--margins", "0s,60s", "--seeds", "0", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["messages"] == 348
    assert [(c["order"], c["margin_s"], c["at_least"]) for c in said["margins"]][:2] == [
        ("fifo", 0.0, 229),
        ("fifo", 60.0, 140),
    ]
    assert said["witness"]["causal"] == {"kindest": 427, "harshest": 533}
