"""Which version of this package made a result, and which text of it: `0.1.0+3f9c2b71a0de`.

A run's id says what was asked for and never changes; what answered it stands beside the answer. A release has
one text, so results of another version are not taken for current ones. Between releases the text changes every
day, and most changes touch no run: results of other code of the same version are kept, and said to be such.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from precede import __version__

_ROOMS: Final = (
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
"""What a result can depend on; the others start runs, show them, or live in the real world."""


@cache
def made_by() -> str:
    """The version, and a digest of the text that runs here (from a folder, or from a worker's archive)."""
    digest = blake2b(digest_size=6)
    for room in _ROOMS:
        for name, text in _texts(files("precede") / room, room):
            digest.update(f"{name} {len(text)}\n".encode())
            digest.update(text)
    return f"{__version__}+{digest.hexdigest()}"


def is_current(maker: str, same_code: bool = False) -> bool:
    """Is a result of this version; or, if that is asked, of this very code?"""
    return maker == made_by() or (not same_code and maker.partition("+")[0] == __version__)


def _texts(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _texts(entry, name)
        elif name.endswith(".py"):
            yield name, entry.read_bytes()
