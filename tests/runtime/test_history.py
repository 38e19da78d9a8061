"""History: what a member has delivered can be read again, within its retention."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import precede
from precede.core.errors import BadInput
from precede.core.identity import MessageId
from precede.core.instants import HOUR, SECOND
from precede.core.messages import Message
from precede.runtime.history.kept import Kept
from precede.runtime.history.retention import Retention
from precede.runtime.history.upkeep import rotate
from precede.runtime.no_store import MOST_KEPT, KeptInMemory, NoStore
from precede.runtime.store import Store


def filled(path: Path, count: int, retention: Retention, *, size: int = 10, taken: int | None = None) -> Store:
    """A store with `count` messages, one a second, of sources 1 and 2 in turn; `taken` of them are taken."""
    store = Store(path, synchronous=False, retention=retention)
    for number in range(1, count + 1):
        place = store.deliver(Message(MessageId(1 + number % 2, 0, number), bytes(size)), number * SECOND).place
        store.commit()
        if number <= (count if taken is None else taken):
            store.acknowledge(place)
    return store


def places(store: Store | NoStore) -> list[int]:
    return [kept.place for kept in store.history().read(0)]


def test_a_store_keeps_the_last_messages_and_those_that_are_not_taken(tmp_path: Path) -> None:
    store = filled(tmp_path / "a.db", 30, Retention(messages=10))
    assert places(store) == list(range(21, 31))
    store.close()
    again = Store(tmp_path / "a.db", retention=Retention(messages=4))
    assert again.last_place == 30
    again.tidy(0)
    assert places(again) == [27, 28, 29, 30]
    again.close()
    slow = filled(tmp_path / "b.db", 30, Retention(messages=10), taken=5)
    assert places(slow) == list(range(6, 31))
    assert [kept.place for kept in slow.unacknowledged()] == list(range(6, 31))


def test_messages_are_evicted_by_bytes_and_by_age(tmp_path: Path) -> None:
    store = filled(tmp_path / "a.db", 40, Retention(messages=None, bytes=10_000), size=1_000)
    assert places(store) == list(range(32, 41)), "a message takes a little more than its payload"
    old = filled(tmp_path / "b.db", 40, Retention(messages=None, age="10s"))
    assert places(old) == list(range(30, 41))
    old.tidy(45 * SECOND)
    assert places(old) == list(range(35, 41)), "also if nothing is delivered any more"


def test_a_quota_evicts_messages_and_the_file_shrinks(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    quota = 3_000_000
    store = filled(path, 500, Retention(messages=None, bytes=None, disk=quota), size=10_000)
    store.history()
    store.commit()
    assert store.rows.file_bytes() > quota
    assert store.tidy(0)
    kept = places(store)
    assert kept[-1] == 500
    assert 50 < len(kept) < 300
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= quota
    store.close()


def test_a_quota_that_is_too_small_for_the_state_itself_is_reported(tmp_path: Path) -> None:
    store = filled(tmp_path / "a.db", 20, Retention(disk=1_000_000), size=100_000, taken=0)
    store.history()
    assert not store.tidy(0)
    assert places(store) == list(range(1, 21)), "what the application has not taken is never evicted"


def test_a_store_of_format_4_opens_and_keeps_its_messages(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    filled(path, 3, Retention(), taken=1).close()
    with sqlite3.connect(path) as database:
        for column in ("at", "source", "content", "total"):
            database.execute(f"ALTER TABLE outbox DROP COLUMN {column}")
        database.execute("UPDATE driver SET value = 4 WHERE name = 'format'")
        database.execute("DELETE FROM outbox WHERE place = 1")
    store = Store(path, retention=Retention(messages=4))
    assert [kept.place for kept in store.unacknowledged()] == [2, 3]
    store.deliver(Message(MessageId(7, 0, 1), b"new"), 5)
    assert [(kept.place, kept.at) for kept in store.history().read(0)] == [(2, 0), (3, 0), (4, 5)]
    store.close()
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        assert database.execute("SELECT value FROM driver WHERE name = 'format'").fetchone() == (5,)


def test_without_a_store_the_memory_is_bounded() -> None:
    store = NoStore(retention=Retention(messages=None, bytes=None))
    for number in range(1, 3 * MOST_KEPT):
        store.deliver(Message(MessageId(1, 0, number), b"x"), number)
    assert len(places(store)) == MOST_KEPT
    large = NoStore(retention=Retention())
    for number in range(1, 40):
        large.deliver(Message(MessageId(1, 0, number), bytes(1_000_000)), number)
    assert len(places(large)) == 16
    assert NoStore(retention=Retention(messages=0)).history().read(0) == []


@pytest.mark.parametrize("stored", [True, False])
def test_an_application_reads_its_history(tmp_path: Path, stored: bool) -> None:
    async def main() -> None:
        before = datetime.now(UTC)
        path = tmp_path / "ana.db" if stored else None
        keep = precede.Retention(messages=600)
        async with precede.join("picnic", "ana", key=None, store=path, retention=keep) as group:
            for number in range(700):
                await group.broadcast(b"%d" % number)
            messages = group.__aiter__()
            for _ in range(690):
                await anext(messages)
            history = group.history()
            read = list(history)
            assert [message.payload for message in read] == [b"%d" % number for number in range(100, 700)]
            assert (history.first, history.evicted, history.complete) == (101, 100, False)
            assert [message.place for message in group.history(limit=3)] == [698, 699, 700]
            assert group.history(limit=3).complete
            after = group.history(since=read[10], limit=2)
            assert [message.place for message in after] == [112, 113]
            assert [message.place for message in group.history(since=read[-3].id)] == [699, 700]
            assert len(list(group.history(since=before))) == 600
            assert len(list(group.history(since="1h", source="ana"))) == 600
            assert list(group.history(since=datetime.now(UTC) + timedelta(hours=1))) == []
            message = read[-1]
            assert message.predecessors == (read[-2].id,)
            assert message.broadcast_at is not None
            assert before <= message.broadcast_at <= message.delivered_at <= datetime.now(UTC)
            for bad in ({"limit": -1}, {"since": -3}, {"source": "nobody"}, {"since": datetime(2026, 1, 1)}):
                with pytest.raises(BadInput):
                    group.history(**bad)  # type: ignore[arg-type]

    asyncio.run(main())


def test_a_message_is_the_same_from_the_loop_from_the_history_and_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "ana.db"
        async with precede.join("picnic", "ana", key=None, store=path) as group:
            for text in (b"1", b"2", b"3"):
                await group.broadcast(text)
            messages = group.__aiter__()
            first = [await anext(messages), await anext(messages)]
            assert next(iter(group.history(limit=2, since=first[0]))) == first[1]
            third = list(group.history())[2]
        async with precede.join("picnic", "ana", key=None, store=path) as group:
            assert list(group.history())[:2] == first
            assert await anext(group.__aiter__()) == third
        with pytest.raises(RuntimeError, match="left already"):
            group.history()

    asyncio.run(main())


def test_orders_that_do_not_carry_predecessors_say_none(tmp_path: Path) -> None:
    async def main(order: precede.Order) -> precede.Delivered:
        options = {"founding": "alone"} if order == "total" else None
        async with precede.join(
            "picnic",
            "ana",
            key=None,
            order=order,
            options=options,
            lifetime="20s" if order == "delta" else None,
        ) as group:
            for text in (b"1", b"2"):
                while True:
                    try:
                        await group.broadcast(text)
                        break
                    except precede.NotYet:
                        await asyncio.sleep(0.05)
            messages = group.__aiter__()
            await anext(messages)
            return await anext(messages)

    told = {order: asyncio.run(main(order)) for order in ("none", "fifo", "causal", "delta", "total")}
    directly = {order: message.predecessors for order, message in told.items()}
    before = (MessageId(told["fifo"].id.source, told["fifo"].id.incarnation, 1),)
    assert directly["none"] == ()
    assert directly["fifo"] == before
    assert [id.number for id in directly["causal"] or ()] == [1]
    assert [id.number for id in directly["delta"] or ()] == [1]
    assert directly["total"] is None
    assert told["total"].broadcast_at is None
    assert told["causal"].broadcast_us is not None


def test_a_clock_beyond_the_calendar_is_no_error() -> None:
    far = precede.Delivered("ana", 1, b"", MessageId(1, 0, 1), 1, 1, 1 << 62)
    assert far.broadcast_at is not None
    assert far.broadcast_at.year == 9999
    assert precede.Delivered("ana", 1, b"", MessageId(1, 0, 1), 1, -(1 << 62)).delivered_at.year == 1


@pytest.mark.parametrize(
    "setting",
    [{"messages": -1}, {"bytes": 1.5}, {"age": "soon"}, {"age": "1ms"}, {"disk": True}, {"log_age": 3}],
)
def test_settings_that_make_no_sense_are_refused(setting: dict[str, object]) -> None:
    with pytest.raises(BadInput, match=f"retention: {next(iter(setting))}: "):
        Retention(**setting)  # type: ignore[arg-type]


def test_join_refuses_another_type() -> None:
    with pytest.raises(BadInput, match=r"retention: expected a precede\.Retention"):
        precede.join("picnic", "ana", key=None, retention=1_000)  # type: ignore[arg-type]


def test_old_files_of_the_event_log_are_deleted_and_never_the_newest(tmp_path: Path) -> None:
    now = 1_000_000.0
    for number in range(5):
        path = tmp_path / f"events-00000-{number:012d}-000010.parquet"
        path.write_bytes(bytes(1_000))
        os.utime(path, (now - 3600 * (5 - number), now - 3600 * (5 - number)))
    assert rotate(tmp_path, Retention(), now) == 0
    assert rotate(tmp_path, Retention(log_bytes=3_500), now) == 2
    assert rotate(tmp_path, Retention(log_age="90min"), now) == 2
    assert rotate(tmp_path, Retention(log_bytes=0, log_age="1s"), now + HOUR) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["events-00000-000000000004-000010.parquet"]


def test_without_a_store_messages_up_to_the_bound_of_bytes_are_kept() -> None:
    kept = KeptInMemory(Retention(bytes=30))
    for place in (1, 2, 3):
        kept.add(Kept(place, Message(MessageId(0, 0, place), bytes(10)), place))
    assert kept.first() == 1
    kept.add(Kept(4, Message(MessageId(0, 0, 4), b"x"), 4))
    assert kept.first() == 2
