"""Finds the interpreters for which wheels are compiled."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

VERSIONS: Final = ("3.11", "3.12", "3.13")
"""The versions of CPython for which a release has compiled wheels."""
_ASK: Final = "import sys, venv, ensurepip; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])"


def find_interpreters() -> dict[str, Path]:
    """Return a working CPython for each version that this machine has: on the PATH, in pyenv, or this one."""
    interpreters = {}
    for version in VERSIONS:
        path = next((path for path in _candidates(version) if _answers(path, version)), None)
        if path is not None:
            interpreters[version] = path
    return interpreters


def _candidates(version: str) -> list[Path]:
    on_path = shutil.which(f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    installed = sorted(pyenv.glob(f"{version}.*/bin/python{version}"), key=_patch, reverse=True)
    return [Path(sys.executable), *([Path(on_path)] if on_path else []), *installed]


def _patch(path: Path) -> int:
    digits = re.match(r"\d+", path.parent.parent.name.rpartition(".")[2])
    return int(digits[0]) if digits else 0


def _answers(path: Path, version: str) -> bool:
    """Return whether a program is a CPython of this version that can make virtual environments."""
    done = subprocess.run([path, "-c", _ASK], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.split() == ["cpython", version]
