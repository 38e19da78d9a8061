"""How the executors of a cluster get this package: in an archive of `precede spark pack`, or else as a zip.

From a zip Python imports source only: executors run the plain code, and numba compiles its kernels again in
each. An archive (`sessions.pack`) is unpacked there, so that its compiled modules and cached kernels are used.
An archive in a session's settings is recognised by its name: `spark.archives=FILE#precede-pack`, or, where an
image has it, `spark.executorEnv.PYTHONPATH=/opt/precede-pack`. If none is named there, the archive that was
made of this very code on this machine is used, if it exists.
"""

from __future__ import annotations

import platform
import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from hashlib import blake2b
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import Final

import precede
from precede.pipeline.sessions.java import user_cache

PACK: Final = "precede-pack"
"""The name of the unpacked archive in the working folder of an executor."""

ARCHIVES: Final = "spark.archives"
PYTHONPATH: Final = "spark.executorEnv.PYTHONPATH"
SEPARATORS: Final = {
    "spark.driver.extraJavaOptions": " ",
    "spark.executor.extraJavaOptions": " ",
    "spark.submit.pyFiles": ",",
    ARCHIVES: ",",
    PYTHONPATH: ":",
}
"""Settings that are lists: what the user sets is added to what we set."""

_ROOTS: Final = ("msgspec", "mypy_extensions", "librt", "numpy", "pyarrow", "numba", "pandas")
"""What tasks import, and pandas, without which PySpark refuses `mapInArrow`."""

_LISTS: Final = (ARCHIVES, "spark.yarn.dist.archives")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def is_embedded(master: str) -> bool:
    """Do the tasks run on this machine, in processes with the same files and packages as the driver?"""
    return master == "local" or master.startswith("local[")


def pack_settings(present: Callable[[str], str | None]) -> dict[str, str] | None:
    """Return the settings with which executors import from an archive; None if there is no archive.

    `present` returns what the session's settings say already.

    >>> pack_settings({"spark.archives": "a.tar.gz#other,hdfs:///b.tar.gz#precede-pack"}.get)
    {'spark.executorEnv.PYTHONPATH': 'precede-pack'}
    """
    if imports_pack(present(PYTHONPATH)):
        return {}
    archives = ",".join(filter(None, map(present, _LISTS)))
    if any(entry.strip().endswith(f"#{PACK}") for entry in archives.split(",")):
        return {PYTHONPATH: PACK}
    archive = cached_pack()
    if not archive.is_file():
        return None
    return {ARCHIVES: f"{archive}#{PACK}", PYTHONPATH: PACK}


def imports_pack(path: str | None) -> bool:
    """Is an unpacked archive on this PYTHONPATH of executors?

    >>> imports_pack("/opt/precede-pack:mine"), imports_pack("mine"), imports_pack(None)
    (True, False, False)
    """
    return any(PurePosixPath(entry).name == PACK for entry in (path or "").split(":"))


def cached_pack() -> Path:
    """Return where `precede spark pack` puts the archive of this very code; the file need not exist."""
    return user_cache() / f"{PACK}-{_digest()}.tar.gz"


def zip_package(scratch: Path) -> Path:
    """Return the path of a zip file of this package, from which Python can import."""
    archive = scratch / "precede.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path, name in package_files():
            if path.suffix != ".so":
                file.write(path, name)
    return archive


def package_files() -> Iterator[tuple[Path, str]]:
    """Return the files of this package with their names in an archive, sorted.

    The machine code of all compiled modules is in one library, which is beside the package.
    """
    root = Path(precede.__file__).parent
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path, path.relative_to(root.parent).as_posix()
    for path in sorted(root.parent.glob("precede__mypyc*.so")):
        yield path, path.name


def dependencies(more: Sequence[str] = ()) -> dict[str, Distribution]:
    """Return the installed distributions that tasks need, and some more, with all that these need, by name."""
    packages: dict[str, Distribution] = {}
    names = [*_ROOTS, *more]
    while names:
        name = names.pop().lower().replace("_", "-")
        if name in packages:
            continue
        try:
            packages[name] = distribution(name)
        except PackageNotFoundError:
            continue  # a requirement of other platforms, or one that the user does without
        for line in packages[name].requires or ():
            required = _NAME.match(line)
            if required and "extra ==" not in line:
                names.append(required[0])
    return dict(sorted(packages.items()))


@cache
def _digest() -> str:
    """Identify the code and what it runs on: the package, its dependencies, Python and the machine's kind."""
    digest = blake2b(digest_size=6)
    versions = [f"{name} {package.version}" for name, package in dependencies().items()]
    digest.update(repr((sys.version_info[:2], platform.system(), platform.machine(), versions)).encode())
    for path, name in package_files():
        content = path.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()
