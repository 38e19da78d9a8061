"""What the documents show is run: Python blocks, files they tell to write, and `precede` commands.

Blocks of one document share a folder and a namespace. A command may say which exit code it ends with:
`precede verify log.csv   # exit 1`.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.M | re.S)


def blocks(document: Path) -> list[tuple[str, str, str]]:
    return [(m[1], m[2].strip(), m[3]) for m in FENCE.finditer(document.read_text(encoding="utf-8"))]


def runnable(document: Path) -> bool:
    return any(
        (kind == "python" and "norun" not in note) or (kind in ("sh", "console") and "norun" not in note)
        for kind, note, _ in blocks(document)
    )


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if runnable(d)], ids=lambda d: d.stem)
def test_what_a_document_shows_works(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "document"}
    for kind, note, text in blocks(document):
        if "norun" in note:
            continue
        if note.startswith("file="):
            (tmp_path / note.removeprefix("file=")).write_text(text, encoding="utf-8")
        elif kind == "python":
            exec(compile(text, str(document), "exec"), namespace)
        elif kind in ("sh", "console"):
            for line in text.splitlines():
                run_command(line.removeprefix("$ "), tmp_path)


def run_command(line: str, folder: Path) -> None:
    command, _, comment = line.partition("#")
    if command.split()[:1] != ["precede"]:
        return
    words = shlex.split(command)
    expected = re.search(r"exit (\d)", comment)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "precede", *words[1:]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == (int(expected[1]) if expected else 0), (line, done.stdout, done.stderr)


LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in LINK.findall(document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), f"{document.relative_to(ROOT)}: {target}"
