"""A pair of members on loopback, each with a metrics endpoint, and a small HTTP client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import precede

Address = tuple[str, int]


@asynccontextmanager
async def pair(*names: str, **given: Any) -> AsyncIterator[list[precede.Group]]:
    """Members that have heard each other, in one group, each with metrics on a free port of loopback."""
    first, *others = names
    given = {"key": bytes(32), "beacon": 0.05, "metrics": ("127.0.0.1", 0), **given}
    async with precede.join("picnic", first, **given) as host:
        joined = [precede.join("picnic", name, peers=[host.address], **given) for name in others]
        for each in joined:
            await each.__aenter__()
        try:
            while len(host.neighbours()) < len(others):
                await asyncio.sleep(0.01)
            yield [host, *joined]
        finally:
            for each in joined:
                await each.close()


async def ask(
    address: Address, path: str, host: str = "127.0.0.1", method: str = "GET"
) -> tuple[int, str, str]:
    """Send one request; return the status, the head and the body of the answer."""
    answer = await raw(address, f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split(" ")[1]), head, body


async def raw(address: Address, request: bytes) -> str:
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(request)
        return (await reader.read()).decode()
    except ConnectionError:
        return ""
    finally:
        writer.close()


def endpoint(group: precede.Group) -> Address:
    address: Address = group.status()["metrics"]
    return address
