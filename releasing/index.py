"""Checks what a package index shows of a release, and writes its list of parts (SBOM)."""

import email
import json
import re
import tempfile
import zipfile
from email.message import Message
from pathlib import Path
from typing import Final

from releasing.environments import CONSTRAINTS, new_environment, run, tool_environment

_LINK: Final = re.compile(r'(?:href|src)="([^"]*)"')


def check(dist: Path, interpreter: Path) -> int:
    """Check every file of a release with twine, render its description, and write the SBOM beside it."""
    files = sorted([*dist.glob("precede-*.whl"), *dist.glob("precede-*.tar.gz")])
    if not files:
        raise SystemExit(f"{dist}: no files of a release; python -m releasing build makes them")
    print(run([tool_environment(), "-m", "twine", "check", "--strict", *files], dist).strip())
    wheels = [file for file in files if file.suffix == ".whl"]
    texts = {str(metadata_of(wheel)) for wheel in wheels}
    if len(texts) != 1:
        raise SystemExit("the wheels have different metadata; resolvers take that of any one of them")
    page = rendered(description_of(metadata_of(wheels[0])))
    links = _LINK.findall(page)
    relative = [link for link in links if not link.startswith(("https://", "#"))]
    print(
        f"description: {len(page):,} characters of HTML, {len(links)} links, {len(relative)} of them relative"
    )
    write_inventory(wheels[0], dist / "sbom.cdx.json", interpreter)
    return 1 if relative else 0


def metadata_of(wheel: Path) -> Message:
    """Return the metadata of a wheel."""
    with zipfile.ZipFile(wheel) as packed:
        (name,) = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(packed.read(name))


def description_of(metadata: Message) -> str:
    """Return the text that the index shows."""
    text = metadata.get_payload(decode=True)
    assert isinstance(text, bytes)
    return text.decode()


def rendered(text: str) -> str:
    """Return the description as the index renders it."""
    program = (
        "import sys; from readme_renderer.markdown import render; "
        "page = render(sys.stdin.read()); sys.exit('not rendered') if page is None else print(page)"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "readme.md"
        path.write_text(text, encoding="utf-8")
        read = program.replace("sys.stdin.read()", f"open({str(path)!r}, encoding='utf-8').read()")
        return run([tool_environment(), "-c", read], Path(folder))


def write_inventory(wheel: Path, target: Path, interpreter: Path) -> None:
    """List what this wheel installs with all extras, with versions and licences, in the format CycloneDX."""
    with tempfile.TemporaryDirectory() as folder:
        python = new_environment(interpreter, Path(folder) / "venv")
        run(
            [python, "-m", "pip", "install", "--quiet", "--constraint", CONSTRAINTS, f"{wheel}[all,kafka]"],
            Path(folder),
        )
        run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools"], Path(folder))
        tool = tool_environment().parent / "cyclonedx-py"
        run([tool, "environment", "--output-reproducible", "--output-file", target, python], Path(folder))
    parts = json.loads(target.read_text(encoding="utf-8"))["components"]
    print(f"{target}: {len(parts)} components")
