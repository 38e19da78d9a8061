"""A shopping list that three people share, once without order and once with causal order.

    python examples/shared_list.py

Ana puts milk on the list; Ben sees it, buys it and strikes it off. Cem's link from Ana is slow. Without order
Cem receives the removal first, removes nothing, and then adds the milk, which stays: the three lists differ for
good. With causal order Cem's removal waits until the addition is delivered.
"""

import asyncio
from collections.abc import Hashable

import precede

KEY = bytes.fromhex("5d" * 32)  # for a demonstration only: precede keys make
NAMES = ("ana", "ben", "cem")


class SlowTo(precede.UdpTransport):
    """UDP with a delay of half a second to one address."""

    slow: Hashable = None

    def send(self, frame: bytes, where: Hashable) -> None:
        asyncio.get_running_loop().call_later(0.5 if where == self.slow else 0, super().send, frame, where)


async def follow(group: precede.Group, items: set[str]) -> None:
    """Keep one member's copy of the list: apply additions and removals in the order of delivery."""
    async for message in group:
        action, item = message.payload.decode().split(" ", 1)
        if action == "add":
            items.add(item)
        else:
            items.discard(item)


def member(name: str, order: precede.Order, transport: precede.Transport) -> precede.Group:
    """One of the three people. Messages go directly from their sender to everybody."""
    return precede.join(
        "list",
        name,
        key=KEY,
        order=order,
        members=NAMES,
        transport=transport,
        beacon=0.05,
        options={"dissemination": "direct"},
    )


async def share(order: precede.Order) -> dict[str, set[str]]:
    """Each person's list after Ana's and Ben's changes."""
    transports = [SlowTo(("127.0.0.1", 0)) for _ in NAMES]
    ana, ben, cem = (member(name, order, line) for name, line in zip(NAMES, transports, strict=True))
    lists: dict[str, set[str]] = {name: set() for name in NAMES}
    async with ana, ben, cem:
        for transport in transports:
            for other in transports:
                if transport is not other:
                    transport.add_peer(other.address)
        while not all(len(group.neighbours()) == 2 for group in (ana, ben, cem)):
            await asyncio.sleep(0.05)
        transports[0].slow = transports[2].address
        tasks = [asyncio.create_task(follow(group, lists[group.name])) for group in (ana, ben, cem)]
        await ana.broadcast(b"add milk")
        await ana.broadcast(b"add bread")
        while "bread" not in lists["ben"]:
            await asyncio.sleep(0.01)
        await ben.broadcast(b"remove milk")
        await asyncio.sleep(1.5)
        for task in tasks:
            task.cancel()
    return lists


async def main() -> None:
    orders: tuple[precede.Order, ...] = ("none", "causal")
    for order in orders:
        lists = await share(order)
        shown = ", ".join(f"{name}: {' '.join(sorted(items))}" for name, items in lists.items())
        print(f"order {order:<6} -> {shown}")


if __name__ == "__main__":
    asyncio.run(main())
