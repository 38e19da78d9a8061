"""The version of the code that made a result: package version and a digest of the source, `0.2.0+3f9c2b71a0de`.

The id of a run depends on its description alone, so the code version is stored with each result. Results of
another release are never taken for current. Between releases the source changes every day, and most changes
affect no run: results of other source of the same release stay current, and are marked.
"""

from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from precede import __version__

_PACKAGES: Final = (
    "core",
    "protocols",
    "eventlog",
    "traces",
    "sim",
    "witness",
    "measures",
    "experiments",
    "reproduction",
)
"""The packages that a result can depend on."""


@cache
def made_by() -> str:
    """Return the package version and a digest of the source that runs here."""
    digest = blake2b(digest_size=6)
    for package in _PACKAGES:
        for name, text in _sources(files("precede") / package, package):
            digest.update(f"{name} {len(text)}\n".encode())
            digest.update(text)
    return f"{__version__}+{digest.hexdigest()}"


def is_current(maker: str, same_code: bool = False) -> bool:
    """Did this release make a result? With `same_code`, exactly this source must have made it."""
    return maker == made_by() or (not same_code and maker.partition("+")[0] == __version__)


def _sources(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _sources(entry, name)
        elif name.endswith(".py"):
            yield name, entry.read_bytes()
