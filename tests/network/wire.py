"""Passes Ethernet frames between the ports of a wire; loses, delays, reorders and limits them.

Run inside a namespace: `wire.py {"ports": [...], "loss": 0.2, "delay": 0.01, "jitter": 0, "rate": 0}`. A line
`{"cut": [[0, 1], [2, 3]]}` on standard input cuts it in parts; `{"cut": []}` heals it.
"""

from __future__ import annotations

import heapq
import json
import selectors
import socket
import sys
import time
from contextlib import suppress
from random import Random
from typing import Final

ALL_PROTOCOLS: Final = 3
PACKET_VNET_HDR: Final = 15
SOL_PACKET: Final = 263
OUTGOING: Final = 4


def main(plan: dict[str, float], ports: list[str]) -> None:
    loss, delay, jitter = plan.get("loss", 0.0), plan.get("delay", 0.0), plan.get("jitter", 0.0)
    reorder, rate = plan.get("reorder", 0.0), plan.get("rate", 0.0)
    generator = Random(1)
    ready = selectors.DefaultSelector()
    sockets = []
    for port in ports:
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
        # Frames between namespaces have no checksum yet; this header passes on what is still to be computed.
        end.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        end.bind((port, 0))
        end.setblocking(False)
        ready.register(end, selectors.EVENT_READ)
        sockets.append(end)
    flying: list[tuple[float, int, bytes, socket.socket]] = []
    number, free_at = 0, 0.0
    part: dict[object, int] = dict.fromkeys(sockets, 0)
    ready.register(sys.stdin, selectors.EVENT_READ)
    while True:
        wait = max(0.0, flying[0][0] - time.monotonic()) if flying else None
        for key, _ in ready.select(wait):
            if key.fileobj is sys.stdin:
                line = sys.stdin.readline()
                if not line:
                    ready.unregister(sys.stdin)
                    continue
                cut = json.loads(line)["cut"]
                part = {
                    end: next((n for n, ends in enumerate(cut) if place in ends), -1)
                    for place, end in enumerate(sockets)
                }
                continue
            try:
                frame, sender = key.fileobj.recvfrom(1 << 17)  # type: ignore[union-attr]
            except OSError:
                continue
            if sender[2] == OUTGOING:
                continue
            now = time.monotonic()
            free_at = max(free_at, now) + (len(frame) / rate if rate else 0.0)
            for other in sockets:
                together = other is not key.fileobj and part[other] == part[key.fileobj]
                if together and generator.random() >= loss:
                    extra = delay + jitter * generator.random()
                    if generator.random() < reorder:
                        extra += 0.02  # later frames overtake it
                    number += 1
                    heapq.heappush(flying, ((free_at if rate else now) + extra, number, frame, other))
        while flying and flying[0][0] <= time.monotonic():
            _, _, frame, other = heapq.heappop(flying)
            with suppress(OSError):  # lost, as on a real wire
                other.send(frame)


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    main(arguments, arguments.pop("ports"))
