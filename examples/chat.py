"""A chat for a few terminals in which no answer appears before its question.

    python examples/chat.py ana 5001 5002 5003      (name, own port, the others' ports)
    python examples/chat.py ben 5002 5001 5003

Every line typed is broadcast, and the lines of all members appear in causal order. A message waits at most 20
minutes for one that was lost. Ctrl-C leaves; a restart continues where the last run ended.
"""

import asyncio
import sys
from pathlib import Path

import precede

KEY = bytes.fromhex("5d" * 32)  # for a demonstration only; make a real one: precede keys make


async def chat(name: str, port: int, others: list[int]) -> None:
    group = precede.join(
        "chat",
        name,
        key=KEY,
        order="delta",
        lifetime="20min",
        store=Path(f"chat-{name}.db"),
        bind=("127.0.0.1", port),
        peers=[("127.0.0.1", other) for other in others],
        members=["ana", "ben", "cem", "dora"],
    )
    async with group:
        reading = asyncio.create_task(show(group))
        while line := await asyncio.to_thread(sys.stdin.readline):
            await group.broadcast(line.strip().encode())
        await asyncio.sleep(2)
        reading.cancel()


async def show(group: precede.Group) -> None:
    async for message in group:
        print(f"{message.source}: {message.payload.decode(errors='replace')}", flush=True)


if __name__ == "__main__":
    try:
        asyncio.run(chat(sys.argv[1], int(sys.argv[2]), [int(port) for port in sys.argv[3:]]))
    except (IndexError, ValueError):
        sys.exit(__doc__)
    except KeyboardInterrupt:
        pass
