"""A chat for terminals and phones, in which no answer appears before its question.

    python examples/chat/chat.py invite picnic ana ben phone
    python examples/chat/chat.py run picnic/ana.json --page 8080
    python examples/chat/chat.py link picnic/phone.json 192.168.1.5:8080

`invite` makes the keys of a group: one file for each member, which is carried to that member's machine. `run`
is the chat in a terminal. Members on one LAN find each other. With `--page` this machine also serves the chat
as a page and is the gateway of browsers. `link` prints the address that a phone opens.
docs/guides/chat-in-ten-minutes.md goes through all of it.
"""

import argparse
import asyncio
import base64
import contextlib
import json
import os
import secrets
import socket
import sys
import threading
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import precede

LAN = ("239.83.7.1", 4700)
HERE = Path(__file__).resolve().parent
JAVASCRIPT = HERE.parents[1] / "javascript"
HELP = "/who  /waiting  /history [how many]  /status  /quit"
DIM, BOLD, PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"


# -- invitations ----------------------------------------------------------------------------------------------


def invite(group: str, names: list[str]) -> None:
    """Make a file for each member: the group's key, the member's identity, everybody's public key."""
    if len(set(names)) < len(names):
        sys.exit("invite: each name occurs once")
    key = secrets.token_bytes(32)
    seeds = {name: secrets.token_bytes(32) for name in names}
    publics = {
        name: Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw().hex()
        for name, seed in seeds.items()
    }
    folder = Path(group)
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, seed in seeds.items():
        member = {"group": group, "name": name, "key": key.hex(), "identity": seed.hex(), "roster": publics}
        path = folder / f"{name}.json"
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                json.dump(member, file, indent=1)
        except FileExistsError:
            sys.exit(f"invite: {path} exists already, nothing was changed in it")
        print(f"made {path}")
    print("Each file has secrets of its member: carry it to that member's machine, and to no other.")


def read_invitation(path: Path) -> dict[str, Any]:
    try:
        member: dict[str, Any] = json.loads(path.read_text())
        bytes.fromhex(member["key"] + member["identity"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{path}: not an invitation ({error}); `invite` makes them")
    return member


def link(path: Path, address: str) -> None:
    """Print the address of the page, and behind `#` the invitation, which browsers send to no server."""
    member = json.dumps(read_invitation(path), separators=(",", ":")).encode()
    print(f"http://{address}/#{base64.urlsafe_b64encode(member).decode().rstrip('=')}")


# -- the member -----------------------------------------------------------------------------------------------


def address_of(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"expected HOST:PORT, got {text!r}")
    return host, int(port)


def own_address() -> str:
    """This machine's address on the LAN, as far as the system knows one. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return "127.0.0.1"


def member_of(options: argparse.Namespace) -> precede.Group:
    """Join the group of an invitation, over UDP and, if asked for, over WebSocket."""
    member = read_invitation(options.invitation)
    udp = precede.UdpTransport(options.listen, options.peer, None if options.no_lan else LAN)
    transports: list[precede.Transport] = [udp]
    if options.page is not None or options.via:
        pages = {"/": HERE / "page", "/javascript/": JAVASCRIPT}
        bind = None if options.page is None else (options.page_host, options.page)
        transports.append(precede.WebSocketTransport(bind, options.via, pages=pages))
    others = [name for name in member["roster"] if name != member["name"]]
    founders = (
        [name for name in options.founders.split(",") if name and name != member["name"]]
        if options.founders
        else others
    )
    return precede.join(
        member["group"] if options.order == "causal" else f"{member['group']} in total order",
        member["name"],
        key=bytes.fromhex(member["key"]),
        identity=bytes.fromhex(member["identity"]),
        roster={name: bytes.fromhex(public) for name, public in member["roster"].items()},
        order=options.order,
        members=founders if options.order == "total" else (),
        store=options.invitation.with_suffix(".db" if options.order == "causal" else f".{options.order}.db"),
        transport=transports[0] if len(transports) == 1 else precede.CombinedTransport(*transports),
        metrics=None if options.metrics is None else ("127.0.0.1", options.metrics),
    )


class Screen:
    """What the terminal shows. Only printable characters are printed: nobody else moves the cursor."""

    def __init__(self, group: precede.Group, echo: bool) -> None:
        self._group = group
        self._colours = sys.stdout.isatty()
        self._echo = echo

    def line(self, text: str, style: str = "") -> None:
        shown = "".join(
            character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
        )
        print(f"{style}{shown}{PLAIN}" if self._colours and style else shown, flush=True)

    def message(self, message: precede.Delivered) -> None:
        if self._echo and message.source == self._group.name:
            print("\x1b[1A\x1b[2K", end="")  # in place of the line that was typed
        self.line(text_of(message))

    async def deliveries(self) -> None:
        async for message in self._group:
            self.message(message)

    async def greyed(self) -> None:
        """Show a message that waits for an earlier one at once, greyed. Its place in the order comes later."""
        async for news in self._group.arrivals():
            if news.state == "waiting":
                earlier = len(news.waits_for)
                text = news.payload.decode(errors="replace")
                self.line(f"      {news.source}: {text}  (waits for {earlier} earlier)", DIM)

    async def presence(self) -> None:
        words = {"joined": "is here", "heard_again": "is back", "lost": "is out of reach", "left": "has left"}
        async for event in self._group.events():
            if event.kind in words:
                self.line(f"      {event.member} {words[event.kind]}", DIM)
            else:
                self.line(f"      {event.text}", BOLD)

    def command(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "/who":
            self.line(f"      heard now: {', '.join(sorted(self._group.neighbours())) or 'nobody'}", DIM)
        elif word == "/waiting":
            for item in self._group.waiting():
                self.line(f"      {item.message} waits for {', '.join(map(str, item.waits_for))}", DIM)
            self.line(f"      {len(self._group.waiting())} messages wait", DIM)
        elif word == "/history":
            for message in self._group.history(limit=int(rest) if rest.isdecimal() else 20):
                self.line(text_of(message), DIM)
        elif word == "/status":
            self.line(f"      dropped: {self._group.status()['dropped']}", DIM)
        else:
            self.line(f"      {HELP}", DIM)


def text_of(message: precede.Delivered) -> str:
    """A message as a line. The time is that of its author's clock, which decides nothing, or of this one."""
    at: datetime = message.broadcast_at or message.delivered_at
    return f"{at.astimezone():%H:%M} {message.source}: {message.payload.decode(errors='replace')}"


async def typed_lines() -> AsyncIterator[str]:
    """Yield what is typed. A thread of its own reads it, which ends with the process."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str]()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, "/quit\n")

    threading.Thread(target=read, daemon=True).start()
    while (line := (await lines.get()).rstrip("\n")) != "/quit":
        yield line


async def say(group: precede.Group, screen: Screen, line: str) -> None:
    """Broadcast a line; in a total order, once this member has joined the order."""
    for attempt in range(600):
        try:
            return await group.broadcast(line.encode())
        except precede.NotYet as error:
            if attempt == 0:
                screen.line(f"      {error}; your line is sent then", DIM)
            await asyncio.sleep(0.1)
    screen.line("      your line was not sent: the group was not founded within a minute", BOLD)
    return None


async def run(options: argparse.Namespace) -> None:
    async with member_of(options) as group:
        screen = Screen(group, options.order == "causal" and sys.stdin.isatty() and sys.stdout.isatty())
        screen.line(f"You are {group.name} in {group.group}. Type a line and press Enter, or: {HELP}", DIM)
        if options.page is not None:
            place = f"{options.page_host or own_address()}:{options.page}"
            screen.line(f"Phones: make the address of each with: chat.py link FILE {place}", DIM)
        untaken = group.status()["untaken"]  # those come again, as deliveries
        past = list(group.history(limit=20 + untaken))
        for message in past[: len(past) - untaken]:
            screen.line(text_of(message), DIM)
        tasks = [
            asyncio.create_task(each) for each in (screen.deliveries(), screen.greyed(), screen.presence())
        ]
        async for line in typed_lines():
            if line.startswith("/"):
                screen.command(line)
            elif line.strip():
                await say(group, screen, line)
        await asyncio.sleep(0.5)  # the last line leaves
        for task in tasks:
            task.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("invite", help="make the keys of a group: a file for each member")
    verb.add_argument("group")
    verb.add_argument("names", nargs="+")
    verb = verbs.add_parser("link", help="print the address that a phone opens")
    verb.add_argument("invitation", type=Path)
    verb.add_argument("address", help="HOST:PORT of the member that runs with --page")
    verb = verbs.add_parser("run", help="chat in this terminal")
    verb.add_argument("invitation", type=Path)
    verb.add_argument(
        "--page", type=int, metavar="PORT", help="serve the chat as a page and be a gateway for browsers"
    )
    verb.add_argument("--page-host", default="", help="listen for pages on this address only")
    verb.add_argument(
        "--via", action="append", default=[], metavar="URL", help="a gateway, such as ws://203.0.113.7:8080"
    )
    verb.add_argument(
        "--peer",
        action="append",
        default=[],
        type=address_of,
        metavar="HOST:PORT",
        help="the UDP address of a member",
    )
    verb.add_argument(
        "--listen", default=("", 0), type=address_of, metavar="HOST:PORT", help="this member's UDP address"
    )
    verb.add_argument("--no-lan", action="store_true", help="do not look for members on the LAN")
    verb.add_argument("--order", choices=("causal", "total"), default="causal")
    verb.add_argument(
        "--founders", default="", help="with --order total: who founds the group, such as ana,ben"
    )
    verb.add_argument(
        "--metrics", type=int, metavar="PORT", help="metrics for Prometheus on this port of this machine"
    )
    options = parser.parse_args()
    if options.verb == "invite":
        invite(options.group, options.names)
    elif options.verb == "link":
        link(options.invitation, options.address)
    else:
        try:
            asyncio.run(run(options))
        except (precede.BadInput, precede.Unavailable) as error:
            sys.exit(str(error))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
