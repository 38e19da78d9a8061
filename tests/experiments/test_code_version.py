"""The code version: the same source has the same version, from a folder or an archive; other source another."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import precede
from precede.experiments.code_version import is_current, made_by
from precede.experiments.run import carry_out_into
from precede.experiments.scenario import read_scenario

ROOT = Path(precede.__file__).parent


def made_by_in(archive: Path, changed: str = "") -> str:
    """The version in a process that imports the package from an archive, with one file changed."""
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(ROOT.rglob("*.py")):
            name = path.relative_to(ROOT.parent).as_posix()
            file.writestr(name, path.read_bytes() + (b"# changed\n" if name == changed else b""))
    code = f"import sys; sys.path.insert(0, {str(archive)!r})\n"
    code += "from precede.experiments.code_version import made_by\n"
    command = [sys.executable, "-c", code + "print(made_by())"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()


def test_the_version_depends_on_the_source_alone(tmp_path: Path) -> None:
    assert made_by_in(tmp_path / "same.zip") == made_by()
    assert made_by_in(tmp_path / "cli.zip", "precede/cli/data/sweep.py") == made_by(), "no result depends on it"
    assert made_by_in(tmp_path / "other.zip", "precede/protocols/was2021/host.py") != made_by()


def test_a_result_is_current_for_its_release_or_for_its_exact_source() -> None:
    assert is_current(made_by(), same_code=True)
    assert is_current(f"{precede.__version__}+0123456789ab")
    assert not is_current(f"{precede.__version__}+0123456789ab", same_code=True)
    assert not is_current(precede.__version__, same_code=True)
    assert not is_current(made_by().replace(precede.__version__, "0.0.1"))


def test_run_json_has_the_code_version(tmp_path: Path) -> None:
    carry_out_into(read_scenario("small-office", "fifo", settings={"until": "1s"}), tmp_path)
    assert json.loads((tmp_path / "run.json").read_text())["made_by"] == made_by()
