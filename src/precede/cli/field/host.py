"""`precede host`: a mobile host of a cellular group (WAS, or its rival CK) as a filter for lines of text."""

from pathlib import Path
from typing import Annotated

from precede.cli.parameters import Argument, Option


def command(
    name: Annotated[str, Argument(help="this host's name")],
    station: Annotated[list[str], Option(help="HOST:PORT of a station's radio; may be repeated")],
    group: Annotated[str, Option(help="the group's name")] = "precede",
    protocol: Annotated[str, Option(help="was or ck")] = "was",
    keys: Annotated[Path | None, Option(help="key file (precede keys make); needed unless --open")] = None,
    open_door: Annotated[bool, Option("--open", help="no keys: the link has its own encryption")] = False,
    bind: Annotated[str, Option(help="HOST:PORT to listen on")] = "127.0.0.1:0",
    member: Annotated[list[str] | None, Option(help="another host's name; may be repeated")] = None,
    store: Annotated[Path | None, Option(help="file that survives restarts")] = None,
    log: Annotated[Path | None, Option(help="folder for the event log")] = None,
    status: Annotated[float, Option(min=0, help="print a status line to stderr every so many seconds")] = 0.0,
    as_json: Annotated[bool, Option("--json", help="print each message as a JSON object")] = False,
    linger: Annotated[float, Option(min=0, help="seconds to stay after the input has ended")] = 2.0,
) -> None:
    """Join a cell: each line read is broadcast to the hosts of all cells; deliveries are NAME<tab>TEXT.

    The host is in the cell of the station that it hears. When that station falls silent, it joins the next one.

    \b
    Example:
      precede station north --keys town.keys --bind 127.0.0.1:6001 --wired 127.0.0.1:7001 &
      echo hello | precede host ana --keys town.keys --station 127.0.0.1:6001
    """
    import asyncio

    from precede.api import open_member
    from precede.cli.field.arguments import read_address, read_cellular_protocol, read_group_keys
    from precede.cli.field.lines import run_as_filter, set_up_logging
    from precede.runtime.settings import MemberSettings
    from precede.runtime.transports.udp import UdpTransport

    opened = open_member(
        read_cellular_protocol(protocol),
        "host",
        group,
        name,
        {"durable": store is not None},
        UdpTransport(read_address(bind, "--bind"), [read_address(text, "--station") for text in station]),
        MemberSettings(
            members=member or [],
            keys=read_group_keys(keys, open_door, group),
            store=store,
            log=log,
            alone=True,
        ),
    )
    set_up_logging("text")
    asyncio.run(run_as_filter(opened, status, linger, keys, as_json))
