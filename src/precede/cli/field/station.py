"""`precede station`: a station of a cellular group: a radio cell, and wires to its neighbours in a tree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from precede.runtime.group import Group

_PROTOCOLS = ("was", "ck")


def command(
    name: Annotated[str, typer.Argument(help="this station's name")],
    group: Annotated[str, typer.Option(help="the group's name")] = "precede",
    protocol: Annotated[str, typer.Option(help="was or ck")] = "was",
    keys: Annotated[
        Path | None, typer.Option(help="key file (precede keys make); needed unless --open")
    ] = None,
    open_door: Annotated[
        bool, typer.Option("--open", help="no keys: the links have their own encryption")
    ] = False,
    bind: Annotated[str, typer.Option(help="HOST:PORT of the radio side, over UDP")] = "127.0.0.1:0",
    wired: Annotated[str, typer.Option(help="HOST:PORT of the wired side, over TCP")] = "127.0.0.1:0",
    neighbour: Annotated[
        list[str] | None, typer.Option(help="wired HOST:PORT of a neighbour in the tree; may be repeated")
    ] = None,
    stations: Annotated[int, typer.Option(help="how many stations there are; 0: not said")] = 0,
    log: Annotated[Path | None, typer.Option(help="folder for the event log")] = None,
    status: Annotated[
        float, typer.Option(min=0, help="print a status line to stderr every so many seconds")
    ] = 0.0,
) -> None:
    """Serve a cell until interrupted. Stations form a tree: each pair of neighbours names each other.

    The cell opens when every neighbour has been heard once, whatever the order in which stations are started.

    \b
    Example:
      precede station north --keys town.keys --bind 127.0.0.1:6001 --wired 127.0.0.1:7001 \\
          --neighbour 127.0.0.1:7002
    """
    import asyncio

    from precede.api import open_member
    from precede.cli.field.node import address
    from precede.runtime.transports.tcp import TcpTransport
    from precede.runtime.transports.udp import UdpTransport

    wires = [address(written, "--neighbour") for written in neighbour or []]
    opened = open_member(
        known_protocol(protocol, _PROTOCOLS),
        "station",
        group,
        name,
        {"stations": stations} if protocol == "was" else {},
        UdpTransport(address(bind, "--bind")),
        wired=TcpTransport(address(wired, "--wired"), wires),
        wires=len(wires),
        keys=group_keys(keys, open_door, group),
        log=log,
    )
    asyncio.run(_serve(opened, status))


async def _serve(group: Group, status: float) -> None:
    import asyncio
    import json
    import signal
    import sys

    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    async with group:
        while not over.is_set():
            try:
                await asyncio.wait_for(over.wait(), status or None)
            except TimeoutError:
                print(json.dumps(group.status()), file=sys.stderr, flush=True)


def known_protocol(protocol: str, known: Sequence[str]) -> str:
    """One of those with hosts and stations."""
    from precede.core.errors import BadInput

    if protocol not in known:
        raise BadInput(f"--protocol {protocol}: none of {', '.join(known)}")
    return protocol


def group_keys(file: Path | None, open_door: bool, group: str) -> tuple[bytes, ...]:
    """The group's keys from a key file; none only where that was said."""
    from precede.core.errors import BadInput
    from precede.runtime.group import group_key
    from precede.runtime.links.keyring import read_keys

    if file is not None and open_door:
        raise BadInput("--keys and --open contradict each other")
    if file is None and not open_door:
        raise BadInput(
            "--keys FILE is needed (make one: precede keys make FILE), or --open on a protected link"
        )
    return tuple(group_key(key, group) for key in read_keys(file)) if file is not None else ()
