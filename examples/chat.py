"""A chat for a few terminals, with answers never before questions.

    python examples/chat.py ana 5001 5002 5003      (name, own port, the others' ports)
    python examples/chat.py ben 5002 5001 5003

Every line typed is broadcast; what the others type appears in causal order. What was lost is waited for at most
20 minutes. Ctrl-C leaves; a restart goes on where it ended.
"""

import asyncio
import sys
from pathlib import Path

import precede
from precede.runtime.group import Group

KEY = bytes.fromhex(
    "5d" * 32
)  # for a demonstration only: make a real one with precede.runtime.links.sealing.new_key()


async def chat(name: str, port: int, others: list[int]) -> None:
    group = precede.join(
        "chat",
        name,
        key=KEY,
        order="causal",
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


async def show(group: Group) -> None:
    async for message in group:
        print(f"{message.source}: {message.payload.decode(errors='replace')}", flush=True)


if __name__ == "__main__":
    try:
        asyncio.run(chat(sys.argv[1], int(sys.argv[2]), [int(port) for port in sys.argv[3:]]))
    except (IndexError, ValueError):
        sys.exit(__doc__)
    except KeyboardInterrupt:
        pass
