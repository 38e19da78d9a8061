"""Guests of a total order in Chromium and Node.js: one order everywhere, and a gateway that cannot forge."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

import precede
from precede.runtime.transports.websocket import WebSocketTransport
from tests.javascript.members import GROUP, KEY, LOCAL, ROSTER, SEEDS, NodeMember, until
from tests.javascript.test_chromium import Tab, chromium, gateway

FOUNDERS = ("ana", "ben", "cem")
GUESTS = precede.GuestGateway.group_of(GROUP)


def joined(group: str, name: str, transport: precede.Transport, store: Path, **rest: object) -> precede.Group:
    return precede.join(
        *(group, name),
        key=KEY,
        identity=SEEDS[name],
        roster=ROSTER,
        transport=transport,
        beacon=0.1,
        store=store,
        **rest,  # type: ignore[arg-type]
    )


class Speaker:
    """A Python member of the total order. With `pages` it is the gateway of guests."""

    def __init__(
        self, name: str, udp: precede.UdpTransport, folder: Path, pages: WebSocketTransport | None = None
    ) -> None:
        members = [other for other in FOUNDERS if other != name]
        self.group = joined(GROUP, name, udp, folder / f"{name}.db", order="total", members=members)
        self.payloads = precede.SignedPayloads(GROUP, name, SEEDS[name], ROSTER)
        self.guests = None if pages is None else joined(GUESTS, name, pages, folder / f"{name}.guests.db")
        self.lines: list[tuple[str, str]] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Speaker:
        await self.group.__aenter__()
        untaken = self.group.status()["untaken"]
        past = list(self.group.history())
        for message in past[: len(past) - untaken]:
            self._take(message)
        through = None
        if self.guests is not None:
            await self.guests.__aenter__()
            through = precede.GuestGateway(self.guests, self.payloads, self._send)
            self._tasks.append(asyncio.create_task(through.listen()))
        self._tasks.append(asyncio.create_task(self._follow(through)))
        return self

    async def _follow(self, through: precede.GuestGateway | None) -> None:
        async for message in self.group:
            if through is not None:
                await through.forward(message)
            self._take(message)

    def _take(self, message: precede.Delivered) -> None:
        opened = self.payloads.open(message.payload)
        if opened is not None:
            self.lines.append((opened[0], opened[1].decode()))

    async def _send(self, payload: bytes) -> None:
        while True:
            try:
                return await self.group.broadcast(payload)
            except precede.NotYet:
                await asyncio.sleep(0.05)

    async def say(self, line: str) -> None:
        await self._send(self.payloads.sign(line.encode()))

    async def __aexit__(self, *error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for group in (self.guests, self.group):
            if group is not None:
                await group.close()


def test_two_tabs_and_three_members_have_one_order_through_a_restart_of_each(tmp_path: Path) -> None:
    async def run() -> None:
        async with chromium() as browser:
            udp, pages = precede.UdpTransport(LOCAL), gateway()
            ana = Speaker("ana", udp, tmp_path, pages)
            async with ana:
                url, address = pages.url, udp.address
                guest = {"gateway": "ana"}
                dora, eva = [await Tab.open(browser, name, url, **guest) for name in ("dora", "eva")]
                ben = Speaker("ben", precede.UdpTransport(LOCAL, [address]), tmp_path)
                cem = Speaker("cem", precede.UdpTransport(LOCAL, [address]), tmp_path)
                async with ben, cem:
                    speakers = {"ana": ana, "ben": ben, "cem": cem, "dora": dora, "eva": eva}
                    await asyncio.gather(*(each.say(f"{name} 1") for name, each in speakers.items()))
                    await until(lambda: len(ana.lines) == 5)
                    await dora.restart()
                    await eva.page.close()
                    eva = await Tab.open(browser, "eva", url, **guest)
                    for tab in (dora, eva):
                        await tab.shows(ana.lines)
                    await until(lambda: ben.lines == cem.lines == ana.lines)
            again = gateway(int(url.rpartition(":")[2]))
            await dora.say("dora while the gateway is away")
            here = precede.UdpTransport(LOCAL)
            ana = Speaker("ana", here, tmp_path, again)
            async with ana:
                ben = Speaker("ben", precede.UdpTransport(LOCAL, [here.address]), tmp_path)
                cem = Speaker("cem", precede.UdpTransport(LOCAL, [here.address]), tmp_path)
                async with ben, cem:
                    await asyncio.gather(*(each.say(f"{each.group.name} 2") for each in (ana, ben, cem)))
                    await eva.say("eva 2")
                    await until(lambda: len(ana.lines) >= 10)
                    await until(lambda: ben.lines == cem.lines == ana.lines)
                    for tab in (dora, eva):
                        await tab.shows(ana.lines)
            assert len(set(ana.lines)) == len(ana.lines) == 10
            assert dora.wrong == eva.wrong == []

    asyncio.run(run())


def test_a_gateway_of_guests_cannot_forge_an_author(tmp_path: Path) -> None:
    """eva is the gateway of guests: she alters, invents, repeats and signs herself what she tells as ana's."""

    async def run() -> None:
        pages = WebSocketTransport(LOCAL)
        ana = precede.SignedPayloads(GROUP, "ana", SEEDS["ana"], ROSTER)
        elsewhere = precede.SignedPayloads("another group", "ana", SEEDS["ana"], ROSTER)
        one, two = ana.sign(b"one"), ana.sign(b"two")
        forged = msgspec.msgpack.encode(["ana", 1 << 52, b"forged", bytes(64)])
        signer = precede.SignedPayloads("x", "eva", SEEDS["eva"], ROSTER)._key
        content = (b"precede guest 1", GROUP, "ana", 1 << 52, b"forged")
        signed = msgspec.msgpack.encode(
            ["ana", 1 << 52, b"forged", signer.sign(msgspec.msgpack.encode(content))]
        )
        told = [
            *(
                one,
                one.replace(b"one", b"two"),
                b"forged",
                b"precede guest 1" + forged,
                b"precede guest 1" + signed,
            ),
            *(elsewhere.sign(b"elsewhere"), one, two, one, two),
        ]
        async with joined(GUESTS, "eva", pages, tmp_path / "eva.db") as eva:
            dora = await NodeMember.start("dora", pages.url, gateway="eva")
            for payload in told:
                await eva.broadcast(msgspec.msgpack.encode(("ordered", payload)))
            await until(lambda: len(dora.taken) >= 2)
            await eva.broadcast(b"no note at all")
            await eva.broadcast(msgspec.msgpack.encode(("ordered", ana.sign(b"three"))))
            await until(lambda: len(dora.taken) >= 3)
            assert dora.taken == [("ana", "one"), ("ana", "two"), ("ana", "three")]
            dropped = (await dora.ask_status())["dropped"]
            assert dropped["forged"] == 6
            assert dropped["replayed"] == 3
            await dora.stop()

    asyncio.run(run())
