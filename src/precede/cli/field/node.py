"""`precede node`: a member of a group as a filter: lines in are broadcast, lines out are delivered."""

from __future__ import annotations

from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import asyncio

    from precede.runtime.group import Group

_RETRY_S = 0.1
_SAY_SO_S = 10.0


def command(
    name: Annotated[str, typer.Argument(help="this member's name")],
    group: Annotated[str, typer.Option(help="the group's name")] = "precede",
    keys: Annotated[
        Path | None, typer.Option(help="key file (precede keys make); needed unless --open")
    ] = None,
    identity: Annotated[
        Path | None, typer.Option(help="what this member signs with (precede keys identity); with --roster")
    ] = None,
    roster: Annotated[
        Path | None, typer.Option(help="public keys of all members: only what they signed is let in")
    ] = None,
    open_door: Annotated[bool, typer.Option("--open", help="no keys: the link has its own encryption")] = False,
    bind: Annotated[str, typer.Option(help="HOST:PORT to listen on")] = "127.0.0.1:0",
    peer: Annotated[list[str] | None, typer.Option(help="HOST:PORT of another member; may be repeated")] = None,
    lan: Annotated[
        str | None, typer.Option(help="multicast HOST:PORT on which members find each other")
    ] = None,
    member: Annotated[list[str] | None, typer.Option(help="another member's name; may be repeated")] = None,
    order: Annotated[str, typer.Option(help="none, fifo, causal, delta, multicast or total")] = "causal",
    lifetime: Annotated[str | None, typer.Option(help="how long a message may be waited for")] = None,
    store: Annotated[Path | None, typer.Option(help="file that survives restarts")] = None,
    log: Annotated[Path | None, typer.Option(help="folder for the event log")] = None,
    status: Annotated[
        float, typer.Option(min=0, help="print a status line to stderr every so many seconds")
    ] = 0.0,
    linger: Annotated[float, typer.Option(min=0, help="seconds to stay after the input has ended")] = 2.0,
) -> None:
    """Join a group: each line read is broadcast, each message delivered is printed as NAME<tab>TEXT.

    \b
    Example:
      precede keys make picnic.keys
      echo hello | precede node ana --keys picnic.keys --bind 127.0.0.1:5001 --peer 127.0.0.1:5002
    """
    import asyncio

    from precede.api import join
    from precede.core.errors import BadInput
    from precede.runtime.links.keyring import read_identity, read_keys, read_roster

    if keys is not None and open_door:
        raise BadInput("--keys and --open contradict each other")
    if keys is None and not open_door:
        raise BadInput(
            "--keys FILE is needed (make one: precede keys make FILE), or --open on a protected link"
        )
    wanted: Any = order
    joined = join(
        group,
        name,
        key=read_keys(keys) if keys is not None else None,
        order=wanted,
        lifetime=lifetime,
        store=store,
        members=member or [],
        bind=address(bind, "--bind"),
        peers=[address(written, "--peer") for written in peer or []],
        log=log,
        lan=None if lan is None else address(lan, "--lan"),
        identity=None if identity is None else read_identity(identity),
        roster=None if roster is None else read_roster(roster),
    )
    asyncio.run(as_filter(joined, status, linger, keys))


async def as_filter(group: Group, status: float, linger: float, keys: Path | None) -> None:
    """Lines of standard input are broadcast, what is delivered is printed."""
    import asyncio
    import json
    import sys

    from precede.core.errors import BadInput
    from precede.runtime.links.keyring import read_keys

    async def show() -> None:
        async for message in group:
            text = message.payload.decode("utf-8", errors="replace")
            print(f"{message.source}\t{text}", flush=True)

    async def report() -> None:
        while status:
            await asyncio.sleep(status)
            print(json.dumps(group.status()), file=sys.stderr, flush=True)

    async def follow_keys(file: Path) -> None:
        """A key file that changes while the node runs (`precede keys rotate`) is taken over within a second."""
        known = read_keys(file)
        while True:
            await asyncio.sleep(1)
            try:
                found = read_keys(file)
            except BadInput as error:
                print(f"precede node: {error}; going on with the keys that were there", file=sys.stderr)
                await asyncio.sleep(60)
                continue
            if found != known:
                group.rekey(*found)
                known = found

    async def speak() -> None:
        lines = read_lines()
        while (line := await lines.get()) is not None:
            await _say(group, line)
        await asyncio.sleep(linger)

    async with group:
        tasks = [asyncio.create_task(work()) for work in (speak, show, report)]
        if keys is not None:
            tasks.append(asyncio.create_task(follow_keys(keys)))
        running = set(tasks[: 2 + bool(status)])
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for task in done:
            task.result()


def read_lines() -> asyncio.Queue[bytes | None]:
    """Standard input line by line, None at its end.

    A thread reads the descriptor itself: one that waits in `sys.stdin` would keep the process from ending.
    """
    import asyncio
    import os
    import sys
    import threading

    lines: asyncio.Queue[bytes | None] = asyncio.Queue(100)
    loop, source = asyncio.get_running_loop(), sys.stdin.fileno()

    def give(line: bytes | None) -> None:
        asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()

    def read() -> None:
        with suppress(RuntimeError, CancelledError):  # the loop has ended meanwhile
            rest = b""
            while chunk := os.read(source, 1 << 16):
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    give(line)
            if rest:
                give(rest)
            give(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


async def _say(group: Group, payload: bytes) -> None:
    """A node that cannot take it yet (a host that has not joined) is asked again until it can."""
    import asyncio
    import sys
    import time

    from precede.core.errors import BadInput, NotYet, Refused

    said_so = time.monotonic()
    while True:
        try:
            return await group.broadcast(payload)
        except NotYet as error:
            if time.monotonic() > said_so + _SAY_SO_S:
                said_so = time.monotonic()
                print(f"precede: {group.name}: {error}; still trying", file=sys.stderr, flush=True)
            await asyncio.sleep(_RETRY_S)
        except Refused as error:
            raise BadInput(f"{group.name}: {error}") from error


def address(written: str, option: str) -> tuple[str, int]:
    """HOST:PORT; a host's name is looked up once, here: whoever answers is known by its number."""
    import socket

    from precede.core.errors import BadInput

    host, colon, port = written.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise BadInput(f"{option} {written}: write HOST:PORT")
    try:
        found = socket.getaddrinfo(host or "127.0.0.1", int(port), socket.AF_INET, socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise BadInput(f"{option} {written}: no such host ({error})") from None
    return str(found[0][4][0]), int(port)
