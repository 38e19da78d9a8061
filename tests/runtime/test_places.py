"""A member that runs a rule says in `arrivals()` where on the screen a message is shown."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from precede.api import open_member
from precede.core.context import Context
from precede.core.effects import RADIO, Send
from precede.protocols import registry
from precede.runtime.deliveries import Arrival
from precede.runtime.settings import MemberSettings
from precede.runtime.transports.udp import UdpTransport
from tests.patience import patient


def test_arrivals_name_the_message_below_a_revision() -> None:
    """An answer comes before its question: the question is then shown above it."""
    ana, ben = (registry.make("lamport", "node", Context(number, (1, 2), {}, Random(1))) for number in (1, 2))
    question = packet_of(ana.broadcast(b"question", 1))
    ben.receive(question, 1, 2, RADIO)
    answer = packet_of(ben.broadcast(b"answer", 3))

    async def run() -> list[Arrival]:
        settings = MemberSettings(members=("cem",))
        transport = UdpTransport(("127.0.0.1", 0))
        options = {"dissemination": "direct"}
        async with open_member("lamport", "node", "picnic", "cem", options, transport, settings) as group:
            arrivals = group.arrivals()
            news: list[Arrival] = []
            reading = asyncio.create_task(anext(arrivals))
            await asyncio.sleep(0)
            for packet, sender in ((answer, 2), (question, 1)):
                group.driver._input(lambda now, p=packet, s=sender: group.driver.node.receive(p, s, now, RADIO))
                news.append(await asyncio.wait_for(reading, patient(10)))
                reading = asyncio.create_task(anext(arrivals))
                await asyncio.sleep(0)
            reading.cancel()
        return news

    first, second = asyncio.run(run())
    assert (first.payload, first.state, first.above, first.revision) == (b"answer", "delivered", None, False)
    assert (second.payload, second.above, second.revision) == (b"question", first.id, True)


def packet_of(effects: Any) -> Any:
    return next(effect.packet for effect in effects if type(effect) is Send)
