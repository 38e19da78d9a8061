"""Key files: a group's secret keys, newest first, in a file that only its owner can read.

The first key seals; all of them open, so that a group can change keys with an overlap. A file that others can
read is refused: a key that everybody has admits everybody.
"""

from __future__ import annotations

import os
import stat
from hashlib import blake2b
from pathlib import Path
from typing import Final

from precede.core.errors import BadInput
from precede.runtime.sealing import KEY_BYTES, new_key

_HEAD: Final = "# Precede group keys, newest first. Keep this file to yourself.\n"
_MOST: Final = 8


def make_keys(path: Path) -> bytes:
    """A new file with one fresh key; an existing file is never overwritten."""
    key = new_key()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise BadInput(f"{path}: exists already; `rotate` adds a key to it") from None
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(_HEAD + key.hex() + "\n")
    return key


def read_keys(path: Path) -> tuple[bytes, ...]:
    """The keys of a file, newest first; refused when others could read it."""
    try:
        mode = path.stat().st_mode
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not a key file") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadInput(f"{path}: others can read it (mode {stat.S_IMODE(mode):o}); chmod 600 it")
    keys = []
    for number, line in enumerate(lines, 1):
        written = line.partition("#")[0].strip()
        if written:
            keys.append(_key(written, f"{path}:{number}"))
    if not keys:
        raise BadInput(f"{path}: no key in it")
    return tuple(keys)


def rotate_keys(path: Path, keep: int = 2) -> tuple[bytes, ...]:
    """A fresh key in front; the newest `keep` stay valid. The file is replaced whole."""
    keys = (new_key(), *read_keys(path))[: max(1, min(keep, _MOST))]
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(_HEAD + "".join(f"{key.hex()}\n" for key in keys))
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    return keys


def fingerprint(key: bytes) -> str:
    """What can be shown and compared without giving the key away."""
    return blake2b(key, digest_size=6, person=b"precede-key").hexdigest()


def _key(written: str, place: str) -> bytes:
    try:
        key = bytes.fromhex(written)
    except ValueError:
        raise BadInput(f"{place}: not a key in hexadecimal") from None
    if len(key) != KEY_BYTES:
        raise BadInput(f"{place}: a key has {KEY_BYTES} bytes, not {len(key)}")
    return key
