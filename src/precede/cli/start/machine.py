"""Checks of the machine around Precede: Java, a browser, folders, numba's cache, the clock."""

import os
import shutil
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from precede.cli.start.installation import PACKAGE, Check, install_line, installed_version
from precede.core.errors import Unavailable

_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
_LEAST_FREE: Final = 500_000_000
_DAY_S: Final = 86_400


def check_java(is_needed: bool) -> Check:
    """Check for a Java that Spark runs on. It is looked for only if Spark is installed or needed."""
    if installed_version("pyspark") is None and not is_needed:
        return Check("java", "note", "not looked for: only [spark] needs it", install_line("spark"))
    from precede.pipeline.sessions.java import find_java_home

    try:
        return Check("java", "ok", str(find_java_home()))
    except Unavailable as error:
        return Check("java", "wrong" if is_needed else "note", str(error), install_line("spark"))


def check_browser(is_needed: bool) -> Check:
    """Check for the browser that tests the pages of `precede report`. Only work on Precede needs it."""
    program = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if program is None:
        text = "no Chromium: the tests of report pages are skipped"
        return Check("browser", "wrong" if is_needed else "note", text, "apt-get install -y chromium")
    if find_spec("playwright") is None:
        text = f"{program}, without playwright: the tests of report pages do not run"
        return Check("browser", "wrong" if is_needed else "note", text, install_line("dev"))
    return Check("browser", "ok", program)


def check_numba_cache(package: Path = PACKAGE) -> Check:
    """Check that what numba compiles can be kept; otherwise each process compiles it again for seconds."""
    if find_spec("numba") is None:
        return Check(
            "numba cache", "note", "no numba: contacts and large logs take plain Python", install_line("fast")
        )
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    places = [Path(chosen)] if chosen else [package, Path.home() / ".cache"]
    place = next((place for place in places if _is_writable(place)), None)
    if place is None:
        text = f"cannot be written: {', '.join(map(str, places))}; each process compiles its kernels again"
        return Check("numba cache", "slow", text, "export NUMBA_CACHE_DIR=$(mktemp -d)")
    kernels = sum(1 for _ in place.rglob("*.nbi")) if place == package or chosen else None
    kept = (
        "" if kernels is None else f", {kernels} kernels kept" if kernels else ", empty: the first use compiles"
    )
    return Check("numba cache", "ok", f"{place}{kept}")


def check_data() -> Check:
    """Check the folder of real traces, which some tests and examples read."""
    folder = os.environ.get("PRECEDE_DATA")
    if folder is None:
        text = "PRECEDE_DATA is not set: only tests and examples with real traces need it"
        return Check("data", "note", text, "export PRECEDE_DATA=DIR")
    if not Path(folder).is_dir():
        return Check("data", "wrong", f"PRECEDE_DATA: no folder {folder}", f"mkdir -p {folder}")
    return Check("data", "ok", folder)


def check_folders() -> list[Check]:
    """Check the folders where runs, lakes and stores are written, and where Spark writes temporary files."""
    temporary = tempfile.gettempdir()
    return [
        _check_folder("folder", Path.cwd(), 'cd "$(mktemp -d)"'),
        _check_folder("temporary", Path(temporary), 'export TMPDIR="$HOME"'),
    ]


def check_clock() -> Check:
    """Check that the clock is not behind the installed files. The order `delta` compares clocks of nodes."""
    now = time.time()
    installed = (PACKAGE / "__init__.py").stat().st_mtime
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if now < installed - _DAY_S:
        text = f"{shown}, earlier than the installed files: lifetimes and the order delta go wrong"
        return Check("clock", "wrong", text, "timedatectl set-ntp true")
    resolution = time.get_clock_info("time").resolution
    return Check("clock", "ok", f"{shown}, resolution {resolution * 1e6:g} microseconds")


def _check_folder(subject: str, folder: Path, mend: str) -> Check:
    if not _is_writable(folder):
        return Check(subject, "wrong", f"{folder} cannot be written", mend)
    free = shutil.disk_usage(folder).free
    text = f"{folder}, {free / 1e9:.1f} GB free"
    return Check(subject, "slow" if free < _LEAST_FREE else "ok", text, mend if free < _LEAST_FREE else None)


def _is_writable(folder: Path) -> bool:
    """Return whether a file can be made there. A folder that does not exist yet counts if its parent is one."""
    try:
        with tempfile.TemporaryFile(dir=folder if folder.exists() else folder.parent):
            return True
    except OSError:
        return False
