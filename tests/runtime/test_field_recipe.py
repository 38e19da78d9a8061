"""The recipe of the field guide: members that were never listed, their logs gathered, and a true verdict."""

from __future__ import annotations

import asyncio
from pathlib import Path

import precede
from tests.patience import patient

KEY = b"f" * 32


def test_gathered_logs_hold_and_one_log_alone_is_unknown(tmp_path: Path) -> None:
    """Three members in a row: the ends hear only the middle, and still know each other's names."""

    async def taken(group: precede.Group, count: int) -> list[str]:
        names: list[str] = []
        async for message in group:
            names.append(message.source)
            if len(names) == count:
                break
        return names

    async def run() -> None:
        def member(name: str, peers: list[tuple[str, int]]) -> precede.Group:
            return precede.join("town", name, key=KEY, beacon=0.1, peers=peers, log=tmp_path / "log" / name)

        ben = member("ben", [])
        await ben.__aenter__()
        async with (
            asyncio.timeout(patient(60)),
            member("ana", [ben.address]) as ana,
            member("cem", [ben.address]) as cem,
        ):
            while len(ben.neighbours()) < 2 or not ana.neighbours() or not cem.neighbours():
                await asyncio.sleep(0.02)
            await ana.broadcast(b"one")
            await cem.broadcast(b"two")
            for group in (ana, ben, cem):
                assert sorted(await taken(group, 2)) == ["ana", "cem"]
        await ben.close()

    asyncio.run(run())
    verdict = precede.verify(tmp_path / "log", "causal")
    assert (verdict.verdict, verdict.deliveries_checked) == ("holds", 6)
    alone = precede.verify(tmp_path / "log" / "ben", "causal")
    assert alone.verdict == "unknown"
