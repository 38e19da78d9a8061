"""What the code must not do with foreign data, and its dependencies."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from precede.pipeline.sessions import java

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
CARELESS = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


@cache
def parsed() -> list[tuple[Path, ast.AST]]:
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in SOURCES]


NUMPY_LOAD = ("np.load", "numpy.load")


def _unpickles(call: ast.Call) -> bool:
    """Does a call of numpy.load leave open that the file is unpickled?"""
    return not any(
        word.arg == "allow_pickle" and isinstance(word.value, ast.Constant) and word.value.value is False
        for word in call.keywords
    )


def test_no_foreign_data_is_unpickled_or_evaluated() -> None:
    found = []
    for path, tree in parsed():
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [
                f"{path}:{node.lineno} imports {name}" for name in names if name.split(".")[0] in CARELESS
            ]
        for name, call in calls(tree):
            if name in ("eval", "exec", "yaml.load", "torch.load") or (name in NUMPY_LOAD and _unpickles(call)):
                found.append(f"{path}:{call.lineno} calls {name}")
    assert found == []


def test_no_shell_is_started() -> None:
    found = []
    for path, tree in parsed():
        for name, call in calls(tree):
            asks = any(
                word.arg == "shell" and not (isinstance(word.value, ast.Constant) and word.value.value is False)
                for word in call.keywords
            )
            if asks or name in ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"):
                found.append(f"{path}:{call.lineno} {name}")
            if (
                name.startswith("subprocess.")
                and call.args
                and not isinstance(call.args[0], ast.List | ast.Name)
            ):
                found.append(f"{path}:{call.lineno} {name} takes something else than a list of words")
    assert found == []


def test_temporary_files_have_unpredictable_names() -> None:
    found = []
    for path, tree in parsed():
        for name, call in calls(tree):
            if name in ("tempfile.mktemp", "os.tempnam", "os.tmpnam"):
                found.append(f"{path}:{call.lineno} {name}")
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and node.value.startswith("/tmp/")
            ):
                found.append(f"{path}:{node.lineno} names a file in /tmp")
    assert found == []


def test_every_dependency_is_pinned_and_there_is_a_command_that_audits_them() -> None:
    pinned = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        match = re.fullmatch(r"([A-Za-z0-9_.-]+)==([0-9][A-Za-z0-9.+!]*)", line)
        assert match, line
        pinned[match[1].lower().replace("_", "-")] = match[2]
    project = (ROOT / "pyproject.toml").read_text()
    wanted = set(re.findall(r'"([a-z][a-z0-9_-]*)(?:\[[a-z,]+\])?>=', project)) - {"setuptools"}
    assert [name for name in sorted(wanted) if name.replace("_", "-") not in pinned] == []
    assert re.search(r"^audit:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_dependencies_of_dependencies_are_pinned_too() -> None:
    """Else `pip install --require-hashes` refuses the list of `make hashes`."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {canonicalize_name(line.partition("==")[0]) for line in lines}
    missing = []
    for name in sorted(pinned):
        try:
            needed = [Requirement(text) for text in requires(name) or ()]
        except PackageNotFoundError:
            continue  # of another platform
        missing += [
            f"{name} needs {each.name}"
            for each in needed
            if (each.marker is None or each.marker.evaluate({"extra": ""}))
            and canonicalize_name(each.name) not in pinned
        ]
    assert missing == []


def test_code_in_a_shared_folder_is_executed_only_if_we_own_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java.tempfile, "gettempdir", lambda: str(tmp_path))
    cache = java._temporary_cache()
    assert cache.stat().st_mode & 0o777 == 0o700
    cache.chmod(0o777)
    with pytest.raises(OSError, match="can be written by another user"):
        java._temporary_cache()
