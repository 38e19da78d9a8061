"""Names in documents and docstrings exist: files, dotted names of the package, and identifiers in backticks."""

from __future__ import annotations

import ast
import builtins
import os
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "benchmarks", "examples", "releasing")
SOURCES = [ROOT / "setup.py", *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
FOREIGN = {
    *(
        "mypy_extensions",
        *("websockets", "aiohttp", "npm", "qrencode", "scp"),
        "transformWithState",
        "kafka.sasl.username",
        "applyInPandasWithState",
        "booktabs",
        "fpdf2",
        "flask",
        "pillow",
        "fonttools",
        "pyzmq",
        "prometheus_client",
        "AWS_ACCESS_KEY_ID",
        "cp",
        "PrepareSend",
        *("init_ok", "topology_ok", "broadcast_ok", "read_ok", "in_reply_to"),
        "librt.strings.read_i64_le",
    ),
    *("KKpsk0_25519_ChaChaPoly_BLAKE2s", "ostermalm_001_1", "Z_"),
    *("updateInterval", "transmitSpeed", "bufferSize", "msgTtl", "secondsInTimeUnit"),
    *("SprayAndWaitRouter", "ProphetRouter", "MessageStatsReport", "ExternalEventsQueue"),
}
"""Names of other programs, libraries and data."""

PATTERNS = {
    *("c_barrier", "to_", "section5.1", "NAME_size_peak", "NAME_size_mean", "NAME_size_final"),
    *("name_mean", "_us", "_mean", "_sd", "_min", "_max", "_p25", "_p50", "_p75", "_p90", "_p95", "_p99"),
    *("_peak", "_24h", "delivery_ratio_within_1s", "delivery_ratio_within_T"),
    *("buffer_occupancy_messages_mean", "buffer_occupancy_bytes_mean"),
    *("discarded_evicted", "discarded_expired_cached"),
}
"""Names of a paper, and names with a variable part."""

_FILE = re.compile(r"[\w./-]+\.(py|md|toml)")
_NAME = re.compile(r"_?[A-Za-z]\w*(\.\w+)*")


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def identifiers() -> set[str]:
    """Every identifier, module and short string of the code, and the experiments of the papers."""
    names = set(dir(builtins))
    for path in (ROOT / "papers").glob("*/experiments.toml"):
        names |= set(tomllib.loads(path.read_text(encoding="utf-8"))["experiment"])
    for path in SOURCES:
        names |= {path.stem, *path.parent.parts}
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Name):
                names.add(node.id)
            elif isinstance(node, ast.Attribute):
                names.add(node.attr)
            elif isinstance(node, ast.arg | ast.keyword):
                names.add(node.arg or "")
            elif isinstance(node, ast.alias):
                names |= set(node.name.split("."))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 60:
                names |= set(re.findall(r"\w+", node.value))
    return names


def texts() -> Iterator[tuple[str, str]]:
    """Each page and each docstring of the package, with its place."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        written = re.findall(r"^```\w+ file=(\S+)", text, re.MULTILINE)  # files that the reader saves
        text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        yield relative(page), re.sub("|".join(f"`{re.escape(name)}`" for name in written) or "$^", "", text)
    for path in SOURCES:
        for node in nodes_of(path):
            if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield f"{relative(path)}:{getattr(node, 'lineno', 1)}", ast.get_docstring(node) or ""


def exists(name: str, place: str) -> bool:
    """Is there a file of this name: anywhere if it has no folder, else in the tree, the package or nearby?"""
    if "/" not in name:
        return not name.endswith(".py") or any(path.name == name for path in SOURCES)
    folder = os.path.dirname(place.split(":", maxsplit=1)[0])
    return any((ROOT / start / name).exists() for start in ("", "src", "src/precede", "papers", folder))


def test_names_in_backticks_exist(identifiers: set[str]) -> None:
    wrong = []
    for place, text in texts():
        for token in re.findall(r"`([^`\n]+)`", text):
            name = token.partition("(")[0]
            if name in FOREIGN | PATTERNS:
                continue
            if _FILE.fullmatch(token):
                right = exists(token, place)
            elif _NAME.fullmatch(name):
                right = set(name.split(".")) <= identifiers
            else:
                continue
            if not right:
                wrong.append(f"{place}: `{token}`")
    assert wrong == []


def test_dotted_names_of_the_package_exist() -> None:
    """The longest prefix that is a module exists, and the next name occurs in that module."""
    wrong = []
    for place, text in texts():
        for name in re.findall(r"`(precede(?:\.\w+)+)", text):
            parts = name.split(".")
            path = ROOT / "src"
            while parts and (path / parts[0]).is_dir():
                path /= parts.pop(0)
            path = (
                path / f"{parts.pop(0)}.py"
                if parts and (path / f"{parts[0]}.py").is_file()
                else path / "__init__.py"
            )
            if parts and parts[0] not in path.read_text(encoding="utf-8"):
                wrong.append(f"{place}: `{name}`")
    assert wrong == []
