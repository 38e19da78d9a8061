"""A store that version 0.1 wrote is opened and upgraded: nothing delivered is lost or doubled."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from pathlib import Path

import msgspec
import pytest

import precede
from precede.core.errors import BadInput
from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.runtime.names import node_id
from precede.runtime.store import Store
from tests.patience import patient

KEPT = Path(__file__).parent / "stores" / "ana-0.1.db"
"""Ana delivered four messages: two of ben and two of her own; she acknowledged none and was killed."""

MESSAGE = Message(MessageId(1, 0, 1), b"payload")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "ana.db"
    shutil.copyfile(KEPT, path)
    path.chmod(0o600)
    return path


def member(name: str, store: Path | None, *peers: tuple[str, int]) -> precede.Group:
    others = [other for other in ("ana", "ben") if other != name]
    return precede.join(
        "picnic", name, key=bytes(32), store=store, members=others, beacon=0.05, peers=list(peers)
    )


async def take(group: precede.Group, count: int) -> list[tuple[str, int, bytes]]:
    taken: list[tuple[str, int, bytes]] = []
    async for message in group:
        taken.append((message.source, message.number, message.payload))
        assert message.id.source == node_id(message.source)
        if len(taken) == count:
            break
    return taken


EARLIER = [
    ("ben", 1, b"who brings bread?"),
    ("ana", 1, b"I do"),
    ("ana", 2, b"and butter"),
    ("ben", 2, b"thanks"),
]


def test_a_store_of_0_1_is_upgraded_and_its_member_goes_on(store: Path) -> None:
    async def live() -> None:
        async with member("ana", store) as ana:
            await ana.broadcast(b"and salt")
            assert await asyncio.wait_for(take(ana, 5), patient(20)) == [*EARLIER, ("ana", 3, b"and salt")]
            async with member("ben", None, ana.address) as ben:  # a new ben: ana carries everything to it
                assert sorted(await asyncio.wait_for(take(ben, 5), patient(20))) == sorted(
                    [*EARLIER, ("ana", 3, b"and salt")]
                )
        async with member("ana", store) as ana:
            await ana.broadcast(b"done")
            assert await asyncio.wait_for(take(ana, 1), patient(20)) == [("ana", 4, b"done")]

    asyncio.run(live())
    with sqlite3.connect(store) as database:
        assert database.execute("SELECT value FROM driver WHERE name = 'format'").fetchone() == (5,)


def test_an_upgrade_that_lacks_a_name_is_refused_and_changes_nothing(store: Path) -> None:
    before = store.read_bytes()
    for _ in range(2):
        with pytest.raises(BadInput, match="messages of 1 members whose names are not given"):
            precede.join("picnic", "ana", key=bytes(32), store=store)
    with sqlite3.connect(f"file:{KEPT}?mode=ro&immutable=1", uri=True) as old, sqlite3.connect(store) as new:
        query = "SELECT key, value FROM kept"
        assert old.execute(query).fetchall() == new.execute(query).fetchall()
    assert len(store.read_bytes()) >= len(before)


def test_a_store_of_a_newer_version_is_refused_in_a_sentence(store: Path) -> None:
    with sqlite3.connect(store) as database:
        database.execute("UPDATE driver SET value = 99 WHERE name = 'format'")
    with pytest.raises(BadInput, match=r"written by a newer version of Precede \(format 99"):
        member("ana", store)


def test_a_store_whose_journal_is_a_table_is_read_and_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    Store(path).close()
    encode = msgspec.msgpack.encode
    first = (
        {encode("kept"): encode(1), encode("gone"): encode(2)},
        {1: encode(MESSAGE)},
        {"accepted": 7},
        [b"row"],
    )
    second = ({encode("kept"): encode(3), encode("gone"): None}, {}, {}, [])
    with sqlite3.connect(path) as database:
        database.executemany("INSERT INTO journal (changes) VALUES (?)", [(encode(first),), (encode(second),)])
        database.execute("UPDATE driver SET value = 3 WHERE name = 'format'")
        database.execute("DELETE FROM driver WHERE name = 'journal'")
    for _ in range(2):
        store = Store(path)
        assert store.saved() == {"kept": 3}
        assert [message for _, message, *_ in store.unacknowledged()] == [MESSAGE]
        assert store.remembered("accepted", 0) == 7
        assert [rows for _, rows in store.logged()] == [b"row"]
        store.abandon()
