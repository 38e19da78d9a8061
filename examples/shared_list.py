"""A shopping list that three people share, once without order and once with causal order.

    python examples/shared_list.py

Ana puts milk on the list; Ben sees it, buys it and strikes it off. Cem's link to Ana is slow. Without order Cem
strikes off milk that is not there yet, and then puts it on the list, where it stays for ever: the three lists
are different for good. With causal order the list waits for what came before.
"""

import asyncio
from typing import Any

import precede
from precede.runtime.group import Group
from precede.runtime.transports.transport import Where
from precede.runtime.transports.udp import UdpTransport

KEY = bytes.fromhex("5d" * 32)  # for a demonstration only: precede keys make
NAMES = ("ana", "ben", "cem")


class SlowTo(UdpTransport):
    """UDP, but frames to one place take their time."""

    slow: Where = None

    def send(self, frame: bytes, where: Where) -> None:
        asyncio.get_running_loop().call_later(0.5 if where == self.slow else 0, super().send, frame, where)


async def follow(group: Group, items: set[str]) -> None:
    """The list at one member: what is put on it and struck off, in the order of delivery."""
    async for message in group:
        what, item = message.payload.decode().split(" ", 1)
        if what == "add":
            items.add(item)
        else:
            items.discard(item)


async def share(order: Any) -> dict[str, set[str]]:
    lines = [SlowTo(("127.0.0.1", 0)) for _ in NAMES]
    how = {"key": KEY, "order": order, "members": NAMES, "dissemination": "direct", "beacon": 0.05}
    ana, ben, cem = (
        precede.join("list", name, transport=line, **how) for name, line in zip(NAMES, lines, strict=True)
    )
    lists: dict[str, set[str]] = {name: set() for name in NAMES}
    async with ana, ben, cem:
        for one in lines:
            for other in lines:
                if one is not other:
                    one.add_peer(other.address)
        while not all(len(group.neighbours()) == 2 for group in (ana, ben, cem)):
            await asyncio.sleep(0.05)
        lines[0].slow = lines[2].address
        followed = [asyncio.create_task(follow(group, lists[group.name])) for group in (ana, ben, cem)]
        await ana.broadcast(b"add milk")
        await ana.broadcast(b"add bread")
        while "bread" not in lists["ben"]:
            await asyncio.sleep(0.01)
        await ben.broadcast(b"remove milk")
        await asyncio.sleep(1.5)
        for task in followed:
            task.cancel()
    return lists


async def main() -> None:
    for order in ("none", "causal"):
        lists = await share(order)
        shown = ", ".join(f"{name}: {' '.join(sorted(items))}" for name, items in lists.items())
        print(f"order {order:<6} -> {shown}")


if __name__ == "__main__":
    asyncio.run(main())
