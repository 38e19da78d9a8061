"""The story of one violation, and the page of an audit: true to the log, and safe with any name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from precede import cli
from precede.audit.clocks import compare_clocks
from precede.audit.event_files import read_event_files
from precede.audit.mobiclique import read_mobiclique
from precede.audit.story import tell_story
from precede.report.audit_pages import write_audit
from precede.report.writing import POLICY
from tests.audit.test_reading import CHAT, write
from tests.traces.real_data import real


def test_the_story_is_in_the_files() -> None:
    folder = real("sigcomm2009_mobiclique")
    log = read_mobiclique(folder)
    story = tell_story(log, compare_clocks(log.hops))
    assert story is not None
    messages = (folder / "messages.csv").read_text().splitlines()
    received = (folder / "reception.csv").read_text().splitlines()
    for message, author, created in (
        (story.first, story.author, story.first_created_us),
        (story.second, story.replier, story.second_created_us),
    ):
        assert f"{message};{author};{created // 1_000_000};M;1" in messages
    for message, phone, at in (
        (story.first, story.replier, story.first_at_replier_us),
        (story.second, story.receiver, story.second_at_receiver_us),
        (story.first, story.receiver, story.first_at_receiver_us),
    ):
        copies = [row.split(";") for row in received if row.startswith(f"2;{message};{phone};")]
        assert min(int(row[4]) for row in copies) == at // 1_000_000
    assert story.first_at_replier_us < story.second_created_us
    assert story.second_at_receiver_us < story.first_at_receiver_us
    assert (
        story.sentences()[2]
        == "Phone 8 received 577 first. Message 598 came 8 h 52 min later, by its own clock."
    )


def test_no_story_without_a_violation(tmp_path: Path) -> None:
    log = read_event_files([write(tmp_path, CHAT.replace("14.0", "12.9"))])
    assert tell_story(log, compare_clocks(log.hops)) is None


def test_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    text = CHAT.replace("ana", hostile).replace("room", "<b>room</b>")
    path, out = str(write(tmp_path, text)), tmp_path / "page"
    assert cli.main(["audit", path, "--seeds", "1", "--out", str(out), "--json"]) == 1
    study = json.loads(capsys.readouterr().out)
    page = (out / "index.html").read_text()
    assert POLICY in page.replace("&#39;", "'")
    assert "<img src=x" not in page
    assert "<b>room</b>" not in page
    assert "<img" not in (out / "story.svg").read_text()
    assert "<script" not in (out / "late.svg").read_text()
    for word in ("Verdicts by group", "One violation", "Replay: same links", "Every assumption", "The clocks"):
        assert word in page
    assert study["story"]["first"] == "q"
    assert not re.search(r"\sstyle=", page)
    assert write_audit(tmp_path / "page", study | {"story": None, "replays": []}, "x").exists()
    assert not (out / "story.svg").exists(), "a page without a story leaves no old drawing"
