"""Compiles the engine and the tree node together, in a folder of their own, as `setup.py` compiles the package.

Only modules that are compiled together call each other directly, as a built-in protocol and the engine do.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SETUP: Final = ("setup.py", "pyproject.toml", "README.md", "LICENSE")
TREES: Final = ("src/precede", "benchmarks")
NODE: Final = "src/benchmarks/tree/node.py"
PARTS: Final = ("src/precede/core/", "src/precede/eventlog/", "src/precede/sim/")
NETWORKS: Final = "src/precede/sim/networks/"
NEEDED_NETWORKS: Final = ("network.py", "point_to_point.py")


def compile_with_node(folder: Path) -> Path:
    """Copy the package and the benchmarks to `folder` and compile what the engine needs, unless it is there.

    Returns the path from which to import them. A build of other texts than now is made again.
    """
    modules, stamp = folder / "src", folder / "texts.sha256"
    texts = _digest()
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != texts:
        shutil.rmtree(modules, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        for name in SETUP:
            shutil.copy(ROOT / name, folder / name)
        text_only = shutil.ignore_patterns("*.so", "__pycache__")
        for tree in TREES:
            shutil.copytree(ROOT / tree, modules / Path(tree).name, ignore=text_only)
        names = filter(_is_needed, (ROOT / "compiled.txt").read_text(encoding="utf-8").split())
        (folder / "compiled.txt").write_text("\n".join([*names, NODE]) + "\n", encoding="utf-8")
        command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
        subprocess.run(command, cwd=folder, env={**os.environ, "PRECEDE_COMPILE": "1"}, check=True)
        stamp.write_text(texts, encoding="utf-8")
    return modules


def _digest() -> str:
    """Return the SHA-256 of all texts that a build depends on, and of the name of the interpreter."""
    texts = [ROOT / name for name in (*SETUP, "compiled.txt")]
    texts += [text for tree in TREES for text in sorted((ROOT / tree).rglob("*.py"))]
    digest = hashlib.sha256(sys.version.encode())
    for text in texts:
        digest.update(str(text.relative_to(ROOT)).encode() + b"\0" + text.read_bytes())
    return digest.hexdigest()


def _is_needed(name: str) -> bool:
    if name.startswith(NETWORKS):
        return name.removeprefix(NETWORKS) in NEEDED_NETWORKS
    return name.startswith(PARTS)
