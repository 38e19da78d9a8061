"""Real nodes on loopback keep order, survive restarts, ignore strangers, and write logs that verify."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import precede
from precede.runtime.links.keyring import new_key
from precede.runtime.transports.transport import Where
from precede.runtime.transports.udp import UdpTransport
from precede.witness.verify import verify
from tests.patience import patient

KEY = new_key()
NAMES = ("ana", "ben", "cem")


def introduce(*transports: UdpTransport) -> None:
    for one in transports:
        for other in transports:
            if one is not other:
                one.add_peer(other.address)


def member(name: str, folder: Path, **given: Any) -> tuple[precede.Group, UdpTransport]:
    transport = UdpTransport(("127.0.0.1", 0))
    given.setdefault("key", KEY)
    joined = precede.join(
        "picnic",
        name,
        transport=transport,
        beacon=0.05,
        log=folder / name / str(len(list(folder.glob(f"{name}/*")))),
        members=NAMES,
        **given,
    )
    return joined, transport


async def take(group: precede.Group, count: int, seconds: float = 10.0) -> list[bytes]:
    taken: list[bytes] = []

    async def run() -> None:
        async for message in group:
            taken.append(message.payload)
            if len(taken) == count:
                return

    try:
        await asyncio.wait_for(run(), patient(seconds))
    except TimeoutError:
        pytest.fail(f"{group.name} got {taken} and then nothing; {group.status()}")
    return taken


def whole_log(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.rglob("events-*.parquet"))])


@pytest.mark.parametrize("order", ["causal", "delta", "fifo", "none"])
def test_three_members_deliver_everything_in_order(order: str, tmp_path: Path) -> None:
    lifetime = "1min" if order == "delta" else None

    async def run() -> None:
        groups = [member(name, tmp_path, order=order, lifetime=lifetime) for name in NAMES]
        (ana, _), (ben, _), (cem, _) = groups
        async with ana, ben, cem:
            introduce(*(transport for _, transport in groups))
            await ana.broadcast(b"question")
            assert await take(ben, 1) == [b"question"]
            await ben.broadcast(b"answer")
            assert sorted(await take(cem, 2)) == [b"answer", b"question"]
            assert sorted(await take(ana, 2)) == [b"answer", b"question"]

    asyncio.run(run())
    verdict = verify(whole_log(tmp_path), {"none": "fifo"}.get(order, order))
    assert verdict.holds, verdict.first
    assert verdict.deliveries_checked == 6


def test_a_member_with_a_store_continues_where_it_stopped(tmp_path: Path) -> None:
    async def run() -> None:
        ana, ana_socket = member("ana", tmp_path)
        ben, ben_socket = member("ben", tmp_path, store=tmp_path / "ben.db")
        async with ana:
            async with ben:
                introduce(ana_socket, ben_socket)
                await ben.broadcast(b"one")
                assert await take(ana, 1) == [b"one"]
                await ana.broadcast(b"two")
                assert await take(ben, 2) == [b"one", b"two"]
                incarnation = ben.status()["incarnation"]
            await ana.broadcast(b"three")
            again, again_socket = member("ben", tmp_path, store=tmp_path / "ben.db")
            async with again:
                introduce(ana_socket, again_socket)
                await again.broadcast(b"four")
                assert sorted(await take(again, 2)) == [b"four", b"three"]
                got = await take(ana, 3)
                assert sorted(got) == [b"four", b"three", b"two"]
                status = again.status()
                assert status["incarnation"] == incarnation
                assert set(status["peaks"]) == set(status["sizes"])
                assert all(status["peaks"][name] >= size for name, size in status["sizes"].items())
                assert status["peaks"]["cache"] >= 2

    asyncio.run(run())


def test_a_multicast_reaches_its_destinations_only(tmp_path: Path) -> None:
    async def run() -> None:
        groups = [member(name, tmp_path, order="multicast", store=tmp_path / f"{name}.db") for name in NAMES]
        (ana, _), (ben, _), (cem, _) = groups
        async with ana, ben, cem:
            introduce(*(transport for _, transport in groups))
            while len(ana.neighbours()) < 2 or len(ben.neighbours()) < 2:
                await asyncio.sleep(0.02)
            await ana.multicast(b"for ben", to=["ben"])
            assert await take(ben, 1) == [b"for ben"]
            await ben.multicast(b"for both", to=["ana", "cem"])
            assert await take(cem, 1) == [b"for both"]

    asyncio.run(run())
    assert verify(whole_log(tmp_path), "multicast").holds


def test_frames_of_a_stranger_are_counted_and_ignored(tmp_path: Path) -> None:
    async def run() -> None:
        ana, ana_socket = member("ana", tmp_path)
        eve, eve_socket = member("eve", tmp_path, key=new_key())
        async with ana, eve:
            introduce(ana_socket, eve_socket)
            await eve.broadcast(b"let me in")
            await asyncio.sleep(0.3)
            assert ana.neighbours() == []
            assert ana.status()["dropped"]["stranger"] > 2

    asyncio.run(run())


def test_arrivals_report_a_message_when_it_is_received_and_when_it_is_delivered(tmp_path: Path) -> None:
    """An answer may reach cem before its question: it is reported at once, and again when it is delivered."""

    async def run() -> None:
        groups = [member(name, tmp_path) for name in NAMES]
        (ana, a), (ben, b), (cem, c) = groups
        seen: list[tuple[bytes, str]] = []

        async def watch() -> None:
            async for arrival in cem.arrivals():
                seen.append((arrival.payload, arrival.state))

        async with ana, ben, cem:
            watching = asyncio.create_task(watch())
            introduce(a, b)
            await ana.broadcast(b"question")
            await take(ben, 1)
            await ben.broadcast(b"answer")
            introduce(a, b, c)
            assert await take(cem, 2) == [b"question", b"answer"]
            watching.cancel()
        assert [item for item in seen if item[1] == "delivered"] == [
            (b"question", "delivered"),
            (b"answer", "delivered"),
        ]

    asyncio.run(run())


class SlowTo(UdpTransport):
    """UDP with a delay to one address."""

    slow: Where = None

    def send(self, frame: bytes, where: Where) -> None:
        asyncio.get_running_loop().call_later(0.4 if where == self.slow else 0, super().send, frame, where)


def test_an_answer_is_shown_waiting_for_its_question(tmp_path: Path) -> None:
    async def run() -> list[tuple[bytes, str, int]]:
        lines = [SlowTo(("127.0.0.1", 0)) for _ in NAMES]
        ana, ben, cem = (
            precede.join(
                "picnic",
                name,
                key=KEY,
                transport=line,
                beacon=0.05,
                members=NAMES,
                options={"dissemination": "direct"},
            )
            for name, line in zip(NAMES, lines, strict=True)
        )
        seen: list[tuple[bytes, str, int]] = []

        async def watch() -> None:
            async for arrival in cem.arrivals():
                seen.append((arrival.payload, arrival.state, len(arrival.waits_for)))

        async with ana, ben, cem:
            introduce(*lines)
            while not all(len(group.neighbours()) == 2 for group in (ana, ben, cem)):
                await asyncio.sleep(0.02)
            watching = asyncio.create_task(watch())
            await asyncio.sleep(0)
            lines[0].slow = lines[2].address
            await ana.broadcast(b"question")
            await take(ben, 1)
            await ben.broadcast(b"answer")
            while not seen:
                await asyncio.sleep(0.01)
            waiting = cem.waiting()
            assert [(one.message.source, len(one.waits_for)) for one in waiting] == [(ben.id, 1)]
            assert waiting[0].waits_for[0].source == ana.id
            assert await take(cem, 2) == [b"question", b"answer"]
            await asyncio.sleep(0)
            watching.cancel()
        return seen

    assert asyncio.run(run()) == [
        (b"answer", "waiting", 1),
        (b"question", "delivered", 0),
        (b"answer", "delivered", 0),
    ]


def test_join_refuses_settings_that_do_not_fit_the_order() -> None:
    with pytest.raises(precede.BadInput, match="needs a lifetime"):
        precede.join("g", "ana", key=KEY, order="delta")
    with pytest.raises(precede.BadInput, match="needs members"):
        precede.join("g", "ana", key=KEY, order="multicast")
    with pytest.raises(precede.BadInput, match="none of"):
        precede.join("g", "ana", key=KEY, order="chaos")  # type: ignore[arg-type]
