"""How long after a start the first message of a total order is possible, with everybody up on a LAN.

Members without stores, sealed, in one process, over a multicast group on loopback. A start is measured from the
first `join` to the instant at which one member, and at which every member, has broadcast without `NotYet`; and
until everybody has delivered all of these messages, in the same order.

    python -m benchmarks.founding --members 5 --starts 20 --json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from typing import Any, Final

import precede
from precede.core.errors import NotYet
from precede.runtime.transports.udp import UdpTransport

_MULTICAST: Final = ("239.83.7.1", 47_142)


async def start(members: int) -> tuple[float, float, float]:
    """Start a group; returns the seconds until one member, and all, could broadcast, and all delivered."""
    names = [f"m{place}" for place in range(members)]
    key = os.urandom(32)
    groups = [
        precede.join(
            "start",
            name,
            key=key,
            order="total",
            members=names,
            transport=UdpTransport(("127.0.0.1", 0), multicast=_MULTICAST),
        )
        for name in names
    ]
    begin = time.monotonic()
    taken: dict[str, list[bytes]] = {name: [] for name in names}

    async def say(group: precede.Group) -> float:
        while True:
            try:
                await group.broadcast(group.name.encode())
                return time.monotonic() - begin
            except NotYet:
                await asyncio.sleep(0.02)

    async def take(group: precede.Group) -> None:
        async for message in group:
            taken[group.name].append(message.payload)
            if len(taken[group.name]) == members:
                return

    await asyncio.gather(*(group.__aenter__() for group in groups))
    taking = [asyncio.create_task(take(group)) for group in groups]
    possible = await asyncio.gather(*(say(group) for group in groups))
    await asyncio.gather(*taking)
    delivered = time.monotonic() - begin
    await asyncio.gather(*(group.close() for group in groups))
    if any(order != taken[names[0]] for order in taken.values()):
        raise SystemExit(f"the members do not agree: {taken}")
    return min(possible), max(possible), delivered


def main() -> None:
    """Print median and maximum over the starts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="one object")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    measured = [asyncio.run(start(given.members)) for _ in range(given.starts)]
    result: dict[str, Any] = {"members": given.members, "starts": given.starts, "load": round(load, 1)}
    for name, times in zip(("first", "all", "delivered"), zip(*measured, strict=True), strict=True):
        in_order = sorted(times)
        result[f"{name}_s_p50"] = round(in_order[len(in_order) // 2], 2)
        result[f"{name}_s_max"] = round(in_order[-1], 2)
    if given.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:<18} {value}")


if __name__ == "__main__":
    main()
