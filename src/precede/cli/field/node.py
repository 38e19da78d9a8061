"""`precede node`: a member of a group as a filter for lines of text."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from precede.cli.parameters import Argument, Option

if TYPE_CHECKING:
    from precede.api import Order
    from precede.runtime.transports.profiles import ProfileName


class LogFormat(Enum):
    """How `--log-format` writes the lines about a member."""

    TEXT = "text"
    JSON = "json"


def command(
    name: Annotated[str, Argument(help="this member's name")],
    group: Annotated[str, Option(help="the group's name")] = "precede",
    keys: Annotated[Path | None, Option(help="key file (precede keys make), unless --open")] = None,
    identity: Annotated[Path | None, Option(help="what this member signs with; with --roster")] = None,
    roster: Annotated[Path | None, Option(help="public keys of all members, signed or not")] = None,
    admin: Annotated[str | None, Option(help="the public key that signs the roster")] = None,
    open_door: Annotated[bool, Option("--open", help="no keys: the link has its own encryption")] = False,
    bind: Annotated[str | None, Option(help="HOST:PORT to listen on")] = None,
    peer: Annotated[list[str] | None, Option(help="HOST:PORT of another member; may be repeated")] = None,
    lan: Annotated[str | None, Option(help="auto, or a multicast HOST:PORT: find members on the LAN")] = None,
    member: Annotated[list[str] | None, Option(help="another member's name; may be repeated")] = None,
    order: Annotated[str, Option(help="none, fifo, causal, delta, multicast or total")] = "causal",
    lifetime: Annotated[
        str | None, Option(help="how long a message may be waited for; with --order delta")
    ] = None,
    store: Annotated[Path | None, Option(help="file that survives restarts")] = None,
    log: Annotated[Path | None, Option(help="folder for the event log")] = None,
    redact: Annotated[bool, Option("--redact", help="pseudonyms instead of names in the log")] = False,
    profile: Annotated[str, Option(help="the network: lan, internet, ble or lora")] = "lan",
    segment: Annotated[float | None, Option(help="seconds between two files of the event log")] = None,
    metrics: Annotated[str | None, Option(help="HOST:PORT for Prometheus and precede top")] = None,
    log_format: Annotated[LogFormat, Option(help="lines about this member on stderr")] = LogFormat.TEXT,
    status: Annotated[float, Option(min=0, help="seconds between status lines on stderr")] = 0.0,
    as_json: Annotated[bool, Option("--json", help="print each message as a JSON object")] = False,
    linger: Annotated[float, Option(min=0, help="seconds to stay after the input has ended")] = 2.0,
) -> None:
    """Join a group: each line read is broadcast, each message delivered is printed as NAME<tab>TEXT, escaped.

    \b
    Example:
      precede keys make picnic.keys
      echo hello | precede node ana --keys picnic.keys --bind 127.0.0.1:5001 --peer 127.0.0.1:5002
    """
    import asyncio

    from precede.api import join
    from precede.cli.field.arguments import read_address, read_any_roster, read_public_key, read_secrets
    from precede.cli.field.lines import run_as_filter, set_up_logging
    from precede.runtime.links.keyring import read_identity

    set_up_logging(log_format.value)
    joined = join(
        group,
        name,
        key=read_secrets(keys, open_door),
        order=cast("Order", order),
        lifetime=lifetime,
        store=store,
        members=member or [],
        bind=None if bind is None else read_address(bind, "--bind"),
        peers=[read_address(text, "--peer") for text in peer or []],
        lan=lan == "auto" if lan in (None, "auto") else read_address(lan, "--lan"),
        log=log,
        redact=redact,
        segment=segment,
        profile=cast("ProfileName", profile),
        metrics=None if metrics is None else read_address(metrics, "--metrics"),
        identity=None if identity is None else read_identity(identity),
        roster=read_any_roster(roster, admin),
        admin=None if admin is None else read_public_key(admin),
    )
    asyncio.run(run_as_filter(joined, status, linger, keys, as_json, roster if admin else None))
