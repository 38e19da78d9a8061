"""Builds a release: a source archive, a pure wheel, and a compiled wheel for each interpreter.

Everything is built from the source archive, and that from the last commit. The same commit gives the same
bytes: times are those of the commit, modes and order are fixed, and no path of the machine is compiled in. The
compiled wheels also depend on the C compiler and on the interpreter; `build` prints both.
"""

import gzip
import hashlib
import io
import os
import re
import shutil
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Final, NamedTuple

from releasing.environments import CONSTRAINTS, ROOT, kept_environment, run, tool_environment

TO_BUILD: Final = ("setuptools", "mypy", "msgspec", "numpy")
_TAG: Final = re.compile(r'platform tag:\s+"(manylinux\w+)"')


class Built(NamedTuple):
    """A file of the release, and the seconds that building it took."""

    path: Path
    seconds: float

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


class Commit(NamedTuple):
    """The commit that a release is built from, and its time in seconds."""

    name: str
    at: int


def last_commit() -> Commit:
    """Return the commit that is checked out."""
    name, at = run(["git", "log", "-1", "--format=%H %ct"], ROOT).split()
    return Commit(name, int(at))


def compiler() -> str | None:
    """Return the name of the C compiler; None if there is none."""
    name = os.environ.get("CC", "cc")
    return name if shutil.which(name.split()[0]) else None


def compiler_version() -> str:
    """Return the first line of what the C compiler says of itself."""
    name = compiler()
    return run([*name.split(), "--version"], ROOT).splitlines()[0] if name else "no C compiler"


def build(out: Path, interpreters: dict[str, Path], commit: Commit) -> list[Built]:
    """Build all files of a release into a folder; the compiled wheels only if there is a C compiler."""
    os.umask(0o022)
    out.mkdir(parents=True, exist_ok=True)
    python = _build_environment(*next(iter(interpreters.items())))
    archive = build_archive(python, out, commit)
    made = [archive, build_wheel(python, archive.path, out, commit.at, compiled=False)]
    if compiler():
        for version, interpreter in interpreters.items():
            builder = _build_environment(version, interpreter)
            made.append(build_wheel(builder, archive.path, out, commit.at, compiled=True))
            print(f"  {made[-1].path.name}: {made[-1].seconds:.0f} s", file=sys.stderr, flush=True)
    return made


def _build_environment(version: str, interpreter: Path) -> Path:
    return kept_environment(f"build-{version}", interpreter, TO_BUILD, CONSTRAINTS)


def build_archive(python: Path, out: Path, commit: Commit) -> Built:
    """Build the source archive from a commit."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        run(["git", "archive", "--output", f"{scratch}/commit.tar", commit.name], ROOT)
        with tarfile.open(f"{scratch}/commit.tar") as packed:
            packed.extractall(source, filter="data")
        program = f"from setuptools.build_meta import build_sdist; print(build_sdist({scratch!r}))"
        run([python, "-c", program], source, _environment(commit.at, compiled=False))
        (made,) = Path(scratch).glob("*.tar.gz")
        target = out / made.name
        target.write_bytes(normal_archive(made.read_bytes(), commit.at))
    return Built(target, time.monotonic() - began)


def normal_archive(data: bytes, at: int) -> bytes:
    """Pack an archive again: members by name, all times the same, all files of one owner.

    Setuptools writes the time of the build and the user who built.
    """
    buffer = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as old,
        gzip.GzipFile(filename="", fileobj=buffer, mode="wb", mtime=at) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            clean = tarfile.TarInfo(member.name)
            clean.type, clean.size, clean.mtime = member.type, member.size, at
            clean.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(clean, old.extractfile(member) if member.isfile() else None)
    return buffer.getvalue()


def build_wheel(python: Path, archive: Path, out: Path, at: int, compiled: bool) -> Built:
    """Build a wheel from the source archive; a pure one without a C compiler in reach."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(archive) as packed:
            packed.extractall(scratch, filter="data")
        (source,) = Path(scratch).iterdir()
        folder = Path(scratch) / "wheel"
        folder.mkdir()
        environment = _environment(at, compiled, source)
        program = f"from setuptools.build_meta import build_wheel; print(build_wheel({str(folder)!r}))"
        run([python, "-c", program], source, environment)
        (made,) = folder.glob("*.whl")
        if compiled and sys.platform.startswith("linux"):
            made = _with_platform(made, environment)
        target = out / made.name
        shutil.copyfile(made, target)
    return Built(target, time.monotonic() - began)


def _environment(at: int, compiled: bool, source: Path | None = None) -> dict[str, str]:
    """Return the variables of a build. A path of this machine in them would be a path in the wheel."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PRECEDE_", "PYTHON"))}
    kept |= {"SOURCE_DATE_EPOCH": str(at), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    if not compiled:
        return kept | {"CC": "no-compiler-for-a-pure-wheel"}
    name = compiler() or "cc"
    flags = f"-ffile-prefix-map={source}=. -g0"
    return kept | {
        "PRECEDE_COMPILE": "1",
        "CC": name,
        "LDSHARED": f"{name} -shared",
        "CFLAGS": flags,
        "LDFLAGS": "-s",
    }


def _with_platform(wheel: Path, environment: dict[str, str]) -> Path:
    """Name the oldest Linux that the wheel runs on (manylinux), by the symbols it uses; indexes ask for it."""
    tools = tool_environment()
    shown = run([tools, "-m", "auditwheel", "show", wheel], wheel.parent)
    tag = _TAG.search(" ".join(shown.split()))
    if tag is None:
        return wheel
    command = [tools, "-m", "wheel", "tags", "--remove", "--platform-tag", tag[1], wheel]
    return wheel.parent / run(command, wheel.parent, environment).split()[-1]


def differences(first: Path, second: Path) -> list[str]:
    """Return what differs between two builds of a release, by member; empty if all bytes are the same."""
    found = []
    for name in sorted({path.name for folder in (first, second) for path in folder.iterdir()}):
        one, other = first / name, second / name
        if not (one.is_file() and other.is_file()):
            found.append(f"{name}: built only once")
        elif one.read_bytes() != other.read_bytes():
            members, others = _members(one), _members(other)
            changed = [key for key in sorted({*members, *others}) if members.get(key) != others.get(key)]
            found.append(f"{name}: {', '.join(changed) or 'the same files, packed in another way'}")
    return found


def _members(path: Path) -> dict[str, bytes]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as packed:
            return {name: packed.read(name) for name in packed.namelist()}
    with tarfile.open(path) as archive:
        files = [member for member in archive.getmembers() if member.isfile()]
        return {member.name: reader.read() for member in files if (reader := archive.extractfile(member))}
