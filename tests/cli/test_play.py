"""`precede play` on the command line: it starts and ends, replays and exports, and refuses in one line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from precede.cli import main
from precede.play.record import Input
from precede.play.saving import save
from precede.play.session import Session
from tests.play.worlds import run_of


def test_it_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "precede", "play", "small-office", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=os.environ.copy())
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(r"Open (http://127\.0\.0\.1:\d+/[\w-]+/)\n", line)
    assert found, line
    with urlopen(found[1], timeout=30) as page:
        assert b"<title>Play" in page.read()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    process.stdout.close()
    assert list(tmp_path.iterdir()) == []


def test_a_saved_world_is_replayed_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = Session(run_of(tmp_path, "points"))
    session.advance_to(3_000_000)
    session.apply(Input(at_us=session.now, action="say", node="1", text="hello"))
    session.advance_to(30_000_000)
    folder = save(session, tmp_path / "world").folder
    out = str(tmp_path / "out")
    assert main(["play", "--replay", str(folder), "--out", out]) == 0
    printed = capsys.readouterr().out
    assert "unordered  the same bytes; causal order: violated" in printed
    assert "ordered    the same bytes; causal order: holds" in printed
    assert main(["play", "--replay", str(folder), "--out", out, "--json"]) == 0
    printed_json = json.loads(capsys.readouterr().out)
    assert printed_json["ordered"]["same_bytes"] is True
    assert printed_json["unordered"]["verdict"] == "violated"
    record = folder / "inputs.json"
    record.write_text(record.read_text().replace('"node":"1"', '"node":"2"'))
    assert main(["play", "--replay", str(folder), "--out", out]) == 1
    assert "OTHER BYTES" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--replay", "nowhere"], r"nowhere: not a saved world of `precede play` .* \[E023\]"),
        (["--lesson", "juggling"], r"no lesson 'juggling' \(there are fifo, causal.*\[E023\]"),
        (["small-office", "--lesson", "fifo"], r"a scenario or a lesson, not both \[E023\]"),
        (["--seed", "3"], r"name one, such as small-office \[E023\]"),
        (["small-offce"], r"did you mean 'small-office'\?\).* \[E013\]"),
        (["small-office", "--port", "70000"], r"port 70000: .*\[E023\]"),
        (["a-story.txt"], r"a-story.txt: a scenario text is played by precede simulate.* \[E023\]"),
        (["pedestrians"], r"nodes; play shows at most 500 \[E023\]"),
        (["small-office", "--replay", "x"], r"name no scenario and no lesson \[E023\]"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str],
    cause: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["play", "--no-browser", *arguments]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert re.search(cause, line), line
