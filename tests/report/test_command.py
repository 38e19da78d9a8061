"""The command `precede report`, and the data of a page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from precede import cli
from precede.lake.layout import Lake
from precede.report.map_data import Stage, page_map
from precede.report.packing import pack, planes
from precede.report.run_data import SHOWN, read_log
from tests.report.conftest import LARGE


def test_a_report_replaces_the_pages_of_an_earlier_one(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "site"
    for runs in ("3", "1"):
        assert (
            cli.main(["report", "--lake", str(lake.root), "--out", str(out), "--events", "500", "--runs", runs])
            == 0
        )
        printed = capsys.readouterr().out.splitlines()
        assert printed[-1] == f"Open {out / 'index.html'}"
        assert len(list(out.glob("run-*.html"))) == int(runs)
        assert "runs have no page" in printed[-2]
    assert next(out.glob("run-*.html")).name.startswith("run-unordered"), "runs with violations come first"


def test_other_files_in_the_folder_are_kept(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "mine.html").write_text("mine")
    for _ in range(2):
        assert cli.main(["report", "--lake", str(lake.root), "--out", str(tmp_path), "--runs", "0"]) == 0
        assert (tmp_path / "mine.html").read_text() == "mine"


def test_bad_input_is_one_line(lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", "--lake", str(tmp_path / "none"), "--out", str(tmp_path)]) == 2
    assert cli.main(["report", "--lake", str(lake.root), "--shiviz", "nobody", "--out", str(tmp_path)]) == 2
    assert cli.main(["report", "--lake", str(lake.root), "--papers", "nowhere", "--out", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_the_index_of_an_empty_lake_says_that_it_has_no_runs(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    assert cli.main(["report", "--lake", str(tmp_path / "lake"), "--out", str(tmp_path / "site")]) == 0
    assert "no runs yet" in (tmp_path / "site" / "index.html").read_text()


def test_a_log_is_cut_at_the_limit_or_later_to_include_a_violation(lake: Lake) -> None:
    whole = read_log(lake, LARGE, 1_000_000)
    assert len(whole.at_us) == whole.rows > 100_000
    assert (np.diff(whole.at_us) >= 0).all()
    for node in range(len(whole.nodes)):
        assert (np.diff(whole.step[whole.node == node]) > 0).all(), "a node's own order is kept"
    first = read_log(lake, LARGE, 1000)
    assert len(first.at_us) == 1000
    row = 3000
    reached = read_log(lake, LARGE, 1000, (whole.nodes[whole.node[row]], int(whole.step[row])))
    assert len(reached.at_us) == row + 1
    assert (
        len(read_log(lake, LARGE, 1000, (whole.nodes[whole.node[90_000]], int(whole.step[90_000]))).at_us)
        == 5000
    )
    broadcast = int(np.argmax(whole.kind == SHOWN.index("broadcast")))
    assert whole.name(int(whole.message[broadcast])).startswith(whole.nodes[whole.node[broadcast]] + ":")


def test_packing_refuses_large_numbers_and_is_deterministic() -> None:
    with pytest.raises(ValueError, match="do not fit into 1 bytes"):
        planes(np.array([256]), 1)
    with pytest.raises(ValueError, match="do not fit"):
        planes(np.array([-1]), 4)
    assert pack([b"abc"]) == pack([b"a", b"bc"])


def test_a_map_with_a_node_that_is_absent_for_a_while_is_packed() -> None:
    ways = [(0, 0, 0.0, 0.0, 10, 5.0, 5.0), (0, 50, -7.0, 2.0, 60, 0.0, 0.0), (1, 5, 1.0, 1.0, 9, 1.0, 1.0)]
    packed = page_map(Stage(["a", "b"], ways, [(0, 1, 5, 9)]))
    assert (packed["segments"], packed["links"]) == (3, 1)
    assert json.dumps(packed)
