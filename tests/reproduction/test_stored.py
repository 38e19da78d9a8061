"""Stored results: today's code gives the same measures, and the artifact's page states what they cost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from precede.reproduction.checking import choose, rerun
from precede.reproduction.results import read_results
from precede.reproduction.units import PAPERS, find_paper

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("key", PAPERS)
def test_the_cheapest_run_of_each_paper_gives_its_stored_measures_again(key):
    folder = ROOT / "papers" / key
    cheapest, *_ = choose(folder, read_results(folder), 0.0)  # several runs can take 0.00 s
    again = rerun(cheapest)
    assert again.compared >= 3
    assert not again.differing
    assert again.violations == 0


def test_the_page_of_the_artifact_states_the_cost_of_the_stored_results():
    page = (ROOT / "docs" / "artifact.md").read_text(encoding="utf-8")
    table = page.partition("| paper | runs stored |")[2].partition("\n\n")[0]
    stated = dict(re.findall(r"^\| ([a-z]+\d{4}|all five) \| ([\d,]+ \| [\d,.]+) \|", table, re.MULTILINE))
    runs, seconds = 0, 0.0
    for key in PAPERS:
        points = read_results(ROOT / "papers" / key).points
        own_runs, own_seconds = sum(len(p.replicates) for p in points), sum(sum(p.cpu_s) for p in points)
        assert stated[key] == f"{own_runs:,} | {own_seconds / 60:.1f}"
        runs, seconds = runs + own_runs, seconds + own_seconds
    assert stated["all five"] == f"{runs:,} | {seconds / 60:.1f}"


def test_papers_that_the_page_calls_finished_have_all_experiments():
    page = (ROOT / "docs" / "artifact.md").read_text(encoding="utf-8")
    finished = re.findall(r"^\| ([a-z]+\d{4}) \| [\d,]+ \| [\d,.]+ \| all(?:;.*)? \|$", page, re.MULTILINE)
    assert len(finished) >= 4
    for key in finished:
        folder = ROOT / "papers" / key
        declared = {unit.experiment for unit in find_paper(key).units(folder, "paper")}
        stored = {point.experiment for point in read_results(folder).points if point.scale == "paper"}
        assert declared == stored, key
