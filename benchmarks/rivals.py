"""Other ways to bring a message to every member, for `benchmarks.runtime`: plain UDP, ZeroMQ, NATS, Zenoh.

Each function is one member in a process of its own. Every member receives every message, its own included, and
no system loses messages here: queues are unlimited or the sender waits.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.processes import PAYLOAD, Seat


def free_port() -> int:
    """Return a TCP port of the loopback interface that nobody uses."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Counting(asyncio.DatagramProtocol):
    """Counts each datagram as a delivery."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.seat.delivered()


async def udp(seat: Seat) -> None:
    """Plain datagrams of asyncio to every member."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: Counting(seat), local_addr=("127.0.0.1", 0))
    addresses = await seat.exchange(transport.get_extra_info("sockname"))

    async def broadcast(count: int) -> None:
        for _ in range(count):
            for address in addresses:
                transport.sendto(PAYLOAD, address)

    await seat.broadcast_and_measure(broadcast)


async def zeromq(seat: Seat) -> None:
    """A PUB socket, and a SUB socket that is connected to every member's."""
    import zmq
    import zmq.asyncio

    context = zmq.asyncio.Context()
    publisher, subscriber = context.socket(zmq.PUB), context.socket(zmq.SUB)
    publisher.setsockopt(zmq.SNDHWM, 0)
    subscriber.setsockopt(zmq.RCVHWM, 0)
    subscriber.subscribe(b"")
    port = publisher.bind_to_random_port("tcp://127.0.0.1")
    for other in await seat.exchange(port):
        subscriber.connect(f"tcp://127.0.0.1:{other}")
    await asyncio.sleep(1.0)  # subscriptions travel to the publishers

    async def take() -> None:
        while True:
            await subscriber.recv()
            seat.delivered()

    async def broadcast(count: int) -> None:
        for _ in range(count):
            await publisher.send(PAYLOAD)

    taking = asyncio.create_task(take())
    await seat.broadcast_and_measure(broadcast)
    taking.cancel()
    context.destroy(linger=0)


async def nats(seat: Seat) -> None:
    """Publish and subscribe through one server. Options: port."""
    import nats as library

    client = await library.connect(f"nats://127.0.0.1:{seat.options['port']}")

    async def heard(message: Any) -> None:
        seat.delivered()

    await client.subscribe("bench", cb=heard)
    await client.flush()
    await seat.exchange("subscribed")

    async def broadcast(count: int) -> None:
        for _ in range(count):
            await client.publish("bench", PAYLOAD)

    await seat.broadcast_and_measure(broadcast)
    await client.close()


@contextmanager
def nats_server(port: int) -> Iterator[int]:
    """Run a NATS server and yield its process id."""
    program = Path(sys.executable).with_name("nats-server")
    server = subprocess.Popen([program, "-a", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL)
    try:
        while True:
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield server.pid
    finally:
        server.terminate()
        server.wait()


async def zenoh(seat: Seat) -> None:
    """Peers that are connected to each other; senders wait while a receiver is slow."""
    import zenoh as library

    loop = asyncio.get_running_loop()
    ports = await seat.exchange(free_port())
    settings = library.Config()
    settings.insert_json5("scouting/multicast/enabled", "false")
    settings.insert_json5("listen/endpoints", f'["tcp/127.0.0.1:{ports[seat.place]}"]')
    earlier = ", ".join(f'"tcp/127.0.0.1:{port}"' for port in ports[: seat.place])
    settings.insert_json5("connect/endpoints", f"[{earlier}]")
    session = await asyncio.to_thread(library.open, settings)
    waiting = 0

    def heard(sample: Any) -> None:
        """Called on a thread of Zenoh: wake the event loop once for all samples that wait."""
        nonlocal waiting
        waiting += 1
        if waiting == 1:
            loop.call_soon_threadsafe(count_all)

    def count_all() -> None:
        nonlocal waiting
        count, waiting = waiting, 0
        seat.delivered(count)

    subscriber = session.declare_subscriber("bench", heard)
    publisher = session.declare_publisher("bench", congestion_control=library.CongestionControl.BLOCK)
    await seat.exchange("subscribed")
    await asyncio.sleep(1.0)  # declarations travel to the others

    async def broadcast(count: int) -> None:
        for _ in range(count):
            publisher.put(PAYLOAD)

    await seat.broadcast_and_measure(broadcast)
    subscriber.undeclare()
    await asyncio.to_thread(session.close)
