"""Members that are set up differently are told, on both sides, in one sentence that names the setting."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import pytest

import precede
from precede.core.instants import SECOND
from precede.runtime.settings import wall_clock
from tests.patience import patient

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
DELTA = {"order": "delta", "lifetime": "20min"}

DIFFERENCES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "other_order": ({"order": "causal"}, {"order": "fifo"}, ["causal", "fifo"]),
    "other_lifetime": (DELTA, {**DELTA, "lifetime": "1h"}, ["20min", "1h"]),
    "other_dissemination": ({}, {"options": {"dissemination": "flooding"}}, ["flooding", "dissemination"]),
    "other_profile": ({"beacon": 0.5}, {"beacon": 0.5, "profile": "internet"}, ["lan", "internet"]),
    "other_version": ({}, {"version": 77}, ["77", "release"]),
    "other_group": ({"key": None}, {"key": None, "group": "fair"}, ["picnic", "fair"]),
    "other_key": ({}, {"key": OTHER_KEY}, ["another name or key"]),
    "same_name": ({"name": "ana"}, {"name": "ana"}, ["ana", "names must differ"]),
    "other_clock": (DELTA, {**DELTA, "clock": lambda: wall_clock() - 3600 * SECOND}, ["clock"]),
}


def member(settings: dict[str, Any], name: str, peers: list[tuple[str, int]]) -> precede.Group:
    """A member; `version` and `clock` are no settings of `join`."""
    chosen = {"key": KEY, "group": "picnic", "name": name, **settings}
    version, clock = chosen.pop("version", None), chosen.pop("clock", None)
    made = precede.join(chosen.pop("group"), chosen.pop("name"), peers=peers, **chosen)
    if version is not None:
        made._membership._admissions[0].version = version
    if clock is not None:
        msgspec.structs.force_setattr(made._settings, "clock", clock)
        made._membership._admissions[0].agreement._clock = clock
    return made


@pytest.mark.parametrize(
    ("code", "ours", "theirs", "words"),
    [(code, *difference) for code, difference in DIFFERENCES.items()]
    + [("other_key", {}, {"group": "fair"}, ["another name or key"])]  # the key depends on the group's name
    + [("other_key", {}, {"key": None}, ["another name or key"])]
    + [("other_order", {"key": None}, {"key": None, "order": "fifo"}, ["causal", "fifo"])]
    + [("other_version", {"key": None}, {"key": None, "version": 77}, ["77", "release"])]
    + [("same_name", {"key": None, "name": "ana"}, {"key": None, "name": "ana"}, ["names must differ"])],
)
def test_both_sides_are_told(
    code: str, ours: dict[str, Any], theirs: dict[str, Any], words: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        ana = member(ours, "ana", [])
        async with ana:
            ben = member(theirs, "ben", [ana.address])
            async with ben:
                ana._transports[0].add_peer(ben.address)  # type: ignore[attr-defined]
                async with asyncio.timeout(patient(20)):  # 2 s or less on a quiet machine
                    while not all(code in codes(each) for each in (ana, ben)):
                        await asyncio.sleep(0.02)
                for each in (ana, ben):
                    (warning,) = [warning for warning in each.status()["warnings"] if warning.code == code]
                    assert all(word in warning.text for word in words), warning.text
                    logged = [record for record in caplog.records if warning.text in record.getMessage()]
                    assert len(logged) in (1, 2)  # the two texts may be the same

    with caplog.at_level(logging.WARNING, "precede"):
        asyncio.run(run())


def codes(group: precede.Group) -> list[str]:
    return [warning.code for warning in group.status()["warnings"]]


def test_members_that_are_set_up_alike_are_told_nothing() -> None:
    async def run() -> None:
        async with member(DELTA, "ana", []) as ana, member(DELTA, "ben", [ana.address]) as ben:
            async with asyncio.timeout(patient(20)):
                while not ana.neighbours() or not ben.neighbours():
                    await asyncio.sleep(0.02)
            await asyncio.sleep(1.0)
            assert codes(ana) == codes(ben) == []

    asyncio.run(run())
