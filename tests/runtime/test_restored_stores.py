"""Stores that are lost, copied, restored or rolled back: it is noticed, and nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import precede
from precede.core.errors import Refused
from precede.runtime import membership
from precede.runtime.store import Store
from precede.runtime.store_lock import StoreLock
from tests.runtime.test_authorship import member, when_taken
from tests.runtime.test_group import introduce, take
from tests.runtime.test_removal import codes, until

ORDERS = ["none", "fifo", "causal", "delta"]


def settings(order: str) -> dict[str, Any]:
    return {"order": order, "lifetime": "10min" if order == "delta" else None}


TRIO = ("ana", "ben", "cem")


def in_three(order: str) -> dict[str, Any]:
    options = {"quiet": "300ms", "suspect_after": "1s"} if order == "total" else {}
    return {"order": order, "members": TRIO, "options": options}


def restore(backup: Path, store: Path) -> None:
    """Restore a backup the way `cp` does: the file stays and gets other content."""
    for suffix in ("-wal", "-shm"):
        store.with_name(store.name + suffix).unlink(missing_ok=True)
    shutil.copyfile(backup, store)


class Listener:
    """Counts what a member delivers."""

    def __init__(self, group: precede.Group) -> None:
        self.group = group
        self.got: Counter[bytes] = Counter()
        self.task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for message in self.group:
            self.got[message.payload] += 1

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.mark.parametrize("order", ORDERS)
def test_messages_of_a_member_that_lost_its_store_are_delivered(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = iter(
        Random(order).sample(range(1, 30_001), 9)
    )  # once in 30,000 starts a draw repeats an earlier one
    monkeypatch.setattr(membership, "new_incarnation", lambda: next(draws))

    async def live() -> None:
        ben, b = member("ben", store=tmp_path / "ben", **settings(order))
        async with ben:
            for start in range(3):
                ana, a = member("ana", store=tmp_path / f"ana{start}", **settings(order))
                async with ana:
                    introduce(a, b)
                    await ana.broadcast(b"%d" % start)
                    assert await take(ben, 1) == [b"%d" % start]
            assert ben.status()["evidence"] == []

    asyncio.run(live())


@pytest.mark.parametrize("order", ORDERS)
def test_two_live_copies_of_one_store_lose_and_double_nothing(order: str, tmp_path: Path) -> None:
    """Both copies and the third member notice it. Each delivers every message once."""

    async def live() -> None:
        ben, b = member("ben", **settings(order))
        one, a = member("ana", store=tmp_path / "one.db", **settings(order))
        async with ben:
            async with one:
                introduce(a, b)
                await one.broadcast(b"before the backup")
                assert await take(ben, 1) == await take(one, 1) == [b"before the backup"]
                await ben.broadcast(b"from ben")
                assert await take(one, 1) == [b"from ben"]
            shutil.copyfile(tmp_path / "one.db", tmp_path / "two.db")
            (one, a), (two, c) = (
                member("ana", store=tmp_path / f"{name}.db", **settings(order)) for name in ("one", "two")
            )
            async with one, two:
                listeners = [Listener(group) for group in (one, two, ben)]
                assert one.status()["incarnation"] != two.status()["incarnation"]
                introduce(a, b, c)
                sent = Counter({b"from ben": 0})
                for number in range(4):
                    for name, group in (("one", one), ("two", two), ("ben", ben)):
                        payload = b"%s %d" % (name.encode(), number)
                        await group.broadcast(payload)
                        sent[payload] = 1
                    await asyncio.sleep(0.1)
                await until(lambda: all(sum(each.got.values()) >= 12 for each in listeners))
                await until(lambda: "same_name" in codes(one) and "same_name" in codes(two))
                await until(lambda: "twin" in codes(ben))
                assert "restored_store" in codes(two)
                assert "restored_store" not in codes(one)
                await asyncio.sleep(0.3)
                for each in listeners:
                    await each.stop()
                got = [+each.got for each in listeners]
                got[2] -= Counter({b"from ben": 1})  # not taken before
                assert got == [+sent] * 3
                assert [group.status()["evidence"] for group in (one, two, ben)] == [[]] * 3

    asyncio.run(live())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("how", ["file", "folder"])
def test_a_store_that_was_rolled_back_goes_on_as_a_new_incarnation(
    order: str, how: str, tmp_path: Path
) -> None:
    """What it had sent after the backup comes back to it, and what it sends now has other ids."""
    store = tmp_path / "ana" / "ana.db"

    async def live() -> None:
        ben, b = member("ben", **settings(order))
        async with ben:
            taken: list[list[bytes]] = []
            for payload in (b"kept", b"forgotten", b"new"):
                ana, a = member("ana", store=store, **settings(order))
                async with ana:
                    introduce(a, b)
                    await ana.broadcast(payload)
                    assert await take(ben, 1) == [payload]
                    taken.append(await take(ana, 2 if payload == b"new" else 1))
                    assert ("restored_store" in codes(ana)) == (payload == b"new")
                if payload == b"kept":
                    shutil.copytree(store.parent, tmp_path / "backup")
                elif payload == b"forgotten" and how == "file":
                    restore(tmp_path / "backup" / "ana.db", store)
                elif payload == b"forgotten":
                    shutil.copytree(tmp_path / "backup", store.parent, dirs_exist_ok=True)
            assert taken == [[b"kept"], [b"forgotten"], [b"new", b"forgotten"]]
            assert ben.status()["evidence"] == []

    asyncio.run(live())


@pytest.mark.parametrize("order", ORDERS)
def test_a_snapshot_that_nothing_shows_is_noticed_by_its_own_messages(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine was set back with all its files and their times: only the others know better."""
    store = tmp_path / "ana.db"
    monkeypatch.setattr(StoreLock, "_mark", lambda self: 7)

    async def live() -> None:
        ben, b = member("ben", **settings(order))
        async with ben:
            for payload in (b"kept", b"forgotten"):
                ana, a = member("ana", store=store, **settings(order))
                async with ana:
                    introduce(a, b)
                    await ana.broadcast(payload)
                    assert await take(ben, 1) == await take(ana, 1) == [payload]
                if payload == b"kept":
                    shutil.copyfile(store, tmp_path / "backup")
            restore(tmp_path / "backup", store)
            ana, a = member("ana", store=store, **settings(order))
            async with ana:
                introduce(a, b)
                await until(lambda: "rolled_back" in codes(ana))
                with pytest.raises(Refused, match="rolled back; join again"):
                    await ana.broadcast(b"too early")
                assert ana.status()["dropped"]["rolled_back"]
            ana, a = member("ana", store=store, **settings(order))
            async with ana:
                introduce(a, b)
                assert await take(ana, 1) == [b"forgotten"]
                await ana.broadcast(b"new")
                assert await take(ben, 1) == await take(ana, 1) == [b"new"]
            assert ben.status()["evidence"] == []

    asyncio.run(live())


def test_a_snapshot_is_noticed_in_the_total_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoreLock, "_mark", lambda self: 7)
    given, store = in_three("total"), tmp_path / "ana.db"

    async def live() -> None:
        (ben, b), (cem, c) = (member(name, store=tmp_path / f"{name}.db", **given) for name in ("ben", "cem"))
        async with ben, cem:
            for payload in (b"kept", b"forgotten"):
                ana, a = member("ana", store=store, **given)
                async with ana:
                    introduce(a, b, c)
                    await when_taken(ana, payload)
                    assert await take(ben, 1) == await take(ana, 1) == [payload]
                if payload == b"kept":
                    shutil.copyfile(store, tmp_path / "backup")
            restore(tmp_path / "backup", store)
            ana, a = member("ana", store=store, **given)
            async with ana:
                introduce(a, b, c)
                await until(lambda: "rolled_back" in codes(ana))
                with pytest.raises(Refused, match="rolled back; join again"):
                    await ana.broadcast(b"too early")
            ana, a = member("ana", store=store, **given)
            async with ana:
                introduce(a, b, c)
                assert await take(ana, 1) == [b"forgotten"]
                await when_taken(ana, b"new")
                assert await take(ben, 1) == await take(ana, 1) == [b"new"]
            assert ben.status()["evidence"] == []

    asyncio.run(live())


@pytest.mark.parametrize("later", [1, 3])
def test_what_was_sent_before_a_rollback_showed_is_told(
    later: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one loss that is left: two messages got numbers that were used up. One side or the other tells."""
    monkeypatch.setattr(StoreLock, "_mark", lambda self: 7)
    store = tmp_path / "ana.db"

    async def live() -> None:
        ben, b = member("ben")
        async with ben:
            for payloads in ([b"kept"], [b"forgotten"] * later):
                ana, a = member("ana", store=store)
                async with ana:
                    introduce(a, b)
                    for payload in payloads:
                        await ana.broadcast(payload)
                    assert await take(ben, len(payloads)) == payloads
                if payloads == [b"kept"]:
                    shutil.copyfile(store, tmp_path / "backup")
            restore(tmp_path / "backup", store)
            ana, a = member("ana", store=store)
            async with ana:
                for _ in range(2):
                    await ana.broadcast(b"with a number that is used up")
                introduce(a, b)
                if later > 2:  # ben has more than ana wrote: he sends it to her
                    await until(lambda: "rolled_back" in codes(ana))
                else:  # ana has more than ben: she sends it to him
                    await until(lambda: "equivocation" in codes(ben))
                    assert [each.kind for each in ben.status()["evidence"]] == ["branch"]

    asyncio.run(live())


def test_a_store_knows_its_place(tmp_path: Path) -> None:
    def is_copy(path: Path) -> bool:
        store = Store(path, synchronous=False)
        store.close()
        return store.is_copy

    path = tmp_path / "ana.db"
    assert [is_copy(path) for _ in range(3)] == [False] * 3
    store = Store(path, synchronous=False)
    store.abandon()  # killed
    assert not is_copy(path)
    store = Store(path, synchronous=False)
    store.remember("moving", 1)
    store.commit()
    os.utime(path.with_name("ana.db-lock"))  # killed between the lock's file and the store
    store.abandon()
    assert not is_copy(path)
    shutil.copytree(tmp_path, tmp_path / "copy")
    assert is_copy(tmp_path / "copy" / "ana.db")
    assert not is_copy(tmp_path / "copy" / "ana.db")
    shutil.copyfile(path, tmp_path / "other.db")
    assert is_copy(tmp_path / "other.db")
    path.with_name("ana.db-lock").unlink()
    assert is_copy(path)


async def say(order: str, group: precede.Group, payload: bytes) -> None:
    """Send a message to the two others, or to all where the order has no destinations."""
    if order == "multicast":
        await group.multicast(payload, to=[name for name in TRIO if name != group.name])
    else:
        await when_taken(group, payload)


@pytest.mark.parametrize("order", ["multicast", "total"])
def test_a_backup_that_is_started_twice_loses_and_doubles_nothing(order: str, tmp_path: Path) -> None:
    """Both copies run at once. What anybody says is delivered once, also at each copy in the total order."""

    async def live() -> None:
        (ben, b), (cem, c), (ana, a) = (
            member(name, store=tmp_path / f"{name}.db", **in_three(order)) for name in ("ben", "cem", "ana")
        )
        async with ben, cem:
            listeners = [Listener(ben), Listener(cem)]
            async with ana:
                introduce(a, b, c)
                await say(order, ana, b"before")
                await until(lambda: all(each.got[b"before"] for each in listeners))
                if order == "total":
                    assert await take(ana, 1) == [b"before"]
            for copy in ("one", "two"):
                shutil.copyfile(tmp_path / "ana.db", tmp_path / f"{copy}.db")
            (one, d), (two, e) = (
                member("ana", store=tmp_path / f"{copy}.db", **in_three(order)) for copy in ("one", "two")
            )
            async with one, two:
                listeners += [Listener(one), Listener(two)]
                introduce(d, b, c)
                introduce(e, b, c)
                assert len({0, one.status()["incarnation"], two.status()["incarnation"]}) == 3
                assert all("restored_store" in codes(copy) for copy in (one, two))
                for number in range(2):
                    for name, group in (("one", one), ("two", two), ("ben", ben)):
                        await say(order, group, b"%s %d" % (name.encode(), number))
                after = [b"%s %d" % (name, number) for name in (b"one", b"two", b"ben") for number in range(2)]
                expected = [Counter([b"before", *after])] * 2 + [Counter(after)] * 2
                if order == "multicast":  # nobody gets its own, and ana's name is that of the later copy
                    expected[0] = Counter([b"before", *after[:4]])
                    del expected[2:]
                pairs = list(zip(listeners, expected, strict=False))
                await until(lambda: all(each.got >= wanted for each, wanted in pairs))
                await asyncio.sleep(0.3)
                for each in listeners:
                    await each.stop()
                assert [each.got for each in listeners][: len(expected)] == expected
                if order == "multicast":
                    assert max((listeners[2].got + listeners[3].got).values(), default=0) <= 1
                    assert not (listeners[2].got + listeners[3].got).keys() - after[4:]
            assert [group.status()["evidence"] for group in (ben, cem)] == [[], []]

    asyncio.run(live())


def test_a_restored_store_in_the_multicast_order_gets_what_is_sent_from_now_on(tmp_path: Path) -> None:
    """It used to wait for ever for messages that the others had sent after the backup."""

    async def live() -> None:
        (ben, b), (cem, c) = (
            member(name, store=tmp_path / f"{name}.db", **in_three("multicast")) for name in ("ben", "cem")
        )
        async with ben, cem:
            for payload in (b"kept", b"forgotten", b"new"):
                ana, a = member("ana", store=tmp_path / "ana.db", **in_three("multicast"))
                async with ana:
                    introduce(a, b, c)
                    await until(lambda: ana.neighbours() == ["ben", "cem"])  # noqa: B023
                    await say("multicast", ana, b"by ana")
                    assert await take(ben, 1) == [b"by ana"]
                    await say("multicast", ben, payload)
                    assert await take(ana, 1) == [payload]
                    assert ("restored_store" in codes(ana)) == (payload == b"new")
                if payload == b"kept":
                    shutil.copyfile(tmp_path / "ana.db", tmp_path / "backup")
                elif payload == b"forgotten":
                    restore(tmp_path / "backup", tmp_path / "ana.db")

    asyncio.run(live())


def test_a_copy_in_a_total_order_of_two_is_told_and_goes_on(tmp_path: Path) -> None:
    """The other one alone is no majority: it could not vote the copied stream out."""
    given: dict[str, Any] = {"order": "total", "members": ("ana", "ben"), "options": {"quiet": "300ms"}}

    async def live() -> None:
        ana, a = member("ana", store=tmp_path / "ana.db", **given)
        async with ana:
            incarnation = ana.status()["incarnation"]
        shutil.move(tmp_path / "ana.db", tmp_path / "moved.db")
        (ana, a), (ben, b) = (
            member("ana", store=tmp_path / "moved.db", **given),
            member("ben", store=tmp_path / "ben.db", **given),
        )
        async with ana, ben:
            introduce(a, b)
            assert ana.status()["incarnation"] == incarnation
            assert "restored_store" in codes(ana)
            await when_taken(ana, b"hello")
            assert await take(ben, 1, 30) == [b"hello"]

    asyncio.run(live())
