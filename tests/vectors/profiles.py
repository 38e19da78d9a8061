"""Measures each profile among eight members that all hear each other: bytes on air, with and without loss.

`python -m tests.vectors.profiles` writes the table in `docs/reference/byte-budget.md` again. Clocks jump,
so an hour of a slow radio takes seconds.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final, NamedTuple

import precede
from precede.runtime.links.authorship import public_of
from precede.runtime.transports.profiles import PROFILES
from tests.vectors.radio import Air, Radio, run_at_once

PAGE: Final = Path(__file__).parent.parent.parent / "docs" / "reference" / "byte-budget.md"
MEMBERS: Final = 8
PAYLOAD: Final = 30
IDLE_BEACONS: Final = 20
RATES: Final = {"lan": 1e6, "internet": 1e5, "ble": 5e3, "lora": 684.0}
"""Bytes a second on the simulated channel; LoRa as with spreading factor 7 and 125 kHz."""


class Measured(NamedTuple):
    """Figures of one run: bytes and seconds until all sessions stand, idle bytes, bytes of a message."""

    setup_bytes: int
    setup_s: float
    idle: float
    """Bytes a second and member, while nobody broadcasts."""
    message: float
    """Bytes on air for one message: all but beacons and pings, which are the idle ones."""
    delivered: list[list[bytes]]


class Unicast(Radio):
    """A network without a broadcast medium: a frame for all is one for each."""

    one_reaches_all = False

    def broadcast(self, frame: bytes) -> None:
        for radio in self.air.radios:
            if radio is not self:
                self.air.transmit(self, frame, radio.place)


def measure(profile: str, messages: int, loss: float = 0.0, seed: int = 1, **given: Any) -> Measured:
    """Run eight members that sign their messages, and send some messages far apart."""
    return run_at_once(_measure(profile, messages, loss, seed, given))


async def _measure(profile: str, messages: int, loss: float, seed: int, given: dict[str, Any]) -> Measured:
    air = Air(RATES[profile], PROFILES[profile].largest or 1_200, loss, seed)
    names = [f"member{number}" for number in range(MEMBERS)]
    seeds = {name: bytes([number + 1]) * 32 for number, name in enumerate(names)}
    roster = {name: public_of(secret) for name, secret in seeds.items()}
    members = [
        precede.join(
            "radio",
            name,
            key=bytes(32),
            identity=seeds[name],
            roster=roster,
            transport=(Unicast if profile == "internet" else Radio)(air),
            profile=profile,  # type: ignore[arg-type]
            **given,
        )
        for name in names
    ]
    delivered: list[list[bytes]] = [[] for _ in members]

    async def take(place: int) -> None:
        async for message in members[place]:
            delivered[place].append(message.payload)

    loop, beacon = asyncio.get_running_loop(), PROFILES[profile].beacon
    for member in members:
        await member.__aenter__()
    tasks = [asyncio.create_task(take(place)) for place in range(MEMBERS)]
    began = loop.time()
    while any(len(member.neighbours()) < MEMBERS - 1 for member in members):
        assert loop.time() < began + 1_000 * beacon, "no sessions"
        await asyncio.sleep(beacon / 10)
    setup_bytes, setup_s = air.total, loop.time() - began
    await asyncio.sleep(10 * beacon)
    before, since = air.total, loop.time()
    await asyncio.sleep(IDLE_BEACONS * beacon)
    rate = (air.total - before) / (loop.time() - since)
    before, since = air.spent, loop.time()
    for number in range(messages):
        await members[number % MEMBERS].broadcast(b"%0*d" % (PAYLOAD, number))
        await asyncio.sleep(4 * beacon)
    while any(len(each) < messages for each in delivered) and loop.time() < since + 1_000 * beacon:
        await asyncio.sleep(beacon)
    spent = air.spent - before
    for task in tasks:
        task.cancel()
    for member in members:
        await member.close()
    return Measured(setup_bytes, setup_s, rate / MEMBERS, spent / max(messages, 1), delivered)


def table() -> str:
    """The table: each profile's settings and what it costs."""
    lines = [
        "| profile | frame | beacon | idle, bytes/s a member | a message, bytes on air | with 10 % loss "
        "| sessions stand: bytes, after | with 10 % loss |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, profile in PROFILES.items():
        clean, lossy = measure(name, 16), measure(name, 16, 0.1)
        row = (
            name,
            profile.largest or 1_200,
            f"{profile.beacon:g} s",
            f"{clean.idle:.1f}",
            f"{clean.message:,.0f}",
            f"{lossy.message:,.0f}",
            f"{clean.setup_bytes:,}, {clean.setup_s:.0f} s",
            f"{lossy.setup_bytes:,}, {lossy.setup_s:.0f} s",
        )
        lines.append("| " + " | ".join(map(str, row)) + " |")
    return "\n".join(lines)


def with_table(page: str) -> str:
    before, _, rest = page.partition("<!-- profiles -->\n")
    _, _, after = rest.partition("<!-- /profiles -->")
    return f"{before}<!-- profiles -->\n{table()}\n<!-- /profiles -->{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
