"""Virtual environments: kept ones with the pinned tools of a build, and empty ones."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
KEPT: Final = ROOT / ".venv-release"
CONSTRAINTS: Final = ROOT / "constraints.txt"
TOOLS: Final = ("auditwheel", "twine", "readme_renderer[md]", "cyclonedx-bom", "uv", "pipx", "wheel")
"""Tools that only a release needs."""


def run(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command and return what it printed; raise SystemExit with the end of its output if it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        end = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{end}")
    return done.stdout


def new_environment(interpreter: Path, folder: Path) -> Path:
    """Make an empty virtual environment and return its Python."""
    run([interpreter, "-m", "venv", "--clear", folder], ROOT)
    return folder / "bin" / "python"


def kept_environment(name: str, interpreter: Path, packages: Sequence[str], pins: Path) -> Path:
    """Return the Python of an environment with these packages; made again if they or the pins changed."""
    contents = f"{interpreter}\n{' '.join(packages)}\n{pins.read_text(encoding='utf-8')}"
    mark, folder = hashlib.sha256(contents.encode()).hexdigest(), KEPT / name
    record = folder / "made-from"
    if not record.is_file() or record.read_text() != mark:
        shutil.rmtree(folder, ignore_errors=True)
        python = new_environment(interpreter, folder)
        run([python, "-m", "pip", "install", "--quiet", "--constraint", pins, *packages], ROOT)
        record.write_text(mark)
    return folder / "bin" / "python"


def tool_environment() -> Path:
    """Return the Python of the environment with the tools of a release."""
    return kept_environment("tools", Path(sys.executable), TOOLS, Path(__file__).with_name("tools.txt"))
