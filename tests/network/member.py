"""A member of a group as a process: settings as JSON, commands as JSON lines, reports as JSON lines.

Commands: `{"broadcast": "text"}`, `{"close": true}`. Reports: `delivered`, `status` (every 0.2 s), `closed`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import precede


def report(kind: str, **values: object) -> None:
    print(json.dumps({"kind": kind, **values}), flush=True)


async def deliveries(group: precede.Group) -> None:
    async for message in group:
        report("delivered", source=message.source, payload=message.payload.decode())


async def statuses(group: precede.Group) -> None:
    while True:
        status = group.status()
        warnings = [{"code": each.code, "text": each.text, "peer": each.peer} for each in status["warnings"]]
        report(
            "status",
            neighbours=group.neighbours(),
            warnings=warnings,
            dropped=status["dropped"],
            address=group.address,
        )
        await asyncio.sleep(0.2)


async def commands(group: precede.Group) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        command = json.loads(line)
        if "broadcast" in command:
            await group.broadcast(command["broadcast"].encode())
        if "close" in command:
            return


async def main(settings: dict[str, Any]) -> None:
    name, group_name = settings.pop("name"), settings.pop("group", "picnic")
    key = bytes.fromhex(settings.pop("key", "07" * 32))
    for setting in ("lan", "bind"):
        if isinstance(settings.get(setting), list):
            settings[setting] = tuple(settings[setting])
    settings["peers"] = [tuple(peer) for peer in settings.get("peers", [])]
    async with precede.join(group_name, name, key=key, **settings) as group:
        tasks = [asyncio.create_task(work(group)) for work in (deliveries, statuses)]
        await commands(group)
        for task in tasks:
            task.cancel()
    report("closed")


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
