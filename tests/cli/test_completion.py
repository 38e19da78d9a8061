"""`precede completion`: what the shell proposes."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from precede import cli


def script(shell, capsys):
    assert cli.main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "proposed"),
    [
        ("precede ver", ["verify"]),
        ("precede verify log.csv --du", ["--duplicates"]),
        ("precede keys ma", ["make"]),
        ("precede lake check --js", ["--json"]),
        ("precede new sc", ["scenario"]),
        ("precede explain E042", ["E042"]),
        ("precede protocols vc", ["vcube"]),
        ("precede play --no", ["--no-browser"]),
        ("precede nothing --j", []),
    ],
)
def test_bash_proposes_verbs_and_options(typed, proposed, capsys):
    words = typed.split()
    line = f"COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _precede; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(
        ["bash", "-c", script("bash", capsys) + line], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == proposed


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_script(shell, tmp_path, capsys):
    text = script(shell, capsys)
    assert "verify" in text
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    (tmp_path / "script").write_text(text)
    subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)
