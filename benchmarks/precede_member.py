"""One member of a Precede group in a process of its own, for `benchmarks.runtime`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import precede
from benchmarks.processes import PAYLOAD, Seat
from precede.runtime.links.authorship import public_of
from precede.runtime.transports.udp import UdpTransport


async def member(seat: Seat) -> None:
    """Join, wait for everybody, broadcast and take. Options: folder, key, signed, lan (an address or None)."""
    names = [f"m{place}" for place in range(seat.members)]
    options = seat.options
    transport = UdpTransport(("127.0.0.1", 0), multicast=options["lan"])
    given: dict[str, Any] = {}
    if options["signed"]:
        seed = os.urandom(32)
        publics = await seat.exchange(public_of(seed))
        given = {"identity": seed, "roster": dict(zip(names, publics, strict=True))}
    group = precede.join(
        "bench",
        names[seat.place],
        key=options["key"],
        transport=transport,
        members=names,
        store=Path(options["folder"]) / f"{names[seat.place]}.db",
        **given,
    )
    async with group:
        addresses = await seat.exchange(transport.address)
        if options["lan"] is None:
            for address in addresses:
                if address != transport.address:
                    transport.add_peer(address)
        while len(group.neighbours()) < seat.members - 1:
            await asyncio.sleep(0.05)

        async def take() -> None:
            async for _ in group:
                seat.delivered()

        async def broadcast(count: int) -> None:
            await asyncio.gather(*(group.broadcast(PAYLOAD) for _ in range(count)))

        taking = asyncio.create_task(take())
        profile = options.get("profile") if seat.place == 0 else None
        if profile:
            import cProfile
            import time

            profiler = cProfile.Profile(time.thread_time)
            asyncio.get_running_loop().call_later(1.0, profiler.enable)
        await seat.broadcast_and_measure(broadcast)
        if profile:
            profiler.disable()
            profiler.dump_stats(profile)

        taking.cancel()
