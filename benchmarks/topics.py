"""What quiet topics cost on the wire: idle bytes of a group with one topic and of one with 1,000, 10 active.

    python -m benchmarks.topics [--topics 1000] [--active 10] [--seconds 60] [--order causal] [--json]

Groups of three members over loopback, at the same time: one without topics, one with one topic, one with many.
The same number of messages is broadcast in the group with one topic and in the one with many. When all are
delivered and the digests have become rare, the bytes that all members send are counted for `--seconds`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

import precede
from benchmarks.members import KEY, NAMES
from precede.runtime.topics.lane_plan import LANES, TopicOrder
from precede.runtime.transports.transport import Where
from precede.runtime.transports.udp import UdpTransport

_SETTLE_S = 20.0


class SentBytes(UdpTransport):
    """A UDP transport that counts the datagrams it sends, and their bytes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0))
        self.datagrams = 0
        self.bytes = 0

    def send(self, frame: bytes, where: Where) -> None:
        self.datagrams += 1
        self.bytes += len(frame)
        super().send(frame, where)


class TopicGroup:
    """Three members that have opened the same topics, of which the first `active` are used."""

    def __init__(
        self, topics: int, active: int, order: TopicOrder, options: dict[str, str] | None = None
    ) -> None:
        self._topics = topics
        self._active = active
        self._order = order
        self._transports = [SentBytes() for _ in NAMES]
        self.groups = [
            precede.join(
                f"topics-{topics}",
                name,
                key=KEY,
                members=[other for other in NAMES if other != name],
                transport=transport,
                options=options,
            )
            for name, transport in zip(NAMES, self._transports, strict=True)
        ]

    async def run(self, messages: int, settle: float, seconds: float) -> dict[str, float]:
        """Broadcast `messages` in all, wait until all are taken and the group is quiet, count its bytes."""
        for group in self.groups:
            await group.__aenter__()
        try:
            for transport in self._transports:
                for other in self._transports:
                    if other is not transport:
                        transport.add_peer(other.address)
            await self._speak(messages)
            await asyncio.sleep(settle)
            before = self._counted()
            await asyncio.sleep(seconds)
            datagrams, sent = (after - old for after, old in zip(self._counted(), before, strict=True))
        finally:
            for group in self.groups:
                await group.close()
        members = len(self.groups)
        return {"bytes_per_s": sent / seconds / members, "datagrams_per_s": datagrams / seconds / members}

    async def _speak(self, messages: int) -> None:
        if not self._topics:
            return
        opened = [
            [group.topic(f"topic-{number}", self._order) for number in range(self._topics)]
            for group in self.groups
        ]
        for number in range(messages):
            topic = opened[number % len(opened)][number % self._active]
            while True:
                try:
                    await topic.broadcast(b"reading %d" % number)
                    break
                except precede.NotYet:
                    await asyncio.sleep(0.1)
        for topics in opened:
            left = messages
            for topic in topics[: self._active]:
                due = len(range(topics.index(topic), messages, self._active))
                async for _ in topic:
                    due, left = due - 1, left - 1
                    if not due:
                        break
            if left:
                raise RuntimeError(f"{left} messages were not delivered")

    def _counted(self) -> tuple[int, int]:
        return sum(each.datagrams for each in self._transports), sum(each.bytes for each in self._transports)


async def measure(
    topics: int,
    active: int,
    order: TopicOrder,
    settle: float,
    seconds: float,
    options: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Run the three groups at the same time and compare them."""
    groups = {"none": (0, 0), "one": (1, 1), "many": (topics, active)}
    made = [TopicGroup(count, used, order, options) for count, used in groups.values()]
    messages = 6 * active
    results = await asyncio.gather(*(each.run(messages, settle, seconds) for each in made))
    bytes_per_s = {name: round(each["bytes_per_s"], 1) for name, each in zip(groups, results, strict=True)}
    return {
        "order": order,
        "topics": topics,
        "active": active,
        "messages": messages,
        **{f"idle_bytes_per_s_{name}": value for name, value in bytes_per_s.items()},
        "ratio_many_to_one": round(bytes_per_s["many"] / bytes_per_s["one"], 3),
        "ratio_one_to_none": round(bytes_per_s["one"] / bytes_per_s["none"], 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--active", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--order", default="causal", choices=list(LANES))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    result = asyncio.run(measure(given.topics, given.active, given.order, _SETTLE_S, given.seconds))
    print(json.dumps(result, indent=None if given.json else 2))


if __name__ == "__main__":
    main()
