"""Reasons for what is not reproduced: each is about claims that exist, and what shows it exists too."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path

import pytest

from precede.eventlog.sinks import TableSink
from precede.experiments.reproduction.claims import read_reasons
from precede.experiments.reproduction.units import PAPERS, find_paper
from precede.experiments.runs import Run, carry_out
from precede.measures.events import measure_events
from precede.protocols.vcube_topology import children

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("key", PAPERS)
def test_each_reason_names_claims_and_what_shows_it(key):
    paper = find_paper(key)
    claims = paper.claims(ROOT / "papers" / key).claim
    experiments = {unit.experiment for unit in paper.units(ROOT / "papers" / key, "paper", ())}
    exhibits = experiments | {claim.exhibit for claim in claims}
    for reason in read_reasons(ROOT / "papers" / key / "reasons.toml"):
        for pattern in reason.claims:
            assert any(fnmatchcase(claim.id, pattern) for claim in claims), pattern
        named = re.findall(rf"(?<!/){key}/([\w.-]+)", reason.shown_by)
        assert set(named) <= exhibits, reason.shown_by
        files = re.findall(r"(?:tests|scenarios|docs|papers)/[\w/.-]+\.\w+", reason.shown_by)
        assert all((ROOT / file).is_file() for file in files), reason.shown_by
        modules = re.findall(r"python -m (precede[\w.]+)", reason.shown_by)
        assert all(find_spec(module) for module in modules)
        assert named or files or modules or "interval" in reason.shown_by, reason.shown_by


def test_the_mean_number_of_hops_alone_grows_2_92_times_from_8_to_1024_nodes():
    def hops(size):
        total, at = 0, [(0, 0)]
        for node, depth in at:
            total += depth
            at += [(child, depth + 1) for child in children(node, 0, (1 << size) - 1)]
        assert len(at) == size
        return total / (size - 1)

    assert hops(8) == pytest.approx(12 / 7)
    assert hops(1024) / hops(8) == pytest.approx(2.92, abs=0.01)


def test_repetitions_and_buffers_of_was_follow_from_intervals_that_are_not_published():
    usual, hasty, prompt = _walks(), _walks(retransmit="200ms"), _walks(ack_interval="100ms")
    assert hasty["repeated"] > 50 * usual["repeated"]
    assert prompt["kept"] < usual["kept"] / 4


def _walks(**options):
    """Thirty hosts in three cells: frames beyond one a cell and message; what a station keeps on average."""
    run = Run(
        world={"kind": "cellular", "stations": 3, "hosts": 30, "bitrate": 20e6, "duration": "8s"},
        workload={"every": "exponential(1.5)", "first": "exponential(1.5)", "until": "6s"},
        protocol="was",
        options={"stations": 3, **options},
        end="8s",
        gauges="250ms",
        log="messages",
    )
    sink = TableSink()
    carry_out(run, sink)
    found = measure_events(sink.events().to_batches())
    kept = [
        row["value"]
        for row in sink.gauges().to_pylist()
        if row["name"] == "sbuffer" and row["node"].startswith("s") and 1_000_000 < row["at_us"] <= 6_000_000
    ]
    return {"repeated": found["packets_data"] - 3 * found["broadcasts"], "kept": sum(kept) / len(kept)}
