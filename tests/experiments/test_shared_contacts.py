"""Runs of one scenario that differ in protocol, seed or workload read or generate its contacts once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from precede.core.errors import BadInput
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.experiments.worlds import contacts
from precede.lake.layout import Lake
from precede.pipeline.mobility.contacts import compute_contacts
from precede.pipeline.mobility.generated import store_mobility
from precede.traces.walks import Walkers, random_waypoint

WALK = {"kind": "contacts", "generator": "random-waypoint", "nodes": "6", "duration": "5min", "range": 300.0}
TALK = {"every": "20s", "size": 10}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds for which contacts were made."""
    seeds: list[int] = []
    make = contacts._contacts
    monkeypatch.setattr(contacts, "_contacts", lambda *given: seeds.append(given[2]) or make(*given))
    contacts._LAST.clear()
    return seeds


def rows(world: dict[str, Any], seed: int = 1, protocol: str = "fifo", base: Path | str = "") -> list[Any]:
    sink = TableSink()
    carry_out(Run(protocol=protocol, seed=seed, world=world, workload=TALK, base=str(base)), sink)
    return sink.events().to_pylist()


def test_runs_of_one_day_share_its_contacts(made: list[int]):
    day = {**WALK, "generator_seed": 7}
    first = rows(day)
    assert rows(day, protocol="hash_dag", seed=2) != first
    assert rows({**day, "overhead": "1s"}) != first
    assert made == [1]
    assert rows(day) == first
    contacts._LAST.clear()
    assert rows(day) == first


def test_other_movement_and_another_range_have_contacts_of_their_own(made: list[int]):
    rows(WALK)
    rows(WALK, protocol="unordered")
    rows(WALK, seed=2)
    rows({**WALK, "range": 200.0}, seed=2)
    rows({**WALK, "radio": "wifi"}, seed=2)
    assert made == [1, 2, 2, 2]


def test_a_file_that_changed_is_read_again(tmp_path: Path, made: list[int]):
    file, world = tmp_path / "met.csv", {"kind": "contacts", "contacts": "met.csv"}
    file.write_text("a,b,start,end\nx,y,0,50\n")
    before = rows(world, base=tmp_path)
    assert rows(world, base=tmp_path) == before
    file.write_text("a,b,start,end\nx,z,0,50\n")
    os.utime(file, (1, 1))
    assert {row["node"] for row in rows(world, base=tmp_path)} == {"x", "z"}
    assert len(made) == 2


def test_a_file_in_its_place_of_the_same_size_and_time_is_read(tmp_path: Path):
    file, other = tmp_path / "met.csv", tmp_path / "other.csv"
    world = {"kind": "contacts", "contacts": "met.csv"}
    for path, peer in ((file, "y"), (other, "z")):
        path.write_text(f"a,b,start,end\nx,{peer},0,50\n")
        os.utime(path, (1, 1))
    rows(world, base=tmp_path)
    other.rename(file)
    assert {row["node"] for row in rows(world, base=tmp_path)} == {"x", "z"}


def test_a_range_that_is_written_is_another_than_that_of_the_radio(made: list[int]):
    radio = {**WALK, "radio": "wifi", "range": None}
    assert rows(radio) != rows({name: value for name, value in radio.items() if name != "range"})
    assert len(made) == 2


def test_a_trace_of_the_lake_is_read_once_for_each_range(tmp_path: Path, made: list[int]):
    lake = Lake(tmp_path / "lake")
    store_mobility(lake, "walk", random_waypoint(1, Walkers(nodes=6, duration=300_000_000)))
    for count, range_m in enumerate((200.0, 300.0), 1):
        compute_contacts(lake, "walk", range_m)
        world = {"kind": "contacts", "trace": "walk", "range": range_m, "lake": str(lake.root)}
        assert rows(world, protocol="unordered") != rows(world)
        assert len(made) == count


def test_a_missing_trace_is_bad_input_that_names_the_key(tmp_path: Path):
    with pytest.raises(BadInput, match="trace"):
        rows({"kind": "contacts", "trace": "walk", "lake": str(tmp_path)})
