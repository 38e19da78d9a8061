"""Key files: a group's secret keys, a member's identity, and the roster of public keys.

A group's file lists its keys, newest first. All of them open (decrypt) frames; the first that is not marked
`opens` seals (encrypts) frames. A group changes keys without a pause: every member adds the new key as one that
only opens (`rotate` on one machine, `take` on the others) before any member seals with it (`promote`). An
identity file has the secret seed that one member signs with. A roster has a line `NAME PUBLIC-KEY` for each
member. A secret file that other users can read, or a roster that they can write, is refused.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

from precede.core.errors import BadInput
from precede.files.inputs import open_regular
from precede.files.private import open_private
from precede.runtime.evidence.signatures import PUBLIC_BYTES, SEED_BYTES
from precede.runtime.links.authorship import public_of
from precede.runtime.links.noise import KEY_BYTES
from precede.runtime.names import check_roster
from precede.runtime.rosters import RetiredKey, SignedRoster

_HEAD: Final = "# Precede group keys, newest first. Keep this file to yourself.\n"
_IDENTITY_HEAD: Final = "# Precede identity: what one member signs with. Keep this file to yourself.\n"
_ROSTER_HEAD: Final = "# Precede roster: NAME PUBLIC-KEY EPOCH, signed by the administrator.\n"
_MOST: Final = 8
_MOST_BYTES: Final = 1 << 20
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


def new_key() -> bytes:
    return os.urandom(KEY_BYTES)


def make_keys(path: Path) -> bytes:
    """Make a file with a new key and return the key; an existing file is never overwritten."""
    key = new_key()
    _write_new(path, _HEAD + key.hex() + "\n", "`rotate` adds a key to it")
    return key


def take_key(path: Path, key: bytes) -> None:
    """Add a key from another member, which decrypts; in a new file it also encrypts. Keep the newest eight."""
    if not path.exists():
        _write_new(path, _HEAD + key.hex() + "\n", "try again")
        return
    others = [entry for entry in _entries(path) if entry[0] != key]
    _replace(path, [(key, True), *others[: _MOST - 1]])


def rotate_keys(path: Path) -> bytes:
    """Add a new key, which decrypts and does not encrypt yet, and return it."""
    _entries(path)
    key = new_key()
    take_key(path, key)
    return key


def promote_key(path: Path, keep: int = 2) -> tuple[bytes, ...]:
    """Encrypt with the newest key from now on. Only the newest `keep` keys still decrypt; return them."""
    keys = [key for key, _ in _entries(path)]
    _replace(path, [(key, False) for key in keys[: max(1, min(keep, _MOST))]])
    return read_keys(path)


def newest_key(path: Path) -> bytes:
    """Return the key that was added last, whether it encrypts already or not."""
    return _entries(path)[0][0]


def read_keys(path: Path) -> tuple[bytes, ...]:
    """Read the keys of a file, the encrypting one first. Raise BadInput if other users can read the file."""
    entries = _entries(path)
    sealing = next((key for key, opens in entries if not opens), entries[0][0])
    return (sealing, *(key for key, _ in entries if key != sealing))


def _entries(path: Path) -> list[tuple[bytes, bool]]:
    """Read the keys of a file, newest first, each with True if it only decrypts."""
    entries = []
    for number, line in _lines(path, _OTHERS, "others can read it"):
        digits, _, mark = line.partition(" ")
        if mark.strip() not in ("", "opens"):
            raise BadInput(f"{path}:{number}: {mark.strip()[:40]!r} after a key; expected `opens` or nothing")
        entries.append((_bytes(digits, KEY_BYTES, f"{path}:{number}"), bool(mark.strip())))
    if not entries:
        raise BadInput(f"{path}: no key in it")
    return entries


def make_identity(path: Path) -> bytes:
    seed = os.urandom(SEED_BYTES)
    _write_new(path, _IDENTITY_HEAD + seed.hex() + "\n", "an identity is made once")
    return public_of(seed)


def read_identity(path: Path) -> bytes:
    """Read the secret seed of a member. Raise BadInput if other users can read the file."""
    lines = list(_lines(path, _OTHERS, "others can read it"))
    if len(lines) != 1:
        raise BadInput(f"{path}: expected one secret, found {len(lines)}")
    return _bytes(lines[0][1], SEED_BYTES, f"{path}:{lines[0][0]}")


def read_roster(path: Path) -> dict[str, bytes]:
    """Read the public keys of a roster by name. Raise BadInput if other users can change the file."""
    members, _, marks = _roster_lines(path)
    if marks:
        raise BadInput(f"{path}: a signed roster; give the administrator's key too (--admin)")
    return members


def roster_members(path: Path) -> dict[str, bytes]:
    """Read the public keys of a roster by name, signed or not. A signature is not checked."""
    return _roster_lines(path)[0]


def is_signed(path: Path) -> bool:
    """Return whether a roster file has a signature, right or wrong."""
    return bool(_roster_lines(path)[2])


def read_signed_roster(path: Path) -> SignedRoster:
    """Read a roster that `write_signed_roster` wrote. Its signature is not checked here."""
    members, since, marks = _roster_lines(path)
    try:
        retired = tuple(
            RetiredKey(name, bytes.fromhex(key), int(incarnation), int(number))
            for name, key, incarnation, number in marks.get("@retired", ())
        )
        (epoch,), (signature,) = marks["@epoch"][0], marks["@signature"][0]
        return SignedRoster(int(epoch), members, since, bytes.fromhex(signature), retired)
    except (KeyError, ValueError):
        raise BadInput(f"{path}: not a signed roster (precede keys sign)") from None


def write_signed_roster(path: Path, roster: SignedRoster) -> None:
    """Replace a roster file in one step. A line has the name, the key, and the epoch of the key."""
    lines = [f"@epoch {roster.epoch}\n"]
    lines += [f"{name} {public.hex()} {roster.since[name]}\n" for name, public in roster.members.items()]
    for name, key, incarnation, number in roster.retired:
        lines.append(f"@retired {name} {key.hex()} {incarnation} {number}\n")
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    text = _ROSTER_HEAD + "".join(lines) + f"@signature {roster.signature.hex()}\n"
    _write_new(temporary, text, "remove it")
    os.replace(temporary, path)


def _roster_lines(path: Path) -> tuple[dict[str, bytes], dict[str, int], dict[str, list[list[str]]]]:
    """Return the keys of a roster, the epochs of the keys, and a signed roster's lines that begin with @."""
    roster: dict[str, bytes] = {}
    since: dict[str, int] = {}
    marks: dict[str, list[list[str]]] = {}
    for number, line in _lines(path, _OTHERS_WRITE, "others can change it"):
        name, *words = line.split()
        if name in ("@epoch", "@retired", "@signature"):
            marks.setdefault(name, []).append(words)
            continue
        if len(words) not in (1, 2) or not all(word.isdecimal() and len(word) < 6 for word in words[1:]):
            raise BadInput(f"{path}:{number}: expected NAME PUBLIC-KEY")
        if name in roster:
            raise BadInput(f"{path}:{number}: {name} appears twice")
        roster[name] = _bytes(words[0], PUBLIC_BYTES, f"{path}:{number}")
        since[name] = int(words[1]) if len(words) == 2 else 0
    if not roster:
        raise BadInput(f"{path}: no member in it")
    try:
        check_roster(roster)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    return roster, since, marks


def fingerprint(key: bytes) -> str:
    """Return a short digest of a key, which can be shown and compared without revealing the key."""
    return blake2b(key, digest_size=6, person=b"precede-key").hexdigest()


def _lines(path: Path, forbidden: int, why: str) -> Iterator[tuple[int, str]]:
    """Yield numbered lines of a file without comments; permissions are checked on the open descriptor."""
    try:
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    if status.st_mode & forbidden:
        raise BadInput(f"{path}: {why} (mode {stat.S_IMODE(status.st_mode):o}); chmod 600 it")
    if status.st_uid not in (os.getuid(), 0):
        raise BadInput(f"{path}: belongs to another user")
    try:
        text = content.decode("utf-8" if forbidden == _OTHERS_WRITE else "ascii")
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not a key file") from None
    if len(content) > _MOST_BYTES:
        raise BadInput(f"{path}: not a key file")
    for number, line in enumerate(text.splitlines(), 1):
        content_of_line = line.partition("#")[0].strip()
        if content_of_line:
            yield number, content_of_line


def _bytes(digits: str, size: int, place: str) -> bytes:
    """Read a key from hexadecimal digits; `place` is the file and line, for errors."""
    try:
        key = bytes.fromhex(digits)
    except ValueError:
        raise BadInput(f"{place}: not a key in hexadecimal") from None
    if len(key) != size:
        raise BadInput(f"{place}: expected a key of {size} bytes, got {len(key)}")
    return key


def _write_new(path: Path, text: str, advice: str) -> None:
    """Make a file that only its owner can read. `advice` ends the error if it exists already."""
    try:
        opened = open_private(path)
    except FileExistsError:
        raise BadInput(f"{path}: exists already; {advice}") from None
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    with opened as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def _replace(path: Path, entries: Sequence[tuple[bytes, bool]]) -> None:
    """Replace a key file in one step: a reader sees the old or the new content."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    text = "".join(f"{key.hex()}{' opens' if opens else ''}\n" for key, opens in entries)
    _write_new(temporary, _HEAD + text, "remove it")
    os.replace(temporary, path)
