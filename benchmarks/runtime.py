"""Throughput of real nodes on loopback, and where the CPU goes: codec, ordering, storage, sealing, the system.

Eight members in one process broadcast 200 bytes each as fast as all of them deliver; the same run
measures a bare asyncio UDP echo of frames of the same size. The split is thread CPU time, each category without
what it calls of another. `python -m benchmarks.runtime --json [--seconds S]`
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import precede
from precede.runtime.codec import Codec
from precede.runtime.group import Group
from precede.runtime.links.admission import OpenAdmission, SealedAdmission
from precede.runtime.links.keyring import new_key
from precede.runtime.store import Store
from precede.runtime.transports.udp import UdpTransport

NAMES = tuple(f"m{number}" for number in range(8))
PAYLOAD = bytes(200)
OUTSTANDING = 40
INPUTS = ("start", "broadcast", "receive", "sent", "timer", "link_up", "link_down")
STORING = ("persist", "deliver", "acknowledge", "remember", "log", "commit")


class Split:
    """Thread CPU time by category; time in a call of another category counts for that one."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._inner = 0

    def timed(self, category: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            outer, self._inner = self._inner, 0
            began = time.thread_time_ns()
            try:
                return function(*given, **named)
            finally:
                took = time.thread_time_ns() - began
                self.spent[category] += took - self._inner
                self.calls[category] += 1
                self._inner = outer + took

        return call

    def watch(self, owner: Any, names: tuple[str, ...], category: str) -> None:
        for name in names:
            setattr(owner, name, self.timed(category, getattr(owner, name)))


class Members:
    """All members in one process, each with its own socket."""

    def __init__(self, folder: Path, *, stored: bool, sealed: bool, dissemination: str) -> None:
        self.transports = [UdpTransport(("127.0.0.1", 0)) for _ in NAMES]
        key = new_key() if sealed else None
        options = {"dissemination": dissemination} | ({"rto": "0s"} if dissemination == "direct" else {})
        self.groups = [
            precede.join(
                "bench",
                name,
                key=key,
                members=NAMES,
                transport=transport,
                store=folder / f"{name}.db" if stored else None,
                options=options,
            )
            for name, transport in zip(NAMES, self.transports, strict=True)
        ]
        self.said = self.delivered = 0

    async def run(self, seconds: float, split: Split | None = None) -> dict[str, float]:
        """Deliveries per second, CPU per delivery, frames and bytes of the wire per delivery."""
        for group in self.groups:
            await group.__aenter__()
            if split is not None:
                split.watch(group.driver.node, INPUTS, "ordering")
        for one in self.transports:
            for other in self.transports:
                if one is not other:
                    one.add_peer(other.address)
        while not all(len(group.neighbours()) == len(NAMES) - 1 for group in self.groups):
            await asyncio.sleep(0.05)
        tasks = [asyncio.create_task(work(group)) for group in self.groups for work in (self._say, self._take)]
        await asyncio.sleep(1.0)
        if split is not None:
            split.spent.clear()
            split.calls.clear()
        before, wall, cpu = self.delivered, time.perf_counter(), time.process_time()
        await asyncio.sleep(seconds)
        count = self.delivered - before
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        for task in tasks:
            task.cancel()
        for group in self.groups:
            await group.close()
        return {"per_second": count / wall, "cpu_us": cpu / max(1, count) * 1e6, "cpu": cpu, "count": count}

    async def _say(self, group: Group) -> None:
        while True:
            if self.said * len(NAMES) - self.delivered < OUTSTANDING * len(NAMES):
                self.said += 1
                await group.broadcast(PAYLOAD)
            else:
                await asyncio.sleep(0.001)

    async def _take(self, group: Group) -> None:
        async for _ in group:
            self.delivered += 1


class Echo(asyncio.DatagramProtocol):
    """Sends every frame back and counts it."""

    def __init__(self) -> None:
        self.heard = 0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.heard += 1
        self.transport.sendto(data, addr)


async def echo(size: int, seconds: float) -> dict[str, float]:
    """Measures round trips between two asyncio endpoints, with some frames always in flight."""
    loop = asyncio.get_running_loop()
    one, a = await loop.create_datagram_endpoint(Echo, local_addr=("127.0.0.1", 0))
    two, b = await loop.create_datagram_endpoint(Echo, local_addr=("127.0.0.1", 0))
    for _ in range(OUTSTANDING):
        one.sendto(bytes(size), two.get_extra_info("sockname"))
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.sleep(seconds)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    frames = a.heard + b.heard
    one.close()
    two.close()
    return {"per_second": frames / wall, "cpu_us": cpu / frames * 1e6}


def watch_everything(split: Split) -> None:
    """Times what all members share: codec, stores, admission, and every system call."""
    split.watch(Codec, ("encode", "decode"), "codec")
    split.watch(Store, STORING, "storage")
    for admission in (SealedAdmission, OpenAdmission):
        split.watch(admission, ("seal_to", "seal_to_all", "frame"), "sealing")

    class TimedSocket(socket.socket):
        """System calls, counted and timed."""

    split.watch(TimedSocket, ("send", "sendto", "recv", "recvfrom"), "system calls")
    socket.socket = TimedSocket  # type: ignore[misc]


async def watched(folder: Path, seconds: float, split: Split, **how: Any) -> dict[str, float]:
    loop: Any = asyncio.get_running_loop()
    split.watch(loop._selector, ("select",), "system calls")
    return await Members(folder, **how).run(seconds, split)


def measure(seconds: float) -> dict[str, Any]:
    """Measures everything, in one run."""
    result: dict[str, Any] = {}
    setups = {
        "stored_sealed": {"stored": True, "sealed": True, "dissemination": "epidemic"},
        "direct_stored_sealed": {"stored": True, "sealed": True, "dissemination": "direct"},
        "bare": {"stored": False, "sealed": False, "dissemination": "direct"},
    }
    with tempfile.TemporaryDirectory() as folder:
        bare = asyncio.run(echo(len(PAYLOAD) + 100, seconds))
        for name, how in setups.items():
            run = asyncio.run(Members(Path(folder) / name, **how).run(seconds))
            result[f"{name}_deliveries_per_second"] = round(run["per_second"])
            result[f"{name}_cpu_us_per_delivery"] = round(run["cpu_us"], 1)
            result[f"ratio_{name}_cpu_to_echo"] = round(run["cpu_us"] / bare["cpu_us"], 2)
        result["echo_frames_per_second"] = round(bare["per_second"])
        result["echo_cpu_us_per_frame"] = round(bare["cpu_us"], 1)
        split = Split()
        watch_everything(split)
        for name in ("stored_sealed", "direct_stored_sealed"):
            run = asyncio.run(watched(Path(folder) / f"{name}-split", seconds, split, **setups[name]))
            result |= shares(name, split, run)
    return result


def shares(name: str, split: Split, run: dict[str, float]) -> dict[str, Any]:
    """Percent of the CPU by category; `rest` is driver, links, channels and the event loop."""
    part = {category: spent / 1e9 / run["cpu"] for category, spent in sorted(split.spent.items())}
    result: dict[str, Any] = {f"{name}_percent_{category.replace(' ', '_')}": round(100 * share, 1)
                              for category, share in part.items()}  # fmt: skip
    result[f"{name}_percent_rest"] = round(100 * (1 - sum(part.values())), 1)
    result[f"{name}_system_calls_per_delivery"] = round(split.calls["system calls"] / run["count"], 2)
    result[f"ratio_{name}_ordering_and_codec"] = round(part.get("ordering", 0) + part.get("codec", 0), 3)
    return result


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one object")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each measurement takes")
    given = parser.parse_args()
    result = measure(given.seconds)
    if given.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:<48} {value}")


if __name__ == "__main__":
    main()
