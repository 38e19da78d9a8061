"""The front page lists who signed contradicting messages, with hostile names as text."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from precede.cli import main
from precede.eventlog.schema import EVIDENCE_FILE
from precede.runtime.evidence.files import Redacted
from precede.runtime.evidence.proofs import Equivocation
from tests.runtime.test_authorship import ROSTER
from tests.runtime.test_evidence import Reader, twins


def evidence() -> Equivocation:
    one, two, first = twins()
    reader = Reader()
    reader.read(first, one.write(2, b"yes"), two.write(2, b"no"))
    return reader.evidence("mal")


def test_the_site_says_who_told_two_stories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = msgspec.structs.replace(evidence(), author="<b>mal")
    for name, lines in (("a", [told.to_json()]), ("b", [told.to_json()]), ("c", [b'{"x":1}'])):
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / EVIDENCE_FILE).write_bytes(b"\n".join(lines) + b"\n")
    (tmp_path / "lake").mkdir()
    report = ["report", "--lake", str(tmp_path / "lake"), "--out", str(tmp_path / "site"), "--evidence"]
    assert main([*report, str(tmp_path / "logs")]) == 2
    assert "c/evidence.jsonl, line 1: no evidence" in capsys.readouterr().err
    hidden = msgspec.json.encode(Redacted("branch", "m0123"))
    (tmp_path / "logs" / "c" / EVIDENCE_FILE).write_bytes(hidden + b"\n")
    assert main([*report, str(tmp_path / "logs")]) == 0
    page = (tmp_path / "site" / "index.html").read_text()
    assert page.count("signed two different messages with one id") == 1
    assert "&lt;b&gt;mal" in page
    assert "<b>mal" not in page
    assert ROSTER["mal"].hex() in page
    assert "m0123: evidence of the kind branch" in page
    assert main([*report, str(tmp_path / "nowhere")]) == 2
