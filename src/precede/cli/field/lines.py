"""A member as a filter: lines of standard input are broadcast, delivered messages are printed."""

import asyncio
import json
import logging
import os
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from precede.core.errors import BadInput, NotYet, Refused
from precede.runtime.deliveries import Delivered
from precede.runtime.group import Group
from precede.runtime.links.keyring import read_keys, read_signed_roster
from precede.runtime.observe.json_lines import JsonFormatter

_RETRY_S: Final = 0.1
_REPORT_RETRIES_S: Final = 10.0
_KEYS_S: Final = 1.0
_BAD_KEYS_S: Final = 60.0
_NEIGHBOURS_S: Final = 0.5


def set_up_logging(form: str) -> None:
    """Write log lines to standard error: warnings as text, or (`json`) every noteworthy thing as an object."""
    if form == "json":
        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter())
        logging.basicConfig(handlers=[handler], level=logging.INFO)
    else:
        logging.basicConfig(format="precede node: %(message)s", level=logging.WARNING)


async def run_as_filter(
    group: Group,
    status: float,
    linger: float,
    keys: Path | None,
    as_json: bool = False,
    roster: Path | None = None,
) -> None:
    """Broadcast the lines of standard input and print what is delivered, until the input ends.

    The member stays `linger` seconds more. Prints a status line every `status` seconds, if not 0, prints
    warnings about the group, and follows changes of the key file. If a person types the input, they are told
    what to do and who is heard.
    """
    async with group:
        work: list[Coroutine[Any, Any, None]] = [
            _broadcast_lines(group, linger),
            _print_deliveries(group, as_json),
        ]
        if status:
            work.append(_print_status(group, status))
        if sys.stdin.isatty() and sys.stderr.isatty():
            work.append(_tell_who_is_heard(group))
        tasks = [asyncio.create_task(coroutine) for coroutine in work]
        follower = [] if keys is None else [asyncio.create_task(_follow_keys(group, keys))]
        if roster is not None:
            follower.append(asyncio.create_task(_follow_roster(group, roster)))
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in (*tasks, *follower):
            task.cancel()
        for task in done:
            task.result()


async def _broadcast_lines(group: Group, linger: float) -> None:
    lines = _read_lines()
    while (line := await lines.get()) is not None:
        await _broadcast(group, line)
    await asyncio.sleep(linger)


async def _broadcast(group: Group, payload: bytes) -> None:
    """Broadcast a line; retry while the node does not accept messages yet (a host that has not joined)."""
    reported = time.monotonic()
    while True:
        try:
            return await group.broadcast(payload)
        except NotYet as error:
            if time.monotonic() > reported + _REPORT_RETRIES_S:
                reported = time.monotonic()
                print(f"precede: {group.name}: {error}; still trying", file=sys.stderr, flush=True)
            await asyncio.sleep(_RETRY_S)
        except Refused as error:
            raise BadInput(f"{group.name}: {error}") from error


async def _print_deliveries(group: Group, as_json: bool) -> None:
    async for message in group:
        print(json_line(message) if as_json else text_line(message), flush=True)


def text_line(message: Delivered) -> str:
    """Write a delivered message as NAME<tab>TEXT. Control characters are escaped, so one message is one line.

    >>> from precede.core.identity import MessageId
    >>> text_line(Delivered("ana", 1, b"a\\nben\\tI said that \\x1b[31m", MessageId(1, 0, 1)))
    'ana\\ta\\\\nben\\\\tI said that \\\\x1b[31m'
    """
    return f"{printable(message.source)}\t{printable(message.payload.decode(errors='replace'))}"


def json_line(message: Delivered) -> str:
    """Write a delivered message as a JSON object on one line. Bytes that are no text are in base64.

    >>> from precede.core.identity import MessageId
    >>> json_line(Delivered("ana", 1, b"\\xff", MessageId(1, 0, 1)))
    '{"source": "ana", "incarnation": 0, "number": 1, "payload_base64": "/w=="}'
    """
    id = message.id
    said: dict[str, str | int] = {"source": message.source, "incarnation": id.incarnation, "number": id.number}
    try:
        said["payload"] = message.payload.decode()
    except UnicodeDecodeError:
        said["payload_base64"] = b64encode(message.payload).decode()
    return json.dumps(said)


def printable(text: str) -> str:
    """Escape every character that a terminal would not show as such (controls, newlines)."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


async def _print_status(group: Group, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        print(msgspec.json.encode(group.status()).decode(), file=sys.stderr, flush=True)


async def _tell_who_is_heard(group: Group) -> None:
    print("Type a line and Enter: every member gets it. Ctrl-C ends.", file=sys.stderr, flush=True)
    heard: list[str] = []
    while True:
        now = group.neighbours()
        news = [f"{name} is heard" for name in now if name not in heard]
        news += [f"{name} is no longer heard" for name in heard if name not in now]
        for line in news:
            print(f"precede node: {printable(line)}", file=sys.stderr, flush=True)
        heard = now
        await asyncio.sleep(_NEIGHBOURS_S)


async def _follow_keys(group: Group, file: Path) -> None:
    """Use the key file's new keys within a second of a change (`precede keys rotate`).

    If the file cannot be read, say so, keep the keys, and try again after a minute.
    """
    current = read_keys(file)
    while True:
        await asyncio.sleep(_KEYS_S)
        try:
            latest = read_keys(file)
        except BadInput as error:
            print(f"precede node: {error}; the keys read before stay in use", file=sys.stderr)
            await asyncio.sleep(_BAD_KEYS_S)
            continue
        if latest != current:
            group.rekey(*latest)
            current = latest


async def _follow_roster(group: Group, file: Path) -> None:
    """Put newer epochs of a signed roster into force within a second (`precede keys remove`, `enrol`)."""
    current = read_signed_roster(file)
    while True:
        await asyncio.sleep(_KEYS_S)
        try:
            latest = read_signed_roster(file)
            if latest != current:
                group.update_roster(latest)
                current = latest
        except BadInput as error:
            print(f"precede node: {error}; the roster read before stays in force", file=sys.stderr)
            await asyncio.sleep(_BAD_KEYS_S)


def _read_lines() -> asyncio.Queue[bytes | None]:
    """Read standard input in a thread. Return a queue of its lines, with None at its end.

    The thread reads the file descriptor: a thread that waits in `sys.stdin` would keep the process from ending.
    """
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(100)
    loop, source = asyncio.get_running_loop(), sys.stdin.fileno()

    def put(line: bytes | None) -> None:
        asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()

    def read() -> None:
        with suppress(RuntimeError, CancelledError):  # the event loop has ended meanwhile
            rest = b""
            while chunk := os.read(source, 1 << 16):
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    put(line)
            if rest:
                put(rest)
            put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines
