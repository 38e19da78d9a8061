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
import logging
import os
import re
import secrets
import shutil
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width

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
    for name in (group, *names):
        if not re.fullmatch(r"\w[\w .-]{0,39}", name):
            sys.exit(f"invite: {name!r} cannot be the name of a file: use at most 40 letters, digits, - and _")
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


def link(path: Path, address: tuple[str, int], gateway: str | None) -> None:
    """Print the address of the page, and behind `#` the invitation, which browsers send to no server."""
    invitation = read_invitation(path)
    if gateway is not None:
        if gateway not in invitation["roster"]:
            sys.exit(f"link: --total needs the name of the gateway, and {gateway} is no member")
        invitation |= {"group": in_total_order(invitation["group"]), "gateway": gateway}
    member = json.dumps(invitation, separators=(",", ":")).encode()
    print(f"http://{address[0]}:{address[1]}/#{base64.urlsafe_b64encode(member).decode().rstrip('=')}")


# -- the member -----------------------------------------------------------------------------------------------


def address_of(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"expected HOST:PORT, got {text!r}")
    return host, int(port)


def own_address() -> str:
    """This machine's address on the LAN, as far as the system knows one. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return "127.0.0.1"


def in_total_order(group: str) -> str:
    """The name of the total-order group, which is another one than the causal group."""
    return f"{group} in total order"


class Chat:
    """The groups of one member: that of the chat and, for a gateway of a total order, that of its guests."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.invitation = read_invitation(options.invitation)
        self.name = self.invitation["name"]
        self.total = options.order == "total"
        self._path = options.invitation
        self._identity = bytes.fromhex(self.invitation["identity"])
        self._roster = {name: bytes.fromhex(public) for name, public in self.invitation["roster"].items()}
        group = self.invitation["group"]
        if self.total:
            group = in_total_order(group)
        udp = precede.UdpTransport(options.listen, options.peer, None if options.no_lan else LAN)
        pages = None
        if options.page is not None or options.via:
            folders = {"/": HERE / "page", "/javascript/": JAVASCRIPT}
            bind = None if options.page is None else (options.page_host, options.page)
            pages = precede.WebSocketTransport(bind, options.via, pages=folders)
        joined = pages is not None and not self.total
        self.group = self._join(
            group,
            f".{options.order}.db",
            precede.CombinedTransport(udp, pages) if joined and pages is not None else udp,
            order=options.order,
            members=[name for name in options.founders.split(",") if name not in ("", self.name)],
            metrics=None if options.metrics is None else ("127.0.0.1", options.metrics),
        )
        self._payloads = precede.SignedPayloads(group, self.name, self._identity, self._roster)
        self.notice: Callable[[str], None] = lambda text: None
        self.guests: precede.Group | None = None
        self._gateway: precede.GuestGateway | None = None
        if pages is not None and self.total:
            self.guests = self._join(precede.GuestGateway.group_of(group), ".guests.db", pages)
            self._gateway = precede.GuestGateway(self.guests, self._payloads, self._send)

    def _join(self, group: str, suffix: str, transport: precede.Transport, **rest: Any) -> precede.Group:
        return precede.join(
            group,
            self.name,
            key=bytes.fromhex(self.invitation["key"]),
            identity=self._identity,
            roster=self._roster,
            store=self._path.with_suffix(suffix),
            transport=transport,
            **rest,
        )

    async def _send(self, payload: bytes) -> None:
        """Broadcast a payload; in a total order, once this member has joined the order."""
        while True:
            try:
                return await self.group.broadcast(payload)
            except precede.NotYet as error:
                self.notice(str(error))
                await asyncio.sleep(0.2)

    async def say(self, line: str) -> None:
        content = line.encode()
        await self._send(self._payloads.sign(content) if self.total else content)

    def past(self, limit: int) -> list[str]:
        """The last lines that were shown. Those that were delivered and not taken come again, as deliveries."""
        untaken = self.group.status()["untaken"]
        kept = list(self.group.history(limit=limit + untaken))
        read = [self._line(message, self._payloads.read) for message in kept[: len(kept) - untaken]]
        return [line for line in read if line is not None]

    def remember(self) -> None:
        """After a restart: note what was delivered before, so that a repetition of it is recognised."""
        if self.total:
            for message in self.group.history():
                self._payloads.open(message.payload)

    async def lines(self) -> AsyncIterator[str]:
        """Yield each line as it is delivered. A gateway tells its guests first."""
        async for message in self.group:
            if self._gateway is not None:
                await self._gateway.forward(message)
            line = self._line(message, self._payloads.open)
            if line is not None:
                yield line

    async def hear_guests(self) -> None:
        if self._gateway is not None:
            await self._gateway.listen()

    def _line(self, message: precede.Delivered, opened: Any) -> str | None:
        """A message as a line; None if nobody signed it. The time is that of a clock, and decides nothing."""
        said = opened(message.payload) if self.total else (message.source, message.payload)
        if said is None:
            return None
        at: datetime = message.broadcast_at or message.delivered_at
        return f"{at.astimezone():%H:%M} {said[0]}: {said[1].decode(errors='replace')}"


class Screen:
    """What the terminal shows. Only printable characters are printed: nobody else moves the cursor."""

    def __init__(self, chat: Chat, echo: bool) -> None:
        self._chat = chat
        self._noticed = ""
        self._group = chat.group
        self._colours = sys.stdout.isatty()
        self._echo = echo

    def line(self, text: str, style: str = "") -> None:
        shown = "".join(
            character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
        )
        print(f"{style}{shown}{PLAIN}" if self._colours and style else shown, flush=True)

    def notice(self, text: str) -> None:
        """Say why a line is not sent yet, once for each reason."""
        if text != self._noticed:
            self._noticed = text
            self.line(f"      {text}; your line is sent then", DIM)

    def typed(self, text: str) -> None:
        """Erase a line that was typed: it appears when it is delivered, and greyed until the order has it."""
        if self._echo:
            width = sum(2 if east_asian_width(character) in "WF" else 1 for character in text)
            rows = max(1, -(-width // shutil.get_terminal_size().columns))
            print(f"\x1b[{rows}A\x1b[J", end="")
            if self._chat.total:
                self.line(f"      {self._chat.name}: {text}  (waits for its place in the order)", DIM)

    async def deliveries(self) -> None:
        async for line in self._chat.lines():
            self.line(line)

    async def greyed(self) -> None:
        """Show a message that waits for an earlier one at once, greyed. Its place in the order comes later."""
        async for news in self._group.arrivals():
            if news.state == "waiting":
                earlier = len(news.waits_for)
                text = news.payload.decode(errors="replace")
                self.line(f"      {news.source}: {text}  (waits for {earlier} earlier)", DIM)

    async def presence(self, group: precede.Group) -> None:
        words = {"joined": "is here", "heard_again": "is back", "lost": "is out of reach", "left": "has left"}
        async for event in group.events():
            if event.kind in words:
                self.line(f"      {event.member} {words[event.kind]}", DIM)
            elif group is self._group:  # a group of guests may be empty
                self.line(f"      {event.text}", BOLD)

    def command(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "/who":
            groups = [group for group in (self._group, self._chat.guests) if group is not None]
            heard = sorted(name for group in groups for name in group.neighbours())
            self.line(f"      heard now: {', '.join(heard) or 'nobody'}", DIM)
        elif word == "/waiting":
            for item in self._group.waiting():
                self.line(f"      {item.message} waits for {', '.join(map(str, item.waits_for))}", DIM)
            self.line(f"      {len(self._group.waiting())} messages wait", DIM)
        elif word == "/history":
            for earlier in self._chat.past(int(rest) if rest.isdecimal() else 20):
                self.line(earlier, DIM)
        elif word == "/status":
            counts = self._group.status()["dropped"].items()
            dropped = ", ".join(f"{count} {reason}" for reason, count in sorted(counts)) or "nothing"
            self.line(f"      dropped: {dropped} (docs/security.md explains these words)", DIM)
        else:
            self.line(f"      {HELP}", DIM)


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


async def run(options: argparse.Namespace) -> None:
    logging.getLogger("precede").setLevel(logging.ERROR)  # warnings are shown as events
    chat = Chat(options)
    async with contextlib.AsyncExitStack() as groups:
        for group in (chat.group, chat.guests):
            if group is not None:
                await groups.enter_async_context(group)
        screen = Screen(chat, sys.stdin.isatty() and sys.stdout.isatty())
        screen.line(f"You are {chat.name} in {chat.group.group}. Type a line and press Enter.", DIM)
        screen.line(f"Commands: {HELP}", DIM)
        if options.page is not None:
            place = f"{options.page_host or own_address()}:{options.page}"
            total = f" --total {chat.name}" if chat.total else ""
            screen.line(f"For phones: chat.py link FILE {place}{total}", DIM)
        chat.notice = screen.notice
        for line in chat.past(20):
            screen.line(line, DIM)
        chat.remember()
        work = [screen.deliveries(), screen.greyed(), screen.presence(chat.group), chat.hear_guests()]
        if chat.guests is not None:
            work.append(screen.presence(chat.guests))
        tasks = [asyncio.create_task(each) for each in work]
        sending = asyncio.Queue[str]()
        tasks.append(asyncio.create_task(send_lines(chat, sending)))
        async for line in typed_lines():
            if line.startswith("/"):
                screen.command(line)
            elif line.strip():
                screen.typed(line)
                sending.put_nowait(line)
        await asyncio.sleep(0.5)  # the last line leaves
        for task in tasks:
            task.cancel()


async def send_lines(chat: Chat, lines: asyncio.Queue[str]) -> None:
    while True:
        await chat.say(await lines.get())


def check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End with one line if options are missing or do not go together."""
    if options.order == "total" and not options.founders:
        parser.error("--order total needs --founders: who founds the group, such as --founders ana,ben")
    if options.order == "causal" and options.founders:
        parser.error("--founders goes with --order total")
    if options.order == "total" and options.via:
        parser.error("--via is for the causal order: in a total order name members with --peer")
    if options.page is not None and not (JAVASCRIPT / "node_modules" / "@noble").is_dir():
        parser.error(f"--page needs the libraries of the page: run `make javascript` in {JAVASCRIPT.parent}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("invite", help="make the keys of a group: a file for each member")
    verb.add_argument("group")
    verb.add_argument("names", nargs="+")
    verb = verbs.add_parser("link", help="print the address that a phone opens")
    verb.add_argument("invitation", type=Path)
    where = "where the member with --page is, as it prints it"
    verb.add_argument("address", type=address_of, metavar="HOST:PORT", help=where)
    verb.add_argument("--total", metavar="NAME", help="a guest of the total order; NAME is that member")
    verb = verbs.add_parser("run", help="chat in this terminal")
    verb.add_argument("invitation", type=Path)
    verb.add_argument("--page", type=int, metavar="PORT", help="serve the page; be a gateway for browsers")
    verb.add_argument("--page-host", default="", help="listen for pages on this address only")
    gateway = "a gateway, such as ws://203.0.113.7:8080"
    verb.add_argument("--via", action="append", default=[], metavar="URL", help=gateway)
    udp: dict[str, Any] = {"type": address_of, "metavar": "HOST:PORT"}
    verb.add_argument("--peer", action="append", default=[], **udp, help="the UDP address of a member")
    verb.add_argument("--listen", default=("", 0), **udp, help="this member's UDP address")
    verb.add_argument("--no-lan", action="store_true", help="do not look for members on the LAN")
    verb.add_argument("--order", choices=("causal", "total"), default="causal")
    founders = "with --order total: who founds the group, such as ana,ben"
    verb.add_argument("--founders", default="", help=founders)
    verb.add_argument("--metrics", type=int, metavar="PORT", help="metrics for Prometheus, on 127.0.0.1")
    options = parser.parse_args()
    if options.verb == "run":
        check(parser, options)
    if options.verb == "invite":
        invite(options.group, options.names)
    elif options.verb == "link":
        link(options.invitation, options.address, options.total)
    else:
        try:
            asyncio.run(run(options))
        except (precede.BadInput, precede.Unavailable) as error:
            sys.exit(str(error))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print()
