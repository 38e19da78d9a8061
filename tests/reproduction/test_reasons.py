"""Reasons for what is not reproduced: each missed claim has one, and what it rests on exists and holds."""

from __future__ import annotations

import ast
import dataclasses
import re
import shutil
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest

from precede.cli import main
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.experiments.stories.player import play
from precede.experiments.stories.text import read_text
from precede.measures.events import measure_events
from precede.reproduction.claims import Claims, read_claims, read_reasons
from precede.reproduction.judging import Sample, judge
from precede.reproduction.results import changed_claims, judge_stored, read_results
from precede.reproduction.units import PAPERS, find_paper
from precede.traces import city_bus, pedestrians
from precede.traces.mobility import statistics
from tests.protocols.vcube2018.literal import children

ROOT = Path(__file__).parents[2]
MEASURED = [key for key in PAPERS if (ROOT / "papers" / key / "results.json").is_file()]
SECOND = 1_000_000


class _Anything(dict):
    """A run that has every measure."""

    def __contains__(self, key):
        return True

    def __missing__(self, key):
        return 1.5


@pytest.mark.parametrize("key", PAPERS)
def test_each_reason_names_claims_and_its_support(key):
    claims = read_claims(ROOT / "papers" / key / "claims.toml").claim
    reasons = read_reasons(ROOT / "papers" / key / "reasons.toml")
    defined = [one.id for one in reasons.evidence]
    assert len(set(defined)) == len(defined)
    for reason in reasons.reason:
        for pattern in reason.claims:
            assert any(fnmatchcase(claim.id, pattern) for claim in claims), pattern
        assert reason.why.strip()
        assert reason.supported_by, reason.claims
        for name in reason.supported_by:
            assert name in defined or _is_test(name), f"{key}: no evidence and no test {name!r}"
        assert set(reason.undecided) <= set(defined)
    used = {name for reason in reasons.reason for name in (*reason.supported_by, *reason.undecided)}
    assert set(defined) <= used, "evidence for nothing"


def _is_test(name):
    file, _, function = name.partition("::")
    if not (file.startswith("tests/") and (ROOT / file).is_file()):
        return False
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == function for node in tree.body)


@pytest.mark.parametrize("key", PAPERS)
def test_each_piece_of_evidence_can_be_judged(key):
    paper, evidence = find_paper(key), read_reasons(ROOT / "papers" / key / "reasons.toml").evidence
    for scale in ("quick", "paper"):
        units = paper.units(ROOT / "papers" / key, scale)
        samples = [Sample(unit.experiment, unit.varied, unit.replicate, _Anything()) for unit in units]
        chosen = tuple(one for one in evidence if scale == "paper" or one.scale == "quick")
        for result in judge(Claims(key, chosen), samples, scale):
            assert result.status != "paper scale only", result.claim.id


@pytest.mark.parametrize("key", MEASURED)
def test_every_claim_that_was_missed_has_a_reason(key):
    folder = ROOT / "papers" / key
    reasons = read_reasons(folder / "reasons.toml").reason
    judged = judge_stored(read_claims(folder / "claims.toml"), read_results(folder), reasons)
    missed = [one for one in judged if one.status == "not reproduced"]
    assert len([one for one in judged if one.status != "paper scale only"]) > 10
    assert not [(one.claim.id, one.reading) for one in missed if not one.reason]


@pytest.mark.parametrize("key", MEASURED)
def test_the_page_says_what_would_decide_each_open_claim(key):
    folder = ROOT / "papers" / key
    judged = judge_stored(read_claims(folder / "claims.toml"), read_results(folder))
    undecided = {(one.claim.id, one.reading) for one in judged if one.status == "open"}
    page = (ROOT / "docs" / "papers" / f"{key}.md").read_text(encoding="utf-8")
    section = page.partition("### Open, and what would decide it")[2].partition("</details>")[0]
    listed = re.findall(r"^\| `([\w.-]+)`(?: \((\w+)\))? \|", section, re.MULTILINE)
    assert undecided
    assert set(listed) == undecided


@pytest.mark.parametrize("key", MEASURED)
def test_the_evidence_of_each_reason_is_shown(key):
    """All that a reason rests on is shown by the stored results; what they leave open is called undecided."""
    folder = ROOT / "papers" / key
    reasons = read_reasons(folder / "reasons.toml")
    judged = judge_stored(Claims(key, reasons.evidence), read_results(folder))
    supports = {name for reason in reasons.reason for name in reason.supported_by}
    undecided = {name for reason in reasons.reason for name in reason.undecided}
    assert not supports & undecided
    assert {one.claim.id for one in judged if one.status != "reproduced"} == undecided
    assert {one.claim.id for one in judged if one.status == "open"} == undecided


@pytest.mark.parametrize("key", MEASURED)
def test_no_judged_claim_has_changed_since_it_was_judged(key):
    folder = ROOT / "papers" / key
    assert changed_claims(read_results(folder), read_claims(folder / "claims.toml")) == []


def test_all_pages_are_what_the_results_files_give(tmp_path):
    pages = tmp_path / "papers"
    shutil.copytree(ROOT / "docs" / "papers", pages, ignore=shutil.ignore_patterns("*.svg"))
    assert main(["reproduce", "all", "--papers", str(ROOT / "papers"), "--pages", str(pages)]) == 0
    for page in sorted(pages.iterdir()):
        written, kept = page.read_text(), (ROOT / "docs" / "papers" / page.name).read_text()
        assert written == kept, f"{page.name}: run precede reproduce all --pages docs/papers"


def test_contacts_sampled_in_steps_are_no_shorter_than_a_step():
    buses = city_bus.city_bus(1).contacts(city_bus.RANGE_M)
    walkers = pedestrians.pedestrians(1).contacts(pedestrians.RANGE_M)
    for contacts, step in ((buses, SECOND), (walkers, 600_000)):
        looks = -(-contacts.end_us // step) + (-contacts.start_us // step)
        assert (contacts.end_us - contacts.start_us).min() < step
        assert (looks[looks > 0] * step).min() == step


def test_deviations_and_extremes_of_contacts_differ_between_towns():
    towns = [statistics(city_bus.city_bus(1, layout).contacts(city_bus.RANGE_M)) for layout in city_bus.LAYOUTS]
    deviations, longest = [town.contact.deviation for town in towns], [town.contact.most for town in towns]
    assert min(deviations) < 65 < max(deviations)
    assert min(longest) < 249 < max(longest)
    days = [city_bus.city_bus(seed, "b").presence() for seed in range(1, 21)]
    shortest = [(day.leave_us - day.enter_us).min() / SECOND for day in days]
    assert min(shortest) < 1560 < max(shortest)


def test_the_longest_contacts_are_of_two_lines_that_share_a_street():
    """Contacts of one line's buses are the control, and the town whose lines only cross."""
    for layout in city_bus.LAYOUTS:
        contacts = city_bus.city_bus(1, layout).contacts(city_bus.RANGE_M)
        lines = np.array([name.split("-")[0] for name in contacts.names])
        seconds = (contacts.end_us - contacts.start_us) / SECOND
        of_one_line = lines[contacts.a] == lines[contacts.b]
        assert seconds[of_one_line].max() < 275
        assert (seconds[~of_one_line].max() > 360) == (layout != "c")


def test_the_deviation_of_pedestrians_contacts_follows_from_the_distance_between_corners(monkeypatch):
    corners = (0.0, 110.0, 220.0, 330.0)
    closer = dataclasses.replace(pedestrians.LAYOUTS["a"], xs=corners, ys=corners)
    monkeypatch.setitem(pedestrians.LAYOUTS, "closer", closer)
    result = statistics(pedestrians.pedestrians(1, "closer", rate=0.0073).contacts(pedestrians.RANGE_M))
    usual = statistics(pedestrians.pedestrians(1, "a").contacts(pedestrians.RANGE_M))
    assert result.nodes == pytest.approx(2092, rel=0.05)
    assert result.contact.mean == pytest.approx(usual.contact.mean, rel=0.05)
    assert result.contact.deviation == pytest.approx(39, abs=3.9)
    assert usual.contact.deviation > 42.9


def test_the_longest_contact_of_pedestrians_differs_from_day_to_day():
    days = [pedestrians.pedestrians(seed, layout) for seed in (1, 2) for layout in ("a", "b", "c")]
    longest = [statistics(day.contacts(pedestrians.RANGE_M)).contact.most for day in days]
    assert min(longest) < 492 < max(longest)


def test_the_shortest_stay_of_pedestrians_is_one_that_the_end_of_the_day_cuts_off():
    shortest = {}
    for layout in pedestrians.LAYOUTS:
        presence = pedestrians.pedestrians(1, layout).presence()
        stays = (presence.leave_us - presence.enter_us) / SECOND
        left_before = presence.leave_us < 5 * 3600 * SECOND
        shortest[layout] = stays[left_before].min(), stays[~left_before].min()
    assert all(shortest[layout][0] == pytest.approx(7.8, abs=0.78) for layout in "abc")
    assert sum(cut_off < whole for whole, cut_off in shortest.values()) >= 6


def test_the_published_broadcasts_and_the_published_mean_stay_exclude_each_other():
    """Of a stay of T seconds come floor((T - 20) / 60) + 1 broadcasts, which is more than (T - 20) / 60."""
    nodes, broadcasts, mean_stay = 2092, 10_557, 325
    assert nodes * (mean_stay - 20) / 60 > broadcasts
    stays = np.random.default_rng(1).gamma((325 / 249) ** 2, 249**2 / 325, nodes)
    made = np.maximum(np.floor((stays * mean_stay / stays.mean() - 20) / 60) + 1, 0).sum()
    assert made > 1.05 * broadcasts


@pytest.mark.parametrize(
    ("lifetime", "receptions", "deviation", "longest"), [("20min", 50_365, 6, 799), ("10min", 21_571, 2, 219)]
)
def test_the_published_deviations_of_waits_are_made_by_a_few_messages(lifetime, receptions, deviation, longest):
    """As many waits as long as the longest make the whole deviation; all others may be nothing."""
    assert receptions * deviation**2 / longest**2 < 4


@pytest.mark.parametrize(("lifetime", "published_s"), [(None, 2353), ("120min", 2093), ("60min", 2360)])
def test_the_published_longest_waits_lie_among_those_of_single_days(lifetime, published_s):
    varied = {} if lifetime is None else {"lifetime": lifetime}
    experiment = "city-bus-causal" if lifetime is None else "city-bus"
    (longest,) = (
        point.measures["wait_s_max"]
        for point in read_results(ROOT / "papers" / "guidec2021").points
        if (point.scale, point.experiment, point.varied) == ("paper", experiment, varied)
    )
    assert len(longest) == 15
    assert min(longest) < published_s < max(longest)


def test_undelivered_messages_wait_when_their_holder_leaves():
    """Of pedestrians, who come and go; buses, which stay all day, are the control."""
    missing = {}
    for point in read_results(ROOT / "papers" / "guidec2021").points:
        if point.scale == "paper" and point.varied == {"lifetime": "20min"}:
            columns = ("broadcasts", "receptions", "deliveries", "expired")
            sums = {name: sum(point.measures[name]) for name in columns}
            sums["undelivered"] = sums["broadcasts"] + sums["receptions"] - sums["deliveries"]
            missing[point.experiment] = sums
    walkers, buses = missing["pedestrians"], missing["city-bus"]
    assert walkers["undelivered"] > 0.04 * walkers["receptions"]
    assert walkers["expired"] < 0.02 * walkers["undelivered"]
    assert buses["undelivered"] < 0.0005 * buses["receptions"]


@pytest.mark.parametrize("milliseconds", [4, 100])
def test_the_shortest_transit_is_one_transfer(milliseconds):
    run = Run(
        world={
            "kind": "contacts",
            "nodes": 3,
            "meetings": [["0", "1", "1s", "20s"], ["1", "2", "5s", "30s"]],
            "overhead": f"{milliseconds}ms",
        },
        workload={"every": "constant(2)", "first": "constant(2)", "until": "20s"},
        protocol="delta_causal",
        options={"lifetime": "1min"},
        end="40s",
        log="messages",
    )
    sink = TableSink()
    carry_out(run, sink)
    assert measure_events(sink.events().to_batches())["transit_us_min"] == milliseconds * 1000


def test_random_transfer_times_bring_the_shortest_transit_near_zero_and_leave_the_mean():
    """Two nodes that meet for an hour, 400 messages each: transfers of 0.1 s, fixed and exponential."""
    transits = {}
    for name, air in (("fixed", {"overhead": "100ms"}), ("drawn", {"jitter": "exponential(0.1)"})):
        run = Run(
            world={"kind": "contacts", "nodes": 2, "meetings": [["0", "1", "0s", "1h"]], **air},
            workload={"every": "constant(9)", "first": "constant(2)", "until": "59min"},
            protocol="delta_causal",
            options={"lifetime": "1min"},
            end="2h",
            log="messages",
        )
        sink = TableSink()
        carry_out(run, sink)
        transits[name] = measure_events(sink.events().to_batches())
    fixed, drawn = transits["fixed"], transits["drawn"]
    assert fixed["transit_us_min"] == fixed["transit_us_max"] == 100_000
    assert drawn["transit_us_min"] < 10_000
    assert abs(drawn["transit_us_mean"] - 100_000) < 20_000
    assert fixed["deliveries"] == drawn["deliveries"]


def test_eight_nodes_aggregate_in_the_papers_own_figure_5():
    page = read_text(ROOT / "scenarios" / "vcube2018" / "figure-5.txt")
    shown_lines = [line for step in play(page) for line in step]
    assert "4 sends m0 m2 to 5 in one packet" in shown_lines


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


def test_the_published_last_failure_of_was_lies_among_single_runs_that_repeat_sooner():
    """Figure 10 is one run: 3 degraded stations, 7 s. Repetition after a second, as ours, is the control.

    With each seed that both have, the host needs longer when stations repeat sooner.
    """
    runs = {
        point.varied.get("retransmit"): point.measures
        for point in read_results(ROOT / "papers" / "was2021").points
        if point.scale == "paper" and point.experiment in ("failures", "repetition-in-failures")
    }
    sooner, usual = runs["250ms"], runs[None]
    assert len(sooner["recovery_s_last"]) == 15
    assert min(sooner["stations_degraded_last"]) < 3 < max(sooner["stations_degraded_last"])
    assert min(sooner["recovery_s_last"]) < 7 < max(sooner["recovery_s_last"])
    assert max(usual["stations_degraded_last"]) == 0
    assert max(usual["recovery_s_last"]) < 1
    pairs = list(zip(sooner["recovery_s_last"], usual["recovery_s_last"], strict=False))  # seeds from 1 on
    assert len(pairs) == 9
    assert all(longer > shorter for longer, shorter in pairs)


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
    result = measure_events(sink.events().to_batches())
    kept = [
        row["value"]
        for row in sink.gauges().to_pylist()
        if row["name"] == "sbuffer" and row["node"].startswith("s") and 1_000_000 < row["at_us"] <= 6_000_000
    ]
    return {"repeated": result["packets_data"] - 3 * result["broadcasts"], "kept": sum(kept) / len(kept)}
