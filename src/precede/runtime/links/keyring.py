"""Key files: a group's secret keys, a member's identity, and the roster of whose signature is whose.

A group's file has its keys, newest first: all of them open, and the first that is not marked `opens` seals. So
a group changes keys without a pause: a fresh key opens everywhere before anybody seals with it (`rotate` here,
`take` elsewhere, then `promote`). An identity file has the secret that one member signs with; a roster has a
line `NAME PUBLIC-KEY` for each member. A secret that others can read, or a roster that others can write, is
refused.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

from precede.core.errors import BadInput
from precede.runtime.links.authorship import PUBLIC_BYTES, SEED_BYTES, public_of
from precede.runtime.links.sealing import KEY_BYTES, new_key

_HEAD: Final = "# Precede group keys, newest first. Keep this file to yourself.\n"
_IDENTITY_HEAD: Final = "# Precede identity: what one member signs with. Keep this file to yourself.\n"
_MOST: Final = 8
_MOST_BYTES: Final = 1 << 20
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


def make_keys(path: Path) -> bytes:
    """A new file with one fresh key; an existing file is never overwritten."""
    key = new_key()
    _write_new(path, _HEAD + key.hex() + "\n", "`rotate` adds a key to it")
    return key


def take_key(path: Path, key: bytes) -> None:
    """A key that came from another member: it opens from now on; in a new file it seals too."""
    if not path.exists():
        _write_new(path, _HEAD + key.hex() + "\n", "try again")
        return
    known = [entry for entry in _entries(path) if entry[0] != key]
    _replace(path, [(key, True), *known[: _MOST - 1]])


def rotate_keys(path: Path) -> bytes:
    """A fresh key that opens and does not seal yet."""
    _entries(path)
    key = new_key()
    take_key(path, key)
    return key


def promote_key(path: Path, keep: int = 2) -> tuple[bytes, ...]:
    """The newest key seals from now on; the newest `keep` still open."""
    keys = [key for key, _ in _entries(path)]
    _replace(path, [(key, False) for key in keys[: max(1, min(keep, _MOST))]])
    return read_keys(path)


def newest_key(path: Path) -> bytes:
    """The key that was added last, whether it seals already or not."""
    return _entries(path)[0][0]


def read_keys(path: Path) -> tuple[bytes, ...]:
    """The keys of a file, the one that seals first; refused when others could read it."""
    entries = _entries(path)
    sealing = next((key for key, opens in entries if not opens), entries[0][0])
    return (sealing, *(key for key, _ in entries if key != sealing))


def _entries(path: Path) -> list[tuple[bytes, bool]]:
    """Keys, newest first, and whether each only opens."""
    found = []
    for number, line in _lines(path, _OTHERS, "others can read it"):
        written, _, mark = line.partition(" ")
        if mark.strip() not in ("", "opens"):
            raise BadInput(f"{path}:{number}: {mark.strip()[:40]!r} after a key; only `opens` may stand there")
        found.append((_bytes(written, KEY_BYTES, f"{path}:{number}"), bool(mark.strip())))
    if not found:
        raise BadInput(f"{path}: no key in it")
    return found


def make_identity(path: Path) -> bytes:
    """A new file with a member's secret; its public key."""
    seed = os.urandom(SEED_BYTES)
    _write_new(path, _IDENTITY_HEAD + seed.hex() + "\n", "an identity is made once")
    return public_of(seed)


def read_identity(path: Path) -> bytes:
    """The secret of a member; refused when others could read it."""
    lines = list(_lines(path, _OTHERS, "others can read it"))
    if len(lines) != 1:
        raise BadInput(f"{path}: an identity is one secret, and there are {len(lines)}")
    return _bytes(lines[0][1], SEED_BYTES, f"{path}:{lines[0][0]}")


def read_roster(path: Path) -> dict[str, bytes]:
    """Public keys by name; refused when others could change them."""
    roster: dict[str, bytes] = {}
    for number, line in _lines(path, _OTHERS_WRITE, "others can change it"):
        words = line.split()
        if len(words) != 2:
            raise BadInput(f"{path}:{number}: a line of a roster is NAME PUBLIC-KEY")
        if words[0] in roster:
            raise BadInput(f"{path}:{number}: {words[0]} is there twice")
        roster[words[0]] = _bytes(words[1], PUBLIC_BYTES, f"{path}:{number}")
    if not roster:
        raise BadInput(f"{path}: nobody is in it")
    return roster


def fingerprint(key: bytes) -> str:
    """What can be shown and compared without giving the key away."""
    return blake2b(key, digest_size=6, person=b"precede-key").hexdigest()


def _lines(path: Path, forbidden: int, why: str) -> Iterator[tuple[int, str]]:
    """What is written in a file, without comments. The rights looked at are those of the file that is read."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    if found.st_mode & forbidden:
        raise BadInput(f"{path}: {why} (mode {stat.S_IMODE(found.st_mode):o}); chmod 600 it")
    if found.st_uid not in (os.getuid(), 0):
        raise BadInput(f"{path}: belongs to another user")
    try:
        text = content.decode("utf-8" if forbidden == _OTHERS_WRITE else "ascii")
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not a key file") from None
    if len(content) > _MOST_BYTES:
        raise BadInput(f"{path}: not a key file")
    for number, line in enumerate(text.splitlines(), 1):
        written = line.partition("#")[0].strip()
        if written:
            yield number, written


def _bytes(written: str, size: int, place: str) -> bytes:
    try:
        key = bytes.fromhex(written)
    except ValueError:
        raise BadInput(f"{place}: not a key in hexadecimal") from None
    if len(key) != size:
        raise BadInput(f"{place}: a key has {size} bytes, not {len(key)}")
    return key


def _write_new(path: Path, text: str, else_do: str) -> None:
    """Only its owner can read it from the first instant on."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise BadInput(f"{path}: exists already; {else_do}") from None
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _replace(path: Path, entries: Sequence[tuple[bytes, bool]]) -> None:
    """The file changes whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    text = "".join(f"{key.hex()}{' opens' if opens else ''}\n" for key, opens in entries)
    _write_new(temporary, _HEAD + text, "remove it")
    os.replace(temporary, path)
