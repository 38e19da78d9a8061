"""`precede station`: a station of a cellular group: a radio cell, and wires to its neighbours in a tree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from precede.cli.parameters import Argument, Option

if TYPE_CHECKING:
    from precede.runtime.group import Group


def command(
    name: Annotated[str, Argument(help="this station's name")],
    group: Annotated[str, Option(help="the group's name")] = "precede",
    protocol: Annotated[str, Option(help="was or ck")] = "was",
    keys: Annotated[Path | None, Option(help="key file (precede keys make); needed unless --open")] = None,
    open_door: Annotated[bool, Option("--open", help="no keys: the links have their own encryption")] = False,
    bind: Annotated[str, Option(help="HOST:PORT of the radio side, over UDP")] = "127.0.0.1:0",
    wired: Annotated[str, Option(help="HOST:PORT of the wired side, over TCP")] = "127.0.0.1:0",
    neighbour: Annotated[
        list[str] | None, Option(help="wired HOST:PORT of a neighbour in the tree; may be repeated")
    ] = None,
    stations: Annotated[int, Option(help="how many stations there are; 0: unknown")] = 0,
    log: Annotated[Path | None, Option(help="folder for the event log")] = None,
    status: Annotated[float, Option(min=0, help="print a status line to stderr every so many seconds")] = 0.0,
) -> None:
    """Serve a cell until interrupted. Stations form a tree: each pair of neighbours names each other.

    The cell opens when every neighbour has been heard once, whatever the order in which stations are started.
    WAS needs stations that do not crash: one that starts again has forgotten its messages, and hosts may get a
    message too late or twice. CK keeps its order, but may deliver a message twice.

    \b
    Example:
      precede station north --keys town.keys --bind 127.0.0.1:6001 --wired 127.0.0.1:7001 \\
          --neighbour 127.0.0.1:7002
    """
    import asyncio

    from precede.api import open_member
    from precede.cli.field.arguments import read_address, read_cellular_protocol, read_group_keys
    from precede.runtime.settings import MemberSettings
    from precede.runtime.transports.tcp import TcpTransport
    from precede.runtime.transports.udp import UdpTransport

    wires = [read_address(text, "--neighbour") for text in neighbour or []]
    opened = open_member(
        read_cellular_protocol(protocol),
        "station",
        group,
        name,
        {"stations": stations} if protocol == "was" else {},
        UdpTransport(read_address(bind, "--bind")),
        MemberSettings(
            wired=TcpTransport(read_address(wired, "--wired"), wires),
            wires=len(wires),
            keys=read_group_keys(keys, open_door, group),
            log=log,
        ),
    )
    asyncio.run(_serve(opened, status))


async def _serve(group: Group, status: float) -> None:
    """Run a station until SIGINT or SIGTERM, with a status line every `status` seconds, if not 0."""
    import asyncio
    import signal
    import sys

    import msgspec

    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    async with group:
        while not over.is_set():
            try:
                await asyncio.wait_for(over.wait(), status or None)
            except TimeoutError:
                print(msgspec.json.encode(group.status()).decode(), file=sys.stderr, flush=True)
