"""Compiles the engine and the tree node together, in a folder of their own, as `setup.py` compiles the package.

Only modules that are compiled together call each other directly, as a built-in protocol and the engine do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
NODE: Final = "src/benchmarks/tree/node.py"
PARTS: Final = ("src/precede/core/", "src/precede/eventlog/", "src/precede/sim/")
NETWORKS: Final = "src/precede/sim/networks/"
NEEDED_NETWORKS: Final = ("network.py", "point_to_point.py")


def compile_with_node(folder: Path) -> Path:
    """Copy the package and the benchmarks to `folder` and compile what the engine needs, unless it is there.

    Returns the path from which to import them.
    """
    modules = folder / "src"
    if not list((modules / "benchmarks" / "tree").glob("node.*.so")):
        for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, folder / name)
        text_only = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(ROOT / "src" / "precede", modules / "precede", ignore=text_only, dirs_exist_ok=True)
        shutil.copytree(ROOT / "benchmarks", modules / "benchmarks", ignore=text_only, dirs_exist_ok=True)
        names = filter(_is_needed, (ROOT / "compiled.txt").read_text(encoding="utf-8").split())
        (folder / "compiled.txt").write_text("\n".join([*names, NODE]) + "\n", encoding="utf-8")
        command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
        subprocess.run(command, cwd=folder, env={**os.environ, "PRECEDE_COMPILE": "1"}, check=True)
    return modules


def _is_needed(name: str) -> bool:
    if name.startswith(NETWORKS):
        return name.removeprefix(NETWORKS) in NEEDED_NETWORKS
    return name.startswith(PARTS)
