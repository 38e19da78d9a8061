"""Requests and replies over two topics of a group: whoever can answers, and the first reply counts.

    python examples/request_reply.py

prints the answer of one member to another's question, and that a question which nobody answers ends in time.
"""

import asyncio
import json

import precede

KEY = bytes.fromhex("5d" * 32)  # for a demonstration only; make a real one: precede keys make


class Requests:
    """Sends requests and waits for their replies. A request is known by the number that its sender gave it."""

    def __init__(self, group: precede.Group) -> None:
        self._name = group.name
        self._requests = group.topic("requests", order="fifo")
        self._replies = group.topic("replies", order="fifo")
        self._open: dict[int, asyncio.Future[str]] = {}
        self._number = 0

    async def run(self) -> None:
        """Hand each reply to the request that waits for it. Later replies to the same request are dropped."""
        async for message in self._replies:
            reply = json.loads(message.payload)
            if reply["to"] == self._name and reply["number"] in self._open:
                self._open.pop(reply["number"]).set_result(f"{message.source}: {reply['text']}")

    async def ask(self, text: str, seconds: float = 5.0) -> str:
        """Return the first reply. Raise TimeoutError if none comes in time."""
        self._number += 1
        number, self._open[self._number] = self._number, asyncio.get_running_loop().create_future()
        await self._requests.broadcast(json.dumps({"number": number, "text": text}).encode())
        try:
            return await asyncio.wait_for(self._open[number], seconds)
        finally:
            self._open.pop(number, None)


async def serve(group: precede.Group) -> None:
    """Answer the questions of others about the weather."""
    replies = group.topic("replies", order="fifo")
    async for message in group.topic("requests", order="fifo"):
        request = json.loads(message.payload)
        if "weather" in request["text"]:
            reply = {"to": message.source, "number": request["number"], "text": "rain at six"}
            await replies.broadcast(json.dumps(reply).encode())


async def main() -> None:
    ana = precede.join("house", "ana", key=KEY)
    async with ana, precede.join("house", "ben", key=KEY, peers=[ana.address]) as ben:
        requests = Requests(ana)
        tasks = [asyncio.create_task(each) for each in (requests.run(), serve(ben))]
        print(await requests.ask("how is the weather?", seconds=30))
        try:
            await requests.ask("where are the keys?", seconds=0.5)
        except TimeoutError:
            print("nobody knows where the keys are")
        for task in tasks:
            task.cancel()


if __name__ == "__main__":
    asyncio.run(main())
