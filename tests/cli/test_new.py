"""`precede new`: what it writes works, its tests can fail, and no file is overwritten."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from precede import cli
from precede.cli.start.new import KINDS, write_example

ROOT = Path(__file__).parents[2]


def run_tests(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-qx",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(folder),
        str(folder),
    ]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False
    )


def test_every_example_passes_its_own_test(tmp_path):
    for kind in KINDS:
        write_example(kind, f"sunday_{kind}", tmp_path)
    done = run_tests(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "10 passed" in done.stdout
    assert not any("NAME" in path.read_text() for path in tmp_path.glob("*.*"))


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("protocol", "if missing:", "if False:"),
        ("scenario", "cem,dora,1200,1500\n", ""),
        ("app", 'if action == "remove"', 'if action == "strike"'),
    ],
)
def test_the_test_of_a_broken_example_fails(tmp_path, kind, right, wrong):
    for path in write_example(kind, "broken", tmp_path):
        text = path.read_text()
        path.write_text(text if path.name.startswith("test_") else text.replace(right, wrong))
    done = run_tests(tmp_path)
    assert done.returncode == 1, done.stdout


@pytest.mark.parametrize("kind", ["protocol", "routing"])
def test_the_guide_explains_the_file_that_is_written(tmp_path, kind):
    guide = (ROOT / "docs" / "guides" / f"add-a-{kind}.md").read_text(encoding="utf-8")
    block = re.search(rf"^```python file=my_{kind}\.py\n(.*?)^```", guide, re.M | re.S)
    assert block is not None
    write_example(kind, f"my_{kind}", tmp_path)
    assert (tmp_path / f"my_{kind}.py").read_text(encoding="utf-8") == block[1]


def test_nothing_is_overwritten_and_nothing_half_written(tmp_path, capsys):
    (tmp_path / "test_walk.py").write_text("mine")
    assert cli.main(["new", "trace", "walk", "--in", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "test_walk.py exists and is not overwritten" in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["test_walk.py"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["protcol"], "did you mean 'protocol'?"),
        (["house"], "known: scenario, protocol, routing, app, trace"),
        (["app", "../evil"], "no name for a Python module"),
        (["app", "two words"], "no name for a Python module"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(tmp_path, monkeypatch, capsys, arguments, line):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new", *arguments]) == 2
    assert line in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_the_test_lacks_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("precede.cli.start.new.find_spec", lambda name: None)
    assert cli.main(["new", "app", "--in", str(tmp_path)]) == 0
    first, second = [line for line in capsys.readouterr().out.splitlines() if line.startswith("First: ")]
    assert first.endswith("pip install pytest")
    assert "[runtime]" in second


def test_json_lists_the_files(tmp_path, capsys):
    assert cli.main(["new", "routing", "--in", str(tmp_path / "a" / "b"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["test"] == str(tmp_path / "a" / "b" / "test_my_routing.py")
    assert all(Path(path).is_file() for path in result["files"])
