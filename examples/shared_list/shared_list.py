"""A list that several people keep, each on a machine of their own, also while they are apart for days.

    python examples/shared_list/shared_list.py picnic/ana.json add bread
    python examples/shared_list/shared_list.py picnic/ben.json done 1
    python examples/shared_list/shared_list.py picnic/ana.json sync

The files are the invitations that `examples/chat/chat.py invite` makes. Every change works without a network:
it is kept, and members exchange what they lack when they meet. A change waits until the changes that its author
had seen are there, so nothing is done to an item that is not there yet. Changes that were made apart merge by
rules that do not depend on the order in which they arrive: a removal wins; of two texts or two marks the one
that was made knowing more changes wins, and between equals the one with the larger id.
"""

import argparse
import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import precede

LAN = ("239.83.7.1", 4701)  # not that of the chat: the two would hear each other and understand nothing
GROUP = "list of {}"


class SharedList:
    """The items by id, each with its text, its mark and who added it. `apply` takes changes in causal order."""

    def __init__(self, items: dict[str, dict[str, Any]] | None = None) -> None:
        self.items = {} if items is None else items

    def apply(self, id: str, source: str, at: int, change: dict[str, Any]) -> None:
        """Apply one change. Applying it again changes nothing. KeyError or TypeError: it is no change."""
        if change["op"] == "add":
            start = {
                "text": str(change["text"]),
                "done": False,
                "by": source,
                "at": at,
                "removed": False,
                "made": {},
            }
            self.items.setdefault(id, start)
            return
        item = self.items[change["item"]]
        if change["op"] == "remove":
            item["removed"] = True
            return
        if change["op"] not in ("text", "done"):
            raise KeyError(change["op"])
        made = [int(change["count"]), id]
        if made > item["made"].get(change["op"], [0, ""]):
            item["made"][change["op"]] = made
            item[change["op"]] = change["value"]

    def shown(self) -> list[tuple[str, dict[str, Any]]]:
        """The items that are not removed, in an order that is the same for everybody."""
        kept = [(id, item) for id, item in self.items.items() if not item["removed"]]
        return sorted(kept, key=lambda entry: (entry[1]["at"], entry[0]))

    def change(self, field: str, number: int, value: object) -> dict[str, Any]:
        """The change that gives a field of the item with this number on the screen a new value."""
        id, item = self.numbered(number)
        count = item["made"].get(field, [0, ""])[0] + 1
        return {"op": field, "item": id, "value": value, "count": count}

    def numbered(self, number: int) -> tuple[str, dict[str, Any]]:
        shown = self.shown()
        if not 1 <= number <= len(shown):
            sys.exit(f"there is no item {number}; the list has {len(shown)}")
        return shown[number - 1]

    def print(self) -> None:
        for number, (_, item) in enumerate(self.shown(), 1):
            mark = "x" if item["done"] else " "
            text = "".join(each if each.isprintable() else "?" for each in str(item["text"]))
            print(f"{number:3} [{mark}] {text}  ({item['by']})")
        if not self.shown():
            print("the list is empty")


class Kept:
    """The list in a file beside the invitation. It is replaced in one step, before a change is acknowledged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.list = SharedList(json.loads(path.read_text()) if path.exists() else None)

    def take(self, message: precede.Delivered) -> None:
        try:
            change = json.loads(message.payload)
            self.list.apply(str(message.id), message.source, message.broadcast_us or 0, change)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            print(f"a message of {message.source} was ignored: it is no change of a list")
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps(self.list.items))
        os.replace(beside, self._path)


def member_of(options: argparse.Namespace) -> precede.Group:
    try:
        member = json.loads(options.invitation.read_text())
        bytes.fromhex(member["key"] + member["identity"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{options.invitation}: not an invitation ({error}); `chat.py invite` makes them")
    return precede.join(
        GROUP.format(member["group"]),
        member["name"],
        key=bytes.fromhex(member["key"]),
        identity=bytes.fromhex(member["identity"]),
        roster={name: bytes.fromhex(public) for name, public in member["roster"].items()},
        store=options.invitation.with_suffix(".list.db"),
        transport=precede.UdpTransport(options.listen, options.peer, None if options.no_lan else LAN),
    )


def change_of(options: argparse.Namespace, items: SharedList) -> dict[str, Any] | None:
    """The change that the command line asks for; None if it only looks."""
    match options.verb:
        case "add":
            return {"op": "add", "text": " ".join(options.words)}
        case "done" | "undone":
            return items.change("done", options.number, options.verb == "done")
        case "rename":
            return items.change("text", options.number, " ".join(options.words))
        case "remove":
            return {"op": "remove", "item": items.numbered(options.number)[0]}
        case _:
            return None


async def follow(group: precede.Group, kept: Kept, loud: bool) -> None:
    async for message in group:
        kept.take(message)
        if loud:
            print(f"\n{message.source} has changed the list:")
            kept.list.print()


async def run(options: argparse.Namespace) -> None:
    kept = Kept(options.invitation.with_suffix(".list.json"))
    async with member_of(options) as group:
        following = asyncio.create_task(follow(group, kept, options.verb == "sync"))
        change = change_of(options, kept.list)
        if change is not None:
            await group.broadcast(json.dumps(change).encode())
        if options.verb == "sync":
            kept.list.print()
            await following
        await asyncio.sleep(options.wait)
        following.cancel()
    kept.list.print()


def address_of(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"expected HOST:PORT, got {text!r}")
    return host, int(port)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("invitation", type=Path)
    parser.add_argument(
        "--wait", type=float, default=2.0, help="seconds to meet others before the command ends"
    )
    parser.add_argument("--peer", action="append", default=[], type=address_of, metavar="HOST:PORT")
    parser.add_argument("--listen", default=("", 0), type=address_of, metavar="HOST:PORT")
    parser.add_argument("--no-lan", action="store_true", help="do not look for members on the LAN")
    parser.set_defaults(verb="show")
    verbs = parser.add_subparsers(dest="verb")
    verbs.add_parser("show", help="show the list; also without any verb")
    verbs.add_parser("sync", help="stay with the others and show every change")
    verbs.add_parser("add", help="add an item").add_argument("words", nargs="+")
    for verb in ("done", "undone", "remove"):
        verbs.add_parser(verb, help=f"{verb}: by the number on the screen").add_argument("number", type=int)
    rename = verbs.add_parser("rename", help="give an item another text")
    rename.add_argument("number", type=int)
    rename.add_argument("words", nargs="+")
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        asyncio.run(run(options))
    except precede.BadInput as error:
        sys.exit(str(error))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
