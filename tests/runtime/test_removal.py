"""Rosters that change while a group runs; lost devices, restored stores and other versions."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import precede
from precede import SignedRoster
from precede.cli import main
from precede.core.errors import BadInput
from precede.runtime.links.authorship import public_of
from precede.runtime.links.keyring import read_signed_roster
from precede.runtime.transports.udp import UdpTransport
from tests.patience import patient
from tests.runtime.test_group import introduce, take

KEY, ADMIN = os.urandom(32), os.urandom(32)
SEEDS = {name: os.urandom(32) for name in ("ana", "ben", "mal")}
FIRST = SignedRoster.signed(ADMIN, "picnic", {name: public_of(seed) for name, seed in SEEDS.items()})


def without(name: str, after: SignedRoster = FIRST) -> SignedRoster:
    left = {each: key for each, key in after.members.items() if each != name}
    return SignedRoster.signed(ADMIN, "picnic", left, after)


def member(
    name: str, roster: SignedRoster = FIRST, seed: bytes | None = None, **given: Any
) -> tuple[precede.Group, UdpTransport]:
    transport = UdpTransport(("127.0.0.1", 0))
    joined = precede.join(
        "picnic",
        name,
        key=KEY,
        transport=transport,
        beacon=0.05,
        identity=seed or SEEDS[name],
        roster=roster,
        admin=public_of(ADMIN),
        **given,
    )
    return joined, transport


def codes(group: precede.Group) -> list[str]:
    return [warning.code for warning in group.status()["warnings"]]


async def until(condition: Any) -> None:
    async with asyncio.timeout(patient(20)):
        while not condition():
            await asyncio.sleep(0.02)


def test_a_removed_member_is_refused_and_its_sessions_end() -> None:
    async def live() -> None:
        (ana, a), (ben, b), (mal, m) = member("ana"), member("ben"), member("mal")
        async with ana, ben, mal:
            introduce(a, b, m)
            await mal.broadcast(b"before")
            assert await take(ana, 1) == await take(ben, 1) == [b"before"]
            for group in (ana, ben):
                group.update_roster(without("mal"))
                assert "mal" not in group.neighbours()
            await mal.broadcast(b"after")
            await ben.broadcast(b"we are two")
            assert await take(ana, 1) == [b"we are two"]
            before = ana.status()["dropped"]
            await until(lambda: sum(ana.status()["dropped"].values()) > sum(before.values()))
            assert ana.neighbours() == ["ben"]
            assert ben.neighbours() == ["ana"]

    asyncio.run(live())


def test_an_update_must_be_newer_signed_and_contain_this_member() -> None:
    async def live() -> None:
        ana, _ = member("ana")
        async with ana:
            stranger = SignedRoster.signed(os.urandom(32), "picnic", FIRST.members, FIRST)
            other_group = SignedRoster.signed(ADMIN, "lunch", FIRST.members, FIRST)
            for roster, cause in (
                (FIRST, "epoch 0 is not newer than epoch 0"),
                (stranger, "not signed by the administrator"),
                (other_group, "not signed by the administrator"),
                (without("ana"), "no key for this member"),
            ):
                with pytest.raises(BadInput, match=cause):
                    ana.update_roster(roster)
            ana.update_roster(without("mal"))

    asyncio.run(live())
    plain = precede.join("picnic", "ana", key=KEY, identity=SEEDS["ana"], roster=FIRST.members)
    with pytest.raises(BadInput, match="without an administrator"):
        plain.update_roster(without("mal"))


def test_an_older_roster_is_refused_after_a_restart(tmp_path: Path) -> None:
    async def live() -> None:
        ana, _ = member("ana", store=tmp_path / "ana.db")
        async with ana:
            ana.update_roster(without("mal"))

    asyncio.run(live())
    with pytest.raises(BadInput, match="epoch 0 is older than epoch 1"):
        member("ana", store=tmp_path / "ana.db")


def test_a_lost_device_is_replaced_under_the_same_name(tmp_path: Path) -> None:
    """The messages of the new device have other ids: none is taken for one of the lost device."""
    seed = os.urandom(32)
    members = {**FIRST.members, "ana": public_of(seed)}

    async def live() -> None:
        ben, b = member("ben", store=tmp_path / "ben.db")
        async with ben:
            lost, old = member("ana", store=tmp_path / "lost.db")
            async with lost:
                introduce(old, b)
                await lost.broadcast(b"from the lost device")
                assert await take(ben, 1) == [b"from the lost device"]
                incarnation = lost.status()["incarnation"]
            last = {"ana": (incarnation, 1)}
            second = SignedRoster.signed(ADMIN, "picnic", members, FIRST, last=last)
            ben.update_roster(second)
            new, n = member("ana", second, seed, store=tmp_path / "new.db")
            thief, t = member("ana", store=tmp_path / "lost.db")
            async with new, thief:
                introduce(n, b, t)
                await thief.broadcast(b"from the thief")
                await new.broadcast(b"from the new device")
                assert await take(ben, 1) == [b"from the new device"]
                assert new.status()["incarnation"] != incarnation
                await ben.broadcast(b"welcome back")
                assert await take(new, 3) == [
                    b"from the new device",
                    b"from the lost device",  # before `welcome back`, which depends on it
                    b"welcome back",
                ]

    asyncio.run(live())


def test_a_store_that_was_restored_twice_is_noticed(tmp_path: Path) -> None:
    async def live() -> None:
        first, a = member("ana", store=tmp_path / "one.db")
        async with first:
            await first.broadcast(b"before the backup")
        shutil.copyfile(tmp_path / "one.db", tmp_path / "two.db")
        (first, a), (second, b) = (member("ana", store=tmp_path / f"{name}.db") for name in ("one", "two"))
        async with first, second:
            introduce(a, b)
            await until(lambda: "same_name" in codes(first) and "same_name" in codes(second))

    asyncio.run(live())


def test_the_roster_of_a_group_is_changed_by_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = {}
    for name in ("admin", "ana", "mal", "ana2"):
        assert main(["keys", "identity", str(tmp_path / f"{name}.identity"), name]) == 0
        keys[name] = capsys.readouterr().out.split()[1]
    file, admin = tmp_path / "g.roster", ["--admin", str(tmp_path / "admin.identity"), "--group", "picnic"]
    file.write_text(f"ana {keys['ana']}\nmal {keys['mal']}\n")
    file.chmod(0o600)
    public = bytes.fromhex(keys["admin"])
    assert main(["keys", "sign", str(file), *admin]) == 0
    assert main(["keys", "remove", str(file), "mal", *admin, "--last", "0:7"]) == 0
    assert main(["keys", "remove", str(file), "ana", *admin, "--last", "7"]) == 2
    assert main(["keys", "enrol", str(file), "ana", keys["ana2"], *admin]) == 0
    roster = read_signed_roster(file)
    roster.check("picnic", public)
    assert (roster.epoch, roster.members, roster.since) == (2, {"ana": bytes.fromhex(keys["ana2"])}, {"ana": 2})
    assert roster.retired == (("mal", bytes.fromhex(keys["mal"]), 0, 7),)
    assert main(["keys", "remove", str(file), "nobody", *admin]) == 2
    other = ["--admin", str(tmp_path / "mal.identity"), "--group", "picnic"]
    assert main(["keys", "enrol", str(file), "mal", keys["mal"], *other]) == 2
    assert main(["keys", "roster", str(file)]) == 0
    file.write_text(file.read_text().replace("@epoch 2", "@epoch 9"))
    with pytest.raises(BadInput, match="not signed by the administrator"):
        read_signed_roster(file).check("picnic", public)
