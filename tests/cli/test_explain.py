"""Codes of errors: the table and the code agree, and the command line shows and explains them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from precede import cli
from precede.cli.start.explanations import (
    FAMILIES,
    GENERAL,
    REASONS,
    TABLE,
    WARNINGS,
    code_of_module,
    code_of_reason,
    code_of_warning,
)
from precede.witness.judgement import describe_gap, describe_ungathered

SOURCE = Path(cli.__file__).parents[1]


def calls(folder: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every call in a package, with the name of its module."""
    for path in sorted(folder.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield name, node


def called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def text_of(node: ast.expr) -> str | None:
    """A literal text; `x` stands for each value in an f-string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
    return None


def test_codes_are_unique():
    entries = [*GENERAL, *FAMILIES, *REASONS, *WARNINGS]
    assert [entry.code for entry in entries] == sorted({entry.code for entry in entries})
    assert all(re.fullmatch(r"E\d{3}", code) for code in TABLE)


def test_every_module_that_raises_bad_input_has_a_code_and_every_listed_module_raises_some():
    raising = sorted({module for module, call in calls(SOURCE) if called(call) == "BadInput"})
    assert [module for module in raising if code_of_module(module) is None] == []
    for entry in (*GENERAL, *FAMILIES):
        for origin in entry.origin.split():
            below = [module for module in raising if f"{module}.".startswith(f"{origin}.")]
            assert entry.code in map(code_of_module, below), (entry.code, origin)


def test_the_command_line_gives_every_general_code():
    names = {
        node.id for node in ast.walk(ast.parse(Path(cli.__file__).read_text())) if isinstance(node, ast.Name)
    }
    assert {"COMMAND_LINE", "MISSING", "PATH", "FAILED"} <= names
    assert len(GENERAL) == 4


def test_every_reason_of_an_unknown_verdict_has_a_code_and_every_code_a_reason():
    texts = [describe_gap("a", None, 2), describe_gap("a", 2, 4), describe_ungathered("a", 3)]
    for path in sorted((SOURCE / "witness").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            values: list[ast.expr] = []
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "reasons.append":
                values = node.args
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("state.conflict"):
                values = node.args[1:]
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("reasons", "self.truncated"):
                values = [node.value.elt if isinstance(node.value, ast.ListComp) else node.value]
            texts += [text for value in values if (text := text_of(value))]
    assert len(texts) >= 11
    assert [text for text in texts if code_of_reason(text) is None] == []
    assert {code_of_reason(text) for text in texts} == {entry.code for entry in REASONS}


def test_every_warning_has_a_code_and_every_code_a_warning():
    codes = [
        code
        for _, call in calls(SOURCE / "runtime")
        if called(call) in ("give", "_warn") and call.args and (code := text_of(call.args[0]))
    ]
    assert len(codes) >= 10
    assert [code for code in codes if code_of_warning(code) is None] == []
    assert {code_of_warning(code) for code in codes} == {entry.code for entry in WARNINGS}


HEADER = "node,step,kind,message_source,message_number\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["simulat"], "E001"),
        (["simulate", "small-office", "--protocl", "fifo"], "E001"),
        (["sweep", "--here", "--master", "local", "s.toml"], "E001"),
        (["verify", "none.csv"], "E003"),
        (["verify", "empty.csv"], "E011"),
        (["simulate", "small-ofice"], "E013"),
        (["simulate", "small-office", "--set", "workload.until=20"], "E014"),
        (["protocols", "vectr_clock"], "E015"),
        (["keys", "show", "empty.csv"], "E016"),
        (["lake", "check", "--lake", "none"], "E019"),
        (["reproduce", "prs1998"], "E021"),
        (["audit", "empty.csv"], "E022"),
    ],
)
def test_an_error_ends_with_its_code(tmp_path, monkeypatch, capsys, arguments, code):
    monkeypatch.chdir(tmp_path)
    Path("empty.csv").write_text(HEADER)
    assert cli.main(arguments) == 2
    assert re.search(r"\[(E\d+)\]\n$", capsys.readouterr().err)[1] == code


def test_an_unknown_verdict_shows_the_code_of_its_reason(tmp_path, capsys):
    (tmp_path / "log.csv").write_text(f"{HEADER}a,0,broadcast,a,0\n")
    assert cli.main(["verify", str(tmp_path / "log.csv")]) == 1
    assert "no deliveries at all [E042]" in capsys.readouterr().out


def test_explain(capsys):
    assert cli.main(["explain", "e042"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("E042: unknown: no deliveries at all\n")
    assert "--kinds" in page
    assert cli.main(["explain", "nobody_heard", "--json"]) == 0
    assert [entry["code"] for entry in json.loads(capsys.readouterr().out)] == ["E060"]
    assert cli.main(["explain"]) == 0
    assert capsys.readouterr().out.count("\n") == len(TABLE)
    assert cli.main(["explain", "E0422"]) == 2
    assert "did you mean 'E042'?" in capsys.readouterr().err
