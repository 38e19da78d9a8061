"""Members in processes of their own broadcast at a steady rate, sealed and signed: does everything arrive?

Every member joins over UDP on loopback: a multicast group, or (`--unicast`) the addresses of all others. Each
broadcasts `--per-second` messages of 200 bytes for `--seconds`. All of them must be delivered to everybody; the
age of a delivery is taken from the machine's monotonic clock, which all processes share.

    python -m benchmarks.rate --members 20 --per-second 10 --seconds 60 --json

`load` is the machine's load average before the run: ages of a busy machine say more about the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import sys
import time
from array import array
from typing import Any, Final

import precede
from benchmarks.processes import PAYLOAD, Seat, receive, run_seat, send_all
from precede.runtime.links.authorship import public_of
from precede.runtime.links.keyring import new_key
from precede.runtime.transports.udp import UdpTransport

_MULTICAST: Final = ("239.83.7.1", 47_141)
_DRAIN_S: Final = 20.0
_STAMP: Final = 8


async def member(seat: Seat) -> None:
    """Join, wait for everybody, broadcast at the rate, take everything, and report."""
    names = [f"m{place}" for place in range(seat.members)]
    options = seat.options
    seed = os.urandom(32)
    roster = dict(zip(names, await seat.exchange(public_of(seed)), strict=True))
    transport = UdpTransport(("127.0.0.1", 0), multicast=None if options["unicast"] else _MULTICAST)
    ages = array("d")

    async def take(group: precede.Group) -> None:
        async for message in group:
            ages.append((time.monotonic_ns() - int.from_bytes(message.payload[:_STAMP], "big")) / 1e9)

    joined = time.monotonic()
    async with precede.join(
        "rate",
        names[seat.place],
        key=options["key"],
        identity=seed,
        roster=roster,
        transport=transport,
    ) as group:
        addresses = await seat.exchange(transport.address)
        if options["unicast"]:
            for address in addresses:
                if address != transport.address:
                    transport.add_peer(address)
        while len(group.neighbours()) < seat.members - 1:
            await asyncio.sleep(0.1)
        met = time.monotonic() - joined
        taking = asyncio.create_task(take(group))
        begin = max(await seat.exchange(time.monotonic())) + 1.0
        cpu = time.process_time()
        count = round(options["seconds"] * options["per_second"])
        for number in range(count):
            due = begin + (number + seat.place / seat.members) / options["per_second"]
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await group.broadcast(time.monotonic_ns().to_bytes(_STAMP, "big") + PAYLOAD[_STAMP:])
        until = time.monotonic() + _DRAIN_S
        while len(ages) < count * seat.members and time.monotonic() < until:
            await asyncio.sleep(0.1)
        told = {
            "sent": count,
            "ages": ages.tobytes(),
            "cpu_s": time.process_time() - cpu,
            "met_s": met,
            "dropped": dict(group.status()["dropped"]),
        }
        await seat.exchange(told)  # all stay until everybody has reported
        taking.cancel()


def run(options: dict[str, Any]) -> dict[str, Any]:
    """Run the members and put together what they report."""
    members = options["members"]
    load = os.getloadavg()[0]
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(members)]
    processes = [
        context.Process(
            target=run_seat, args=("benchmarks.rate:member", place, members, options, there), daemon=True
        )
        for place, (_, there) in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    parents = [here for here, _ in pipes]
    patience = 300.0 + options["seconds"]
    try:
        values = [receive(one, patience) for one in parents]
        while not isinstance(values[0], dict):
            send_all(parents, values)
            values = [receive(one, patience) for one in parents]
        send_all(parents, [])
    finally:
        for process in processes:
            process.join(10.0)
            process.kill()
    ages = array("d")
    for told in values:
        ages.frombytes(told["ages"])
    in_order = sorted(ages)
    expected = members * sum(told["sent"] for told in values)
    dropped: dict[str, int] = {}
    for told in values:
        for reason, number in told["dropped"].items():
            dropped[reason] = dropped.get(reason, 0) + number
    return {
        "members": members,
        "per_second": options["per_second"],
        "seconds": options["seconds"],
        "processes": "one per member",
        "medium": "unicast" if options["unicast"] else "multicast",
        "load": round(load, 1),
        "met_s": round(max(told["met_s"] for told in values), 1),
        "expected": expected,
        "delivered": len(ages),
        "ratio_delivered": round(len(ages) / expected, 6),
        "age_ms_p50": round(1000 * in_order[len(in_order) // 2], 1),
        "age_ms_p99": round(1000 * in_order[len(in_order) * 99 // 100], 1),
        "age_ms_max": round(1000 * in_order[-1], 1),
        "cpu_us_per_delivery": round(1e6 * sum(told["cpu_s"] for told in values) / max(1, len(ages))),
        "dropped": dropped,
    }


def main() -> None:
    """Print the figures; exit with 1 if a message is missing or the 99th percentile is a second or more."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=20)
    parser.add_argument("--per-second", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--unicast", action="store_true")
    parser.add_argument("--json", action="store_true", help="one object")
    given = vars(parser.parse_args())
    as_json = given.pop("json")
    result = run({**given, "key": new_key()})
    if as_json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:<22} {value}")
    sys.exit(0 if result["delivered"] == result["expected"] and result["age_ms_p99"] < 1000 else 1)


if __name__ == "__main__":
    main()
