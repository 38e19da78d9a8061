"""A running group in one look: what its members say about themselves, put side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput

MOST_STATUS_BYTES: Final = 1 << 22
_ANSWER_S: Final = 3.0
_ECHO: Final = "own"
"""The cause of frames in a member's own name: on a LAN multicast brings back each frame that it sends."""


class Wait(Struct, rename={"waits_for": "for"}):
    """A message that waits: for which others, and since how many seconds."""

    message: str
    waits_for: list[str]
    since_s: float


class MemberStatus(Struct):
    """The status of one member, as its endpoint gives it (`/status`)."""

    group: str
    member: str
    order: str
    failed: bool
    neighbours: list[str]
    broadcasts: int
    deliveries: int
    untaken: int
    waiting: int
    oldest_wait_s: float
    waits: list[Wait]
    delivered: dict[str, int]
    frames: dict[str, int]
    bytes: dict[str, int]
    refused: dict[str, int]
    warnings: int


class MemberRow(Struct):
    """One member in the overview. `lag`: how many messages it has not delivered that another one has.

    `problem` says why there is no status; then the other fields are empty. Rates are None at the first look.
    """

    address: str
    problem: str = ""
    group: str = ""
    member: str = ""
    order: str = ""
    hears: list[str] = []
    not_heard: list[str] = []
    deliveries: int = 0
    lag: int = 0
    waiting: int = 0
    oldest_wait_s: float = 0.0
    untaken: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    bytes_in_s: float | None = None
    bytes_out_s: float | None = None
    refused: int = 0
    warnings: int = 0
    failed: bool = False


class Followed(Struct):
    """What a follower of the members' logs has found."""

    order: str
    rows: int
    deliveries: int
    waiting: int
    waits_for: list[str]
    violations: dict[str, int]
    latest: list[str]


class Overview(Struct):
    """A group at one instant: its members, what waits for what, and what the follower found."""

    members: list[MemberRow]
    waits: list[tuple[str, Wait]]
    followed: Followed | None = None


async def fetch_status(address: tuple[str, int]) -> MemberStatus | str:
    """Return the status of the member whose endpoint is at an address, or why there is none."""
    host, port = address
    try:
        async with asyncio.timeout(_ANSWER_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                named = f"[{host}]" if ":" in host else host
                writer.write(f"GET /status HTTP/1.1\r\nHost: {named}:{port}\r\n\r\n".encode())
                answer = await _read_bounded(reader)
            finally:
                writer.close()
    except TimeoutError:
        return "does not answer"
    except OSError as error:
        return f"not reachable: {error.strerror or error}"
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        return "refuses: " + head.split(b"\r\n")[0].decode("latin-1")[:60]
    try:
        return msgspec.json.decode(body, type=MemberStatus)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        return "is no member of a group (no status in its answer)"


async def _read_bounded(reader: asyncio.StreamReader) -> bytes:
    answer = bytearray()
    while len(answer) <= MOST_STATUS_BYTES and (part := await reader.read(1 << 16)):
        answer += part
    return bytes(answer)


def read_endpoint(text: str) -> tuple[str, int]:
    """Read the address of an endpoint: HOST:PORT, with or without http:// and a path.

    >>> read_endpoint("http://127.0.0.1:9100/metrics"), read_endpoint("[::1]:9100")
    (('127.0.0.1', 9100), ('::1', 9100))
    """
    host, _, port = text.removeprefix("http://").partition("/")[0].rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise BadInput(f"{text}: expected HOST:PORT of a member (precede node --metrics HOST:PORT)")
    return host.strip("[]"), int(port)


def overview(
    statuses: Mapping[str, MemberStatus | str],
    earlier: Overview | None = None,
    seconds: float = 0.0,
    followed: Followed | None = None,
) -> Overview:
    """Put statuses side by side. Rates are those since the `earlier` overview, `seconds` ago."""
    known = {address: status for address, status in statuses.items() if isinstance(status, MemberStatus)}
    before = {} if earlier is None else {row.address: row for row in earlier.members}
    furthest: dict[tuple[str, str], int] = {}
    for status in known.values():
        for stream, number in status.delivered.items():
            key = (status.group, stream)
            furthest[key] = max(furthest.get(key, 0), number)
    rows = []
    for address, answer in statuses.items():
        if isinstance(answer, str):
            rows.append(MemberRow(address, answer))
        else:
            rows.append(_row(address, answer, list(known.values()), furthest, before.get(address), seconds))
    waits = [(status.member, wait) for status in known.values() for wait in status.waits]
    return Overview(rows, sorted(waits, key=lambda each: -each[1].since_s), followed)


def _row(
    address: str,
    status: MemberStatus,
    everybody: Sequence[MemberStatus],
    furthest: Mapping[tuple[str, str], int],
    before: MemberRow | None,
    seconds: float,
) -> MemberRow:
    others = [each.member for each in everybody if each.group == status.group and each is not status]
    lag = sum(
        number - status.delivered.get(stream, 0)
        for (group, stream), number in furthest.items()
        if group == status.group
    )
    row = MemberRow(
        address,
        group=status.group,
        member=status.member,
        order=status.order,
        hears=status.neighbours,
        not_heard=[name for name in others if name not in status.neighbours],
        deliveries=status.deliveries,
        lag=lag,
        waiting=status.waiting,
        oldest_wait_s=status.oldest_wait_s,
        untaken=status.untaken,
        bytes_in=status.bytes.get("in", 0),
        bytes_out=status.bytes.get("out", 0),
        refused=sum(count for cause, count in status.refused.items() if cause != _ECHO),
        warnings=status.warnings,
        failed=status.failed,
    )
    if before is not None and not before.problem and seconds > 0:
        row.bytes_in_s = max(0, row.bytes_in - before.bytes_in) / seconds
        row.bytes_out_s = max(0, row.bytes_out - before.bytes_out) / seconds
    return row
