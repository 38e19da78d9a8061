"""`precede simulate`, `precede swarm`, `precede conform`: what a person sees, right and wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from precede.cli import main

SCENARIO = """
[world]
kind = "point_to_point"
nodes = 3
delay = "10ms"

[workload]
messages = "messages.csv"

[run]
protocol = "fifo"
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "messages.csv").write_text("id,src,time\nm1,0,1.5\nm2,1,2\n")
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    return path


def test_a_run_writes_what_is_needed_to_run_it_again(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", str(scenario), "--seed", "9", "--out", str(tmp_path / "o"), "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert (measured["broadcasts"], measured["receptions"], measured["deliveries"]) == (2, 4, 6)
    assert (measured["own_deliveries"], measured["transit_us_mean"], measured["wait_us_mean"]) == (2, 10_000, 0)
    described = json.loads((tmp_path / "o" / "run.json").read_text())
    assert (described["order"], described["run"]["seed"]) == ("fifo", 9)
    born = [
        row
        for row in pq.read_table(tmp_path / "o" / "events.parquet").to_pylist()
        if row["kind"] == "broadcast"
    ]
    assert [(row["node"], row["at_us"]) for row in born] == [("0", 1_500_000), ("1", 2_000_000)]
    assert main(["verify", str(tmp_path / "o")]) == 0


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (("nodes = 3", "nodes = 0"), "small.toml:4: nodes: 0 is not between 1 and 1000000"),
        (("nodes = 3", "nods = 3"), "small.toml:4: nods: unknown key in [world] (did you mean 'nodes'?)"),
        (('delay = "10ms"', 'delay = "often"'), "small.toml:5: delay: not a distribution"),
        (('"point_to_point"', '"carrier"'), "unknown world kind 'carrier'"),
        (('"fifo"', '"fifi"'), "unknown protocol 'fifi' (did you mean 'fifo'?)"),
        (("messages.csv", "letters.csv"), "no such file"),
        (("[workload]", "[work"), "not TOML"),
        (("[run]", "[fun]"), "unknown table [fun]"),
    ],
)
def test_a_mistake_in_the_file_is_one_line_with_its_place(
    change: tuple[str, str], cause: str, scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario.write_text(SCENARIO.replace(*change))
    assert main(["simulate", str(scenario), "--out", str(tmp_path / "o")]) == 2
    said = capsys.readouterr().err
    assert cause in said
    assert said.count("\n") == 1
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("rows", "cause"),
    [
        ("id,src,time\nm1,9,1\n", "messages.csv:2: src: no node '9'"),
        ("id,src,time\nm1,0,noon\n", "messages.csv:2: time: not a number: 'noon'"),
        ("id,src\nm1,0\n", "messages.csv:1: no column time"),
        ("id,src,time,dst\nm1,0,1,7\n", "messages.csv:2: dst: no node '7'"),
    ],
)
def test_a_mistake_in_the_messages_is_told_with_its_line(
    rows: str, cause: str, scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "messages.csv").write_text(rows)
    assert main(["simulate", str(scenario), "--out", str(tmp_path / "o")]) == 2
    assert cause in capsys.readouterr().err


def test_the_swarm_ends_with_its_counts(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["swarm", "--protocol", "fifo", "--worlds", "3", "--seed", "11", "--jobs", "1"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "swarm: seed=11 worlds=3 protocols=fifo"
    assert lines[-1] == "worlds=3 violations=0 duplicates=0 undelivered=0 leaks=0"


def test_conform_finds_a_protocol_that_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hasty.py").write_text(
        "from precede.protocols.layered.unordered import ENTRY as GOOD\n"
        "from msgspec.structs import replace\n"
        "ENTRY = replace(GOOD, name='hasty', order='causal')\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["conform", "hasty:ENTRY", "--worlds", "5"]) == 1
    told = capsys.readouterr().out
    assert "breaks     an answer that overtakes its question: C delivered answer, question" in told
    assert main(["conform", "nowhere:ENTRY"]) == 2
    assert "No module named 'nowhere'" in capsys.readouterr().err
