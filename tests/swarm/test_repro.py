"""The smallest world in which a rule misorders, its files, and the test that it gives to an app."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from precede.cli import main
from precede.core.errors import BadInput
from precede.core.instants import SECOND
from precede.experiments.swarm.repro import find_repro
from precede.experiments.swarm.repro_case import case_of


def test_timestamps_need_two_people_and_two_messages() -> None:
    repro = find_repro("timestamp", 120 * SECOND)
    assert repro is not None
    assert repro.misorder == "answer_above"
    assert repro.rule.run.world["nodes"] == 2
    assert len(repro.rule.run.workload["script"]) == 2
    assert repro.rule.verdict.counts["answer_above"] >= 1
    assert repro.ordered.verdict.verdict == "holds"
    assert repro.ordered.verdict.deliveries_checked == repro.rule.verdict.deliveries_checked
    case = case_of(repro)
    question, answer = case["question_above_answer"][0]
    assert case["shown_by_the_rule"].index(answer) < case["shown_by_the_rule"].index(question)
    assert case["shown_by_delta_causal"].index(question) < case["shown_by_delta_causal"].index(answer)


@pytest.mark.parametrize(("rule", "skew"), [("timestamp", 0), ("lamport", 120 * SECOND), ("sds", 120 * SECOND)])
def test_no_answer_stands_above_where_clocks_agree_or_are_logical(rule: str, skew: int) -> None:
    assert find_repro(rule, skew, worlds=4, misorders=("answer_above",)) is None


@pytest.mark.parametrize(("rule", "seed", "nodes"), [("arrival", 0, 3), ("lamport", 0, 3), ("sds", 236, 3)])
def test_rules_that_misorder_in_time(rule: str, seed: int, nodes: int) -> None:
    repro = find_repro(rule, 0, seed=seed, worlds=1 if rule == "sds" else 20, misorders=("answer_first",))
    assert repro is not None
    assert repro.rule.run.world["nodes"] <= nodes
    assert repro.ordered.verdict.verdict == "holds"


class App:
    """An app for the test of a case: shows messages by the sender's clock, or questions before answers."""

    def __init__(self, by_clock: bool, pairs: list[list[str]]) -> None:
        self.by_clock, self.pairs = by_clock, pairs
        self.messages: list[tuple[float, str]] = []
        self.clock = 0.0

    def set_clock(self, seconds: float) -> None:
        self.clock = seconds

    def receive(self, id: str, author: str, clock: float) -> None:
        self.messages.append((min(clock, self.clock), id))

    def screen(self) -> list[str]:
        shown = [id for _, id in sorted(self.messages)]
        if self.by_clock:
            return shown
        for question, answer in self.pairs:
            if answer in shown:
                shown.remove(answer)
                shown += [answer] if question in shown else []
        return shown


def test_the_test_of_a_case_fails_for_an_app_that_sorts_by_clock_and_passes_for_one_that_does_not(
    tmp_path: Path,
) -> None:
    assert main(["repro", "--rule", "timestamp", "--skew", "120s", "--out", str(tmp_path)]) == 0
    case = json.loads((tmp_path / "test.json").read_text())
    assert sorted(case["tests"]) == ["kotlin", "python", "swift"]
    space: dict[str, Any] = {}
    exec("\n".join(case["tests"]["python"]), space)
    test = space["test_no_answer_before_or_above_its_question"]
    test(App(False, case["question_above_answer"]), case)
    with pytest.raises(AssertionError):
        test(App(True, case["question_above_answer"]), case)


def test_the_files_show_the_misorder_and_are_the_same_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["log-delta_causal.csv", "log.csv", "picture.svg", "test.json", "world.toml"]
    command = ["repro", "--rule", "timestamp", "--skew", "2min", "--out"]
    assert [main([*command, str(tmp_path / folder)]) for folder in "ab"] == [0, 0]
    assert sorted(file.name for file in (tmp_path / "a").iterdir()) == names
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "a" / "log.csv"), "--order", "display"]) == 1
    assert "shows" in capsys.readouterr().out
    assert main(["verify", str(tmp_path / "a" / "log-delta_causal.csv"), "--order", "display"]) == 0
    again = tmp_path / "again"
    assert main(["simulate", str(tmp_path / "a" / "world.toml"), "--out", str(again)]) == 0
    assert main(["verify", str(again), "--order", "display"]) == 1
    picture = ElementTree.parse(tmp_path / "a" / "picture.svg").getroot()
    red = [element.text for element in picture.iter() if element.get("class") == "badf"]
    assert len(red) == 2  # the question and the answer, on one screen of one panel


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--rule", "timestmap"], "unknown protocol 'timestmap'"),
        (["--rule", "vcube"], "no ordering that runs over contacts"),
        (["--rule", "timestamp", "--skew", "soon"], "not a duration"),
        (["--rule", "timestamp", "--skew", "25h"], "expected 0s to 24h"),
        (["--rule", "timestamp", "--kind", "below"], "'below' is none of above, first, any"),
    ],
)
def test_bad_input_is_one_line_with_a_code(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["repro", *words]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert error.rstrip().endswith("]")


def test_a_protocol_that_keeps_the_order_misorders_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repro", "--rule", "causal_barrier", "--worlds", "3"]) == 1
    assert capsys.readouterr().out == "causal_barrier: no world misorders\n"
    with pytest.raises(BadInput):
        find_repro("prs", 0)
