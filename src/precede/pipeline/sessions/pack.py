"""Makes the archive from which executors run the same code as the driver, compiled: `precede spark pack`.

The archive is a folder of packages: this one with its compiled modules, and numpy, pyarrow, numba, pandas and
msgspec with what they need, as they are installed here. Beside the kernels of this package lies numba's cache.
Files have times of change in whole seconds, as a tar file keeps them: Python's and numba's caches compare them.
Spark unpacks the archive in the working folder of each executor (`spark.archives`), and a relative PYTHONPATH
finds it there. PySpark is not in it: every executor has its own. The executors need a Python of the same minor
version on the same kind of machine; on another model of processor numba compiles again.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct

import precede.core.dispatch
from precede.core.compiling import is_compiled
from precede.core.errors import BadInput, Unavailable
from precede.pipeline.sessions.shipping import PACK, cached_pack, dependencies, package_files

_KEPT_PACKS: Final = 3
_COMPRESSION: Final = 3
"""Higher levels take far longer and save little: most bytes are machine code."""


class Packed(Struct, frozen=True, kw_only=True):
    """What is in an archive: distributions as `name version`, cached numba kernels, compiled modules or not."""

    path: str
    size: int
    compiled: bool
    kernels: int
    distributions: tuple[str, ...]


def pack(out: Path | None = None, more: Sequence[str] = (), bare: bool = False) -> Packed:
    """Write the archive to a file, or to the user's cache folder, where sessions on a cluster look for it.

    `more` are further distributions, such as those of plug-in protocols. A `bare` archive has this package and
    `more` alone, for executors whose Python has the rest. Raises BadInput for a distribution that is not
    installed, or whose files are elsewhere.
    """
    chosen = {} if bare else dependencies(more)
    for name in more:
        key = name.lower().replace("_", "-")
        chosen[key] = _installed(name)
    target = cached_pack() if out is None else out
    if not target.name.endswith((".tar.gz", ".tgz")):
        raise BadInput(f"{target}: Spark unpacks files whose names end with .tar.gz")
    with tempfile.TemporaryDirectory(prefix="precede-pack-") as folder:
        tree = Path(folder) / PACK
        for path, name in package_files():
            _copy(path, tree / name)
        for package in chosen.values():
            _copy_distribution(package, tree)
        kernels = _fill_cache(tree)
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_archive(tree, target)
    if out is None:
        _remove_older(target)
    return Packed(
        path=str(target),
        size=target.stat().st_size,
        compiled=is_compiled(precede.core.dispatch),
        kernels=kernels,
        distributions=tuple(f"{name} {package.version}" for name, package in chosen.items()),
    )


def _installed(name: str) -> Distribution:
    """Return a distribution by its name. Raise BadInput if it is missing, or if its files are elsewhere."""
    package = dependencies([name]).get(name.lower().replace("_", "-"))
    if package is None:
        raise BadInput(f"--with {name}: no such distribution is installed")
    origin = json.loads(package.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        raise BadInput(f"--with {name}: it is installed in editable form; install it as a wheel first")
    return package


def _copy_distribution(package: Distribution, tree: Path) -> None:
    """Copy the files of a distribution, but for its scripts and its own tests."""
    if package.files is None:
        raise Unavailable(f"{package.metadata['Name']}: its files are not listed where it is installed")
    for file in package.files:
        path = PurePosixPath(file)
        if ".." not in path.parts and not path.is_absolute() and "tests" not in path.parts[1:2]:
            source = Path(str(package.locate_file(file)))
            if source.is_file():
                _copy(source, tree / path)


def _copy(source: Path, target: Path) -> None:
    """Copy a file with its rights, and its time of change in whole seconds."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    changed = int(source.stat().st_mtime)
    os.utime(target, (changed, changed))


def _fill_cache(tree: Path) -> int:
    """Have the kernels in the folder compiled into numba's cache; returns how many there are."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    ran = subprocess.run(
        [sys.executable, "-m", "precede.pipeline.sessions.warm"],
        env=environment | {"PYTHONPATH": str(tree)},
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        last = (ran.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unavailable(f"the packed code does not run: {last}")
    return sum(1 for _ in (tree / "precede").rglob("*.nbi"))


def _write_archive(tree: Path, target: Path) -> None:
    """Write the folder as a compressed tar file, which appears whole under its name."""
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    try:
        with (
            os.fdopen(handle, "wb") as file,
            tarfile.open(fileobj=file, mode="w:gz", compresslevel=_COMPRESSION) as archive,
        ):
            archive.add(tree, ".", filter=_anonymous)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A member without the user's name, with its time in whole seconds."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = int(member.mtime)
    return member


def _remove_older(newest: Path) -> None:
    """Remove archives of other code from the cache folder, but for the latest ones."""
    packs = sorted(newest.parent.glob(f"{PACK}-*.tar.gz"), key=lambda path: path.stat().st_mtime)
    for path in packs[:-_KEPT_PACKS]:
        path.unlink()
