"""The wheel has what an installed user needs beside the code: papers, page templates, the marker of types."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import precede

ROOT = Path(__file__).parents[1]
SOURCES = ("src", "papers", "scenarios", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
UNWANTED = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pure wheel, built from a copy of the sources so that nothing is left in the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, folder / name, ignore=shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")
            )
        elif source.exists():
            shutil.copyfile(source, folder / name)
    environment = {key: value for key, value in os.environ.items() if key != "PRECEDE_COMPILE"}
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        "out",
        ".",
    ]
    subprocess.run(command, cwd=folder, check=True, env=environment, capture_output=True, timeout=600)
    (made,) = (folder / "out").glob("*.whl")
    return made


@pytest.mark.slow
def test_the_wheel_has_papers_templates_and_types(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for paper in sorted((ROOT / "papers").iterdir()):
        for file in sorted(paper.iterdir()):
            assert f"precede/papers/{paper.name}/{file.name}" in names
    unwanted = (".so", ".pyc", ".nbi", ".nbc")
    sources = [path for path in (ROOT / "src" / "precede").rglob("*") if path.is_file()]
    files = {path.relative_to(ROOT / "src").as_posix() for path in sources if path.suffix not in unwanted}
    assert "precede/py.typed" in files
    assert sorted(files - names) == []


@pytest.mark.slow
def test_a_paper_is_found_from_an_unpacked_wheel_in_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    (tmp_path / "empty").mkdir()
    program = "from precede.reproduction.papers import find_papers; print(find_papers())"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path / "empty",
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.stdout.strip() == str(tmp_path / "site" / "precede" / "papers")


@pytest.mark.slow
def test_demo_doctor_and_new_work_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    (tmp_path / "empty").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    for arguments, expected in [
        (["demo", "--small"], "violated"),
        (["doctor"], f"installed at {tmp_path / 'site' / 'precede'}"),
        (["new", "trace"], "test_my_trace.py"),
    ]:
        done = subprocess.run(
            [sys.executable, "-m", "precede", *arguments],
            cwd=tmp_path / "empty",
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout


LINK = re.compile(r"\]\(([^)]+)\)")


def description(folder: Path, pyproject: str) -> str:
    """The long description that setup.py gives a package with this pyproject.toml."""
    (folder / "src" / "precede").mkdir(parents=True)
    for name in ("setup.py", "README.md", "src/precede/__init__.py"):
        shutil.copyfile(ROOT / name, folder / name)
    (folder / "pyproject.toml").write_text(pyproject, encoding="utf-8")
    line = [sys.executable, "setup.py", "--quiet", "--long-description"]
    return subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True, timeout=120).stdout


@pytest.mark.slow
def test_links_of_the_description_lead_to_files_of_the_repository(tmp_path: Path) -> None:
    own = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    source = "https://example.org/precede"
    named = description(tmp_path / "named", f'{own}\n[project.urls]\nSource = "{source}"\n')
    paths = LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    links = LINK.findall(named)
    assert len(links) == len(paths) > 20
    for link in links:
        found = re.fullmatch(rf"{source}/(?:blob|raw)/v{re.escape(precede.__version__)}/(.+)", link)
        assert found is not None, link
        assert (ROOT / found[1].partition("#")[0]).is_file()
    assert "![" in named
    assert LINK.findall(description(tmp_path / "unnamed", own)) == []
