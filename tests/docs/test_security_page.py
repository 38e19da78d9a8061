"""The security page names an existing test for each promise, and each bound with the value the code has."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from benchmarks.hashes import lines

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


def test_every_promise_names_a_test_that_exists() -> None:
    table = PAGE.split("<!-- promises -->")[1].split("\n\n")[0].strip().splitlines()[2:]
    assert len(table) > 20
    for row in table:
        named = re.search(r"`(tests/[\w/]+\.py)::(test_\w+)`", row)
        assert named is not None, row
        assert f"def {named[2]}(" in (ROOT / named[1]).read_text(encoding="utf-8"), row


def test_every_file_and_test_that_the_page_names_exists() -> None:
    for path, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE):
        assert f"def {name}" in (ROOT / path).read_text(encoding="utf-8") if name else (ROOT / path).exists(), (
            path
        )


def test_every_reason_for_a_drop_is_in_the_table() -> None:
    counted = re.compile(r"""(?:dropped(?:_here)?\[|\bdrop\(|_count\(|Garbled\()([^\])\n]*)""")
    sources = (ROOT / "src" / "precede" / "runtime").rglob("*.py")
    reasons = {
        reason
        for source in sources
        for counter in counted.findall(source.read_text(encoding="utf-8"))
        for reason in re.findall(r'"(\w+)"', counter)
    }
    assert len(reasons) > 25
    table = PAGE.split("## Drops are counted")[1].split("\n## ")[0]
    explained = {
        name
        for row in table.splitlines()
        for name in re.findall(r"`(\w+)`", row.partition("|")[2].split("|")[0])
    }
    assert reasons - explained == set()


def bounds() -> list[tuple[str, list[str]]]:
    """The rows of the table of bounds: its text, and the constants it names."""
    table = PAGE.split("<!-- bounds -->")[1].split("\n\n")[0].strip().splitlines()[2:]
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table]
    return [(f"{most}; {then}", re.findall(r"`([\w.]+)`", where)) for _, most, then, where in cells]


def test_every_bound_has_the_value_of_its_constant() -> None:
    for text, names in bounds():
        assert names, text
        for name in names:
            module, _, constant = name.rpartition(".")
            value = getattr(import_module(f"precede.{module}"), constant)
            assert f"{value:,}" in re.findall(r"\d[\d,]*\d|\d", text), f"{name} is {value:,}: {text}"


NO_BOUNDS_OF_MEMORY = {
    "runtime.driver._MOST_ROWS": "a batch of the event log, written at once",
    "runtime.driver._MOST_TOGETHER": "inputs handled before other tasks run",
    "runtime.evidence.files._MOST_FILE_BYTES": "a file that `precede verify` reads",
    "runtime.links.agreement._MOST_TEXT": "characters of a neighbour's word in a warning",
    "runtime.links.cookies.MOST_FAILURES_PER_S": "when handshakes need a cookie",
    "runtime.links.inspection.MOST_LIFETIME": "how far away a deadline may be",
    "runtime.links.keyring._MOST": "keys in a file of this member",
    "runtime.links.keyring._MOST_BYTES": "a file of this member",
    "runtime.links.noise.MOST_FRAMES": "frames under one key",
    "runtime.links.session_table.MOST_FRAMES": "frames under one key",
    "runtime.rosters.MOST_EPOCHS": "the last epoch of a roster",
    "runtime.no_store._MOST_INCARNATIONS": "the range of a random number",
}


def test_every_bound_of_the_runtime_is_in_the_table() -> None:
    named = {name for _, names in bounds() for name in names}
    package = ROOT / "src" / "precede"
    for path in sorted((package / "runtime").rglob("*.py")):
        module = ".".join(path.relative_to(package).with_suffix("").parts)
        for constant in re.findall(r"^(_?MOST\w*): Final", path.read_text(encoding="utf-8"), re.MULTILINE):
            name = f"{module}.{constant}"
            assert (name in named) != (name in NO_BOUNDS_OF_MEMORY), name


def test_a_report_of_pip_becomes_lines_with_hashes() -> None:
    archive = {"download_info": {"url": "x", "archive_info": {"hashes": {"sha256": "ab"}}}}
    report = {"install": [{**archive, "metadata": {"name": "msgspec", "version": "1.2"}}]}
    assert lines(report) == ["msgspec==1.2 --hash=sha256:ab"]
