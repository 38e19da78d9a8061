"""Reads the log of MobiClique at SIGCOMM 2009 (CRAWDAD thlab/sigcomm2009), a folder of six CSV files.
 docs/field/sigcomm2009.md shows by counts what the columns mean. In short: the third column of reception.csv is
the receiver, which wrote the row, although the header calls it hop_src; rows of type 2 name messages to groups
(M) and to one user (U); messages to everybody (B) are never named and cannot be followed.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias

from precede.audit.deployment import Created, Deployment, Hop, deployment
from precede.core.errors import BadInput
from precede.files.inputs import open_regular

SECOND_US: Final = 1_000_000
Reading: TypeAlias = Literal["shown", "headed", "file_order"]
"""How to read reception.csv: as the data show, as its header says, or with rows of one second in its order."""

DIRECT: Final = "direct"
"""The group of messages to one user."""

_FILES: Final = {
    "messages.csv": "msg_id;user_id;created;type;dst",
    "reception.csv": "type;msg_id;hop_src_user_id;hop_dst_user_id;dst_timestamp",
    "transmission.csv": "type;msg_id;bytes;hop_src_user_id;hop_dst_user_id;src_timestamp;status",
    "interests1.csv": "user_id;group_id",
    "interests2.csv": "user_id;group_id;time_added",
}
_NO_MESSAGE: Final = -1
_LONGEST_LINE: Final = 1000


def is_mobiclique(folder: Path) -> bool:
    """Return whether a folder has the files of this format."""
    return all((folder / name).is_file() for name in _FILES)


def other_readings(folder: Path) -> dict[str, tuple[str, Deployment]]:
    """Return the assumptions of this reader, what is read without each, and the deployment that follows."""
    return {
        "the third column of reception.csv is the receiver, although the header says hop_src": (
            "the columns mean what the header says",
            read_mobiclique(folder, "headed"),
        ),
        "rows of one phone with the same second may have been written in any order": (
            "they were written in the order of the file, after what the phone created in that second",
            read_mobiclique(folder, "file_order"),
        ),
    }


def read_mobiclique(folder: Path, reading: Reading = "shown") -> Deployment:
    """Read a folder. Raise BadInput with file and line for a row that cannot be read."""
    members: dict[int, set[str]] = defaultdict(set)
    for name in ("interests1.csv", "interests2.csv"):
        for _, (user, group, *_rest) in _rows(folder, name):
            members[group].add(str(user))
    created, unfollowed = [], 0
    for place, (message, user, at, kind, target) in _messages(folder):
        if kind == "B":
            unfollowed += 1
        elif kind == "U":
            created.append(Created(str(message), str(user), at * SECOND_US, DIRECT, frozenset((str(target),))))
        elif kind == "M":
            addressees = frozenset(members[target])
            created.append(Created(str(message), str(user), at * SECOND_US, f"group {target}", addressees))
        else:
            raise BadInput(f"{place}: unknown type {kind!r} (known: B, M, U)")
    hops = []
    in_second: dict[tuple[int, int], int] = defaultdict(int)
    for _, (_kind, message, third, fourth, at) in _rows(folder, "reception.csv"):
        sender, receiver = (third, fourth) if reading == "headed" else (fourth, third)
        in_second[receiver, at] += reading == "file_order"
        instant = at * SECOND_US + in_second[receiver, at]
        hops.append(Hop(_name(message), str(sender), str(receiver), instant, "received"))
    for _, (_kind, message, size, sender, receiver, at, status) in _rows(folder, "transmission.csv"):
        hops.append(Hop(_name(message), str(sender), str(receiver), at * SECOND_US, "sent", status == 0, size))
    return deployment(folder.name, created, hops, unfollowed)


def _name(message: int) -> str | None:
    return None if message == _NO_MESSAGE else str(message)


def _messages(folder: Path) -> Iterator[tuple[str, tuple[int, int, int, str, int]]]:
    """Yield the rows of messages.csv, the only file with a column of letters."""
    seen = set()
    for place, fields in _fields(folder, "messages.csv"):
        message, user, at, target = _whole(place, [*fields[:3], fields[4]])
        if message in seen:
            raise BadInput(f"{place}: message {message} is there twice")
        seen.add(message)
        yield place, (message, user, at, fields[3], target)


def _rows(folder: Path, name: str) -> Iterator[tuple[str, list[int]]]:
    for place, fields in _fields(folder, name):
        yield place, _whole(place, fields)


def _whole(place: str, fields: list[str]) -> list[int]:
    numbers = []
    for field in fields:
        digits = field.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 12):
            raise BadInput(f"{place}: expected a whole number, got {field[:40]!r}")
        numbers.append(int(field))
    return numbers


def _fields(folder: Path, name: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the place and the fields of each row; check the header and the number of fields."""
    path = folder / name
    header = f"# Format: {_FILES[name]}"
    width = _FILES[name].count(";") + 1
    with open_regular(path) as file:
        for number, raw in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
            place = f"{path}:{number}"
            try:
                line = raw.decode().strip()
            except UnicodeDecodeError as error:
                raise BadInput(f"{place}: not UTF-8 text ({error.reason})") from None
            if number == 1:
                if line != header:
                    raise BadInput(f"{place}: expected {header!r}, got {line[:80]!r}")
                continue
            if not line:
                continue
            fields = line.split(";")
            if len(fields) != width:
                raise BadInput(f"{place}: expected {width} fields separated by ';', got {len(fields)}")
            yield place, fields
