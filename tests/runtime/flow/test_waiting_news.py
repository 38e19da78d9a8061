"""News of messages that wait: one look for all that arrived, and none for those that are delivered."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.core.node import Waiting
from precede.runtime.flow import waiting_news
from precede.runtime.flow.waiting_news import WaitingNews


def message(number: int) -> Message:
    return Message(MessageId(1, 0, number), b"")


class Buffer:
    """All messages wait for one that never comes; `looks` counts how often they are listed."""

    def __init__(self) -> None:
        self.ids: list[MessageId] = []
        self.looks = 0

    def waiting(self) -> list[Waiting]:
        self.looks += 1
        return [Waiting(id, (MessageId(2, 0, 9),), 0) for id in self.ids]


def test_one_look_is_for_all_that_arrived_and_none_for_what_is_delivered() -> None:
    """Each arrival once listed all waiting messages: a full buffer made every further message cost 50 ms."""

    async def run() -> None:
        buffer, published = Buffer(), []
        news = WaitingNews(buffer.waiting, lambda message, waits_for: published.append((message.id, waits_for)))
        for number in range(1, 129):
            news.arrived(message(number))
            buffer.ids.append(MessageId(1, 0, number))
        news.settled(MessageId(1, 0, 1))
        await asyncio.sleep(0.01)
        assert buffer.looks == 1
        assert [id.number for id, _ in published] == list(range(2, 129))
        news.arrived(message(129))
        news.settled(MessageId(1, 0, 129))
        await asyncio.sleep(0.01)
        assert buffer.looks == 1

    asyncio.run(run())


def test_long_looks_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(waiting_news, "time", SimpleNamespace(monotonic=lambda: now))

    async def run() -> None:
        nonlocal now
        published: list[MessageId] = []

        def waiting() -> list[Waiting]:
            nonlocal now
            now += 0.05
            return [Waiting(MessageId(1, 0, number), (), 0) for number in range(1, 4)]

        pauses: list[float] = []
        loop = asyncio.get_running_loop()
        later = loop.call_later
        monkeypatch.setattr(loop, "call_later", lambda pause, call: (pauses.append(pause), later(0, call)))
        news = WaitingNews(waiting, lambda message, waits_for: published.append(message.id))
        for number in range(1, 4):
            news.arrived(message(number))
            while len(published) < number:
                await asyncio.sleep(0)
        assert [id.number for id in published] == [1, 2, 3]
        assert pauses == pytest.approx([0.0, 1.0, 1.0])

    asyncio.run(run())
