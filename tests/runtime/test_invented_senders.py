"""A malicious member invents thousands of senders: they take no place, and a late member joins."""

from __future__ import annotations

import asyncio
import os

import precede
from benchmarks.members import CountingTransport
from precede.runtime.links.admission import MOST_HEARD
from precede.runtime.links.authorship import public_of
from precede.runtime.links.introductions import Identity
from precede.runtime.links.neighbours import BEACON
from tests.runtime.insider import Insider
from tests.runtime.test_removal import until

KEY = os.urandom(32)
SEEDS = {name: os.urandom(32) for name in ("ana", "ben", "mal")}
ROSTER = {name: public_of(seed) for name, seed in SEEDS.items()}
NOBODY = {f"nobody{number}": os.urandom(32) for number in range(40)}


def member(name: str) -> tuple[precede.Group, CountingTransport]:
    transport = CountingTransport()
    joined = precede.join(
        "picnic", name, key=KEY, transport=transport, beacon=0.05, identity=SEEDS[name], roster=ROSTER
    )
    return joined, transport


async def invent(insider: Insider, count: int, victim: CountingTransport) -> None:
    """Send beacons of members that do not exist."""
    own = insider.admission.number
    for number in range(1, count + 1):
        insider.admission.number = 1_000_000 + number
        insider.send_frame(insider.admission.seal_to_all(bytes((BEACON,)) + insider.admission.beacon()))
        insider.admission.number = own
        if number % 16 == 0:
            await asyncio.sleep(0.005)
    assert victim.heard > count // 2


def test_invented_senders_take_no_place_and_a_late_member_joins() -> None:
    keys = {name: public_of(seed) for name, seed in NOBODY.items()}

    async def tell() -> None:
        ana, at_ana = member("ana")
        async with ana:
            insider = Insider("mal", "picnic", KEY, at_ana.address, SEEDS["mal"], ROSTER | keys)
            for name, seed in NOBODY.items():  # mal passes on their introductions
                assert insider.directory.accept(Identity(seed).introduce("picnic", name)) is not None
            await insider.meet("ana")
            await invent(insider, 2 * MOST_HEARD, at_ana)
            assert set(ana.neighbours()) <= {"mal"}
            ben, at_ben = member("ben")
            at_ben.add_peer(at_ana.address)
            async with ben:
                await until(lambda: "ben" in ana.neighbours())
                assert set(ana.neighbours()) <= {"ben", "mal"}
            await insider.stop()

    asyncio.run(tell())
