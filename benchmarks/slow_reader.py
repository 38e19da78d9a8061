"""A reader that stops for ten minutes at 100 messages a second: its memory, the others, what it gets later.

    python -m benchmarks.slow_reader [--seconds 600] [--rate 100] [--no-store] [--json]

Three processes: one broadcasts, one reads at once, one takes its first message and then nothing for
`--seconds`. Then it takes everything. Reported: the resident memory of both readers at the end of the pause and
afterwards (`ratio_memory` compares the slow one with the other), how long messages took to the reader that did
not stop, and how many of the messages each reader got, in order. With `--no-store` the slow reader may hold
64 MiB in memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import struct
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import precede
from benchmarks.members import PAYLOAD

KEY = b"slow reader".ljust(32)
_HEAD = struct.Struct(">Qd")
_PAGE_BYTES = resource.getpagesize()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES


def join(name: str, store: str | None, peer: tuple[str, int] | None = None) -> precede.Group:
    return precede.join("bench", name, key=KEY, store=store, peers=[] if peer is None else [peer])


async def read(name: str, peer: tuple[str, int], store: str | None, pause: float, count: int) -> dict[str, Any]:
    """Take messages: one, then after a pause all others. Return what was seen."""
    numbers: list[int] = []
    latencies: list[float] = []
    async with join(name, store, peer) as group:
        print(json.dumps({"ready": True}), flush=True)
        before = 0
        async for message in _all(group):
            number, sent = _HEAD.unpack_from(message.payload)
            numbers.append(number)
            latencies.append(time.time() - sent)
            if len(numbers) == 1 and pause:
                await asyncio.sleep(pause)
                before = resident_bytes()
            if number == count - 1:
                break
        status = group.status()
    latencies.sort()
    return {
        "taken": len(numbers),
        "in_order": numbers == sorted(numbers),
        "missed": status["dropped"].get("missed", 0),
        "bytes_after_pause": before or resident_bytes(),
        "bytes_at_end": resident_bytes(),
        "latency_ms_p99": round(1000 * latencies[int(0.99 * (len(latencies) - 1))], 1),
        "cpu_s": round(time.process_time(), 2),
    }


async def _all(group: precede.Group) -> AsyncIterator[precede.Delivered]:
    """All messages, also those behind a gap."""
    while True:
        try:
            async for message in group:
                yield message
        except precede.Missed:
            if not group.status()["untaken"]:
                return


async def child(
    name: str, port: int, store: str | None, pause: float, count: int
) -> asyncio.subprocess.Process:
    words = [sys.executable, "-m", "benchmarks.slow_reader", "--member", name, "--port", str(port)]
    words += ["--pause", str(pause), "--count", str(count), *(["--store", store] if store else [])]
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    await process.stdout.readline()
    return process


async def measure(seconds: float, rate: float, stored: bool) -> dict[str, Any]:
    """Broadcast at a rate for some seconds, and gather what the two readers saw."""
    count = round(seconds * rate)
    with tempfile.TemporaryDirectory() as folder:
        async with join("ana", None) as ana:
            port = ana.address[1]
            store = str(Path(folder) / "ben.db") if stored else None
            readers = {
                "slow": await child("ben", port, store, seconds, count),
                "other": await child("cem", port, None, 0.0, count),
            }
            while len(ana.neighbours()) < len(readers):
                await asyncio.sleep(0.1)
            begin = time.monotonic()
            for number in range(count):
                await asyncio.sleep(max(0.0, begin + number / rate - time.monotonic()))
                await ana.broadcast(_HEAD.pack(number, time.time()) + PAYLOAD)
            seen = {}
            for name, process in readers.items():
                output, _ = await process.communicate()
                seen[name] = json.loads(output)
    flat = {f"{name}_{key}": value for name, each in seen.items() for key, value in each.items()}
    ratio = seen["slow"]["bytes_after_pause"] / seen["other"]["bytes_at_end"]
    return {"broadcast": count, "stored": stored, **flat, "ratio_memory": round(ratio, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--no-store", action="store_true")
    parser.add_argument("--json", action="store_true")
    for hidden, kind in (("member", str), ("port", int), ("store", str), ("pause", float), ("count", int)):
        parser.add_argument(f"--{hidden}", type=kind, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.member:
        where = ("127.0.0.1", given.port)
        result = asyncio.run(read(given.member, where, given.store, given.pause, given.count))
    else:
        result = asyncio.run(measure(given.seconds, given.rate, not given.no_store))
    print(json.dumps(result, indent=None if given.json or given.member else 2), flush=True)


if __name__ == "__main__":
    main()
