"""Runs members in processes of their own: a closed loop of broadcasts, and the CPU time of each delivery.

Every member broadcasts as soon as fewer than a number of its messages are outstanding: it counts its broadcasts
against the deliveries it has seen, divided by the members, so members keep in step. A delivery is a message
handed to one member's application, own messages included. CPU time is that of all processes, user and system.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

PAYLOAD: Final = bytes(200)
_WARM_UP_S: Final = 1.5
_LONGEST_START_S: Final = 120.0


class Cost(NamedTuple):
    """What all members of a run did together while it was measured."""

    cpu_s: float
    deliveries: int
    seconds: float

    @property
    def cpu_us(self) -> float:
        """Microseconds of CPU for one delivery."""
        return self.cpu_s / max(1, self.deliveries) * 1e6

    @property
    def per_second(self) -> float:
        return self.deliveries / self.seconds


class Seat:
    """One member's place in a run: what it has to know, and what it reports."""

    def __init__(self, place: int, members: int, options: Mapping[str, Any], parent: Connection) -> None:
        self._most_outstanding: int = options.get("outstanding", 0)
        self.place = place
        self.members = members
        self.options = options
        self._parent = parent
        self._said = 0
        self._delivered = 0
        self._progress = asyncio.Event()

    async def exchange(self, value: Any = None) -> list[Any]:
        """Give a value to all members and return the values of all, in the order of their places."""
        self._parent.send(value)
        values: list[Any] = await asyncio.get_running_loop().run_in_executor(None, self._parent.recv)
        return values

    def delivered(self, count: int = 1) -> None:
        """Record that messages were handed to the application."""
        self._delivered += count
        self._progress.set()

    async def broadcast_and_measure(self, broadcast: Callable[[int], Awaitable[None]]) -> None:
        """Broadcast until the end of the run, and report the CPU time and the deliveries of this process.

        `broadcast` is called with the number of messages that may be broadcast now.
        """
        begin, seconds = (await self.exchange())[0]
        talking = asyncio.create_task(self._broadcast(broadcast))
        await asyncio.sleep(begin - time.monotonic())
        cpu, count = time.process_time(), self._delivered
        await asyncio.sleep(begin + seconds - time.monotonic())
        cost = Cost(time.process_time() - cpu, self._delivered - count, seconds)
        await self.exchange(cost)  # the others may still measure: keep talking until all have
        talking.cancel()

    async def _broadcast(self, broadcast: Callable[[int], Awaitable[None]]) -> None:
        while True:
            count = self._most_outstanding - (self._said - self._delivered // self.members)
            if count > 0:
                self._said += count
                await broadcast(count)
            else:
                self._progress.clear()
                await self._progress.wait()


def run_members(
    member: str,
    members: int,
    options: Mapping[str, Any],
    seconds: float,
    others_cpu_s: Callable[[], float] = lambda: 0.0,
) -> Cost:
    """Run `member` ("module:function") in a process for each member and return what it cost.

    `others_cpu_s` returns the CPU seconds of a process beside the members, such as a server.
    """
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(members)]
    processes = [
        context.Process(target=run_seat, args=(member, place, members, dict(options), there), daemon=True)
        for place, (_, there) in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    parents = [here for here, _ in pipes]
    try:
        while (values := [receive(parent) for parent in parents]) != [None] * members:
            send_all(parents, values)
        begin = time.monotonic() + _WARM_UP_S
        send_all(parents, [(begin, seconds)])
        time.sleep(begin - time.monotonic())
        outside = others_cpu_s()
        time.sleep(begin + seconds - time.monotonic())
        outside = others_cpu_s() - outside
        costs = [receive(parent) for parent in parents]
        send_all(parents, [])
    finally:
        for process in processes:
            process.join(10.0)
            process.kill()
    cpu = sum(cost.cpu_s for cost in costs) + outside
    return Cost(cpu, sum(cost.deliveries for cost in costs), seconds)


def receive(parent: Connection, patience_s: float = _LONGEST_START_S) -> Any:
    """Receive what a member sends next. Raise TimeoutError if it sends nothing for so long."""
    if not parent.poll(patience_s):
        raise TimeoutError(f"a member sent nothing within {patience_s:.0f} seconds")
    return parent.recv()


def send_all(parents: list[Connection], values: list[Any]) -> None:
    """Send the values of all members to each of them."""
    for parent in parents:
        parent.send(values)


def run_seat(member: str, place: int, members: int, options: Mapping[str, Any], parent: Connection) -> None:
    """Run one member in this process."""
    module, _, function = member.partition(":")
    run: Callable[[Seat], Any] = getattr(import_module(module), function)

    async def main() -> None:
        await run(Seat(place, members, options, parent))

    asyncio.run(main())
