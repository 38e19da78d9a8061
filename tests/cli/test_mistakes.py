"""Mistakes at the command line: one line that says what is wrong, exit code 2, no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from precede.cli import main
from precede.experiments.run import carry_out_into
from precede.experiments.scenario import read_scenario


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file in it where a folder would be wanted, a key file, and sweeps."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "contacts").mkdir()
    (tmp_path / "lake" / "contacts" / "cut.parquet").write_text("PAR1 and no more", encoding="utf-8")
    assert main(["keys", "make", "k"]) == 0
    sweep = "[sweep]\nscenario = 'small-office'\nprotocol = ['fifo']\n[grid.fifo]\n"
    (tmp_path / "misspelt.toml").write_text(sweep + "rtoo = ['1s']\n", encoding="utf-8")
    (tmp_path / "unread.toml").write_text(sweep + "rto = ['1 parsec']\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("simulate small-office --set until=1s --out file", "precede simulate: file: is a file, not a folder"),
        ("simulate small-office --set until=1s --out file/below", "file/below: Not a directory"),
        ("report --out file", "precede report: file: is a file, not a folder"),
        ("simulate cut --set colour=red", "--set colour: not a scenario key, and no protocol is named"),
        ("simulate cut --protocol fifo", "lake/contacts/cut.parquet: not a readable Parquet file"),
        ("simulate pedestrians --set rate=1e9", "rate: more than 100,000 pedestrians"),
        ("emulate small-office --out file", "precede emulate: file: Not a directory"),
        ("emulate small-office --speed nan", "--speed nan: expected more than 0"),
        ("emulate small-office --segment 0", "--segment 0.0: expected more than 0 seconds"),
        ("emulate small-office --processes 0", "Invalid value for '--processes'"),
        ("swarm --jobs -3", "Invalid value for '--jobs'"),
        ("keys rotate mistyped", "mistyped: No such file or directory"),
        ("node ana --keys k --open", "--keys and --open contradict each other"),
        ("station north --keys k --open", "--keys and --open contradict each other"),
        (
            "node ana --keys k --peer no-such-host.invalid:5000",
            "--peer no-such-host.invalid:5000: no such host",
        ),
        ("node ana --keys k --status -1", "Invalid value for '--status'"),
        ("node ana --keys k --log file", "file: no folder for an event log"),
        ("sweep misspelt.toml", "misspelt.toml: small-office with fifo: --set rtoo: neither an option"),
        ("sweep unread.toml", "unread.toml: small-office with fifo: option 'rto': not a duration"),
    ],
)
def test_a_mistake_is_one_line(here: Path, capsys: pytest.CaptureFixture[str], line: str, said: str) -> None:
    capsys.readouterr()
    assert main(line.split()) == 2
    error = capsys.readouterr().err.splitlines()
    assert said in error[-1]
    assert not any("Traceback" in each for each in error)
    assert not (here / "mistyped").exists()


def test_a_run_that_takes_the_place_of_another_never_stands_beside_its_description(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the rows and run.json, a folder has new rows and no description: not an old one."""
    settings = {"until": "1s", "crashes": []}
    carry_out_into(read_scenario("small-office", "vector_clock", 1, settings), tmp_path)
    assert (tmp_path / "run.json").exists()

    def killed(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("precede.experiments.run.write_run_file", killed)
    with pytest.raises(KeyboardInterrupt):
        carry_out_into(read_scenario("small-office", "fifo", 2, settings), tmp_path)
    assert (tmp_path / "events.parquet").exists()
    assert not (tmp_path / "run.json").exists()


OWN = """
from precede.core.effects import SetTimer
from precede.core.node import Node

class NoContext(Node):
    def broadcast(self, payload, now, to=None, lifetime=None):
        return []

    def receive(self, packet, sender, now, over):
        return []

class Raises(NoContext):
    def __init__(self, context):
        pass

    def broadcast(self, payload, now, to=None, lifetime=None):
        raise KeyError("no such peer")

class Hangs(Raises):
    def broadcast(self, payload, now, to=None, lifetime=None):
        return [SetTimer("again", now)]

    def timer(self, key, now):
        return [SetTimer("again", now)]
"""


def test_a_protocol_of_ones_own_that_cannot_be_tried_is_told_where_it_fails(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "own_protocol_a.py").write_text(OWN, encoding="utf-8")
    (here / "own_protocol_b.py").write_text("1 / 0\n", encoding="utf-8")
    assert main(["conform", "own_protocol_a:NoContext", "--worlds", "1"]) == 2
    assert "NoContext(context) cannot be built: TypeError" in capsys.readouterr().err
    assert main(["conform", "own_protocol_b:Node"]) == 2
    assert (
        "cannot be imported: ZeroDivisionError: division by zero (own_protocol_b.py:1)"
        in capsys.readouterr().err
    )
    assert main(["conform", "own_protocol_a:Raises", "--worlds", "1"]) == 1
    assert "raised KeyError: 'no such peer' (own_protocol_a.py:17)" in capsys.readouterr().out
    assert main(["conform", "own_protocol_a:Hangs", "--worlds", "1"]) == 1
    said = capsys.readouterr().out
    assert "1,000,000 timers that were due at once (the last one: 'again'): time stands still" in said


def test_a_bundle_that_failed_does_not_stand_in_the_way_of_the_next(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    carry_out_into(read_scenario("small-office", "fifo", 1, {"until": "1s", "crashes": []}), here / "run")
    rows = (here / "run" / "events.parquet").read_bytes()
    (here / "run" / "events.parquet").write_bytes(rows[:100])
    assert main(["bundle", "run"]) == 2
    assert "events.parquet: not a readable Parquet file" in capsys.readouterr().err
    (here / "run" / "events.parquet").write_bytes(rows)
    assert main(["bundle", "run"]) == 0
    assert [path.name for path in (here / "bundle").iterdir()] == ["run"]
