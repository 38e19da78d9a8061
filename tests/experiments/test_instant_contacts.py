"""Instant transfers over contacts: `InstantWorld` gives the rows, gauges and counters of the shared path."""

from __future__ import annotations

from pathlib import Path

import pytest

from precede.experiments.contact_worlds import choosing
from precede.experiments.instant_contacts.world import InstantWorld
from precede.experiments.scenario import read_scenario
from precede.sim.world import World
from tests.experiments.contact_runs import (
    SHARED_PATH_TOO,
    SMALL_CACHES,
    assert_same,
    world_of,
    write_comings_and_goings,
)

SHORT = {"lifetime": "90s", "end": "7min"}
MIXED = {"workload.lifetime": "uniform(10, 200)"}
RUNS = {
    "one lifetime": ("delta_causal", SHORT),
    "as in the paper": ("delta_causal", {**SHORT, "lazy_expiry": "true", "prune": "false", "sweep": "0s"}),
    "mixed lifetimes": ("delta_causal", {**SHORT, **MIXED}),
    "lifetimes of predecessors": ("delta_causal", {**SHORT, "monotone": "true", "log": "messages"}),
    "answers": ("delta_causal", {**SHORT, "replies": "0.02", "reply_after": "uniform(0, 5)"}),
    "no gauges": ("delta_causal", {**SHORT, "gauges": "none"}),
    "no lifetime": ("causal_barrier", {"end": "6min"}),
    "another rule": ("hash_dag", {"end": "6min"}),
    "no order": ("unordered", {"end": "6min"}),
    "random order": ("delta_causal", {**SHORT, "order": "random"}),
    "random order, mixed lifetimes": ("delta_causal", {**SHORT, **MIXED, "order": "random"}),
    "random order, as in the paper": (
        "delta_causal",
        {**SHORT, "order": "random", "lazy_expiry": "true", "prune": "false"},
    ),
    "random order, no lifetime": ("causal_barrier", {"end": "6min", "order": "random"}),
    "oldest first": ("delta_causal", {**SHORT, "order": "oldest"}),
    "newest first": ("delta_causal", {**SHORT, **MIXED, "order": "newest", "log": "messages"}),
    "small caches": ("delta_causal", {**SHORT, "cache": "9"}),
    "small caches, mixed lifetimes": ("delta_causal", {**SHORT, **MIXED, "cache": "9", "order": "random"}),
    "small caches, as in the paper": (
        "delta_causal",
        {**SHORT, "cache": "9", "lazy_expiry": "true", "prune": "false"},
    ),
    "caches of some bytes": ("delta_causal", {**SHORT, "cache_bytes": "12000", "sweep": "90s"}),
    "by source": ("delta_causal", {**SHORT, "order": "per_source"}),
}
ORDERS = ("received", "random", "newest", "per_source")


@pytest.fixture(autouse=True)
def also_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "is_compiled", lambda module: True)


@pytest.mark.parametrize("name", RUNS)
def test_the_rows_are_those_of_the_shared_path(name: str) -> None:
    protocol, settings = RUNS[name]
    settings = {"every": "10s", "first": "2s", **settings}
    rows, _ = assert_same(read_scenario("pedestrians", protocol, 5, settings), InstantWorld)
    assert rows.num_rows > 5_000


@pytest.mark.parametrize("order", ["received", "random"])
@pytest.mark.parametrize("lifetime", ["2s", "40s"])
def test_first_messages_that_cross(tmp_path: Path, lifetime: str, order: str) -> None:
    links = ("a,b", "b,c", "c,d", "a,d", "d,e", "b,e", "e,f")
    lines = [f"{link},{start},{start + 7}" for start in range(1, 40, 9) for link in links]
    (tmp_path / "contacts.csv").write_text("\n".join(["a,b,start,end", *lines]) + "\n")
    births = [f"{time}{node},{node},{time}" for time in (0.5, 2, 2.5, 12, 20) for node in "acef"]
    (tmp_path / "messages.csv").write_text("\n".join(["id,src,time", *births]) + "\n")
    (tmp_path / "world.toml").write_text(
        """
        world = { kind = "contacts", contacts = "contacts.csv" }
        workload = { messages = "messages.csv" }
        run = { protocol = "delta_causal" }
        """
    )
    settings = {"lifetime": lifetime, "order": order}
    rows, _ = assert_same(read_scenario(str(tmp_path / "world.toml"), None, 1, settings), InstantWorld)
    assert rows["packet_kind"].to_pylist().count("have") > 5


@pytest.mark.parametrize("seed", range(8))
def test_nodes_that_come_back(tmp_path: Path, seed: int) -> None:
    settings = {"order": ORDERS[seed % 4], **({"workload.lifetime": "uniform(1, 80)"} if seed & 4 else {})}
    if seed & 2:
        settings["cache"] = "7"
    run = read_scenario(str(write_comings_and_goings(tmp_path, seed)), None, seed, settings)
    rows, _ = assert_same(run, InstantWorld)
    assert rows["kind"].to_pylist().count("broadcast") > 1_100  # the base of serial numbers has risen


@pytest.mark.parametrize("order", [*ORDERS, "oldest"])
def test_every_order_has_the_engine(order: str) -> None:
    assert world_of({"order": order}) is InstantWorld


@pytest.mark.parametrize("key", ["overhead", *sorted(SHARED_PATH_TOO.keys() - SMALL_CACHES.keys())])
def test_other_runs_take_another_path(key: str) -> None:
    assert world_of({key: SHARED_PATH_TOO.get(key, "100ms")}) is not InstantWorld


@pytest.mark.parametrize("key", SMALL_CACHES)
def test_small_caches_that_evict_the_first_message_have_the_engine(key: str) -> None:
    limit = {key: SMALL_CACHES[key]}
    assert world_of(limit) is InstantWorld
    assert world_of({**limit, "evict": "random"}) is World
    assert world_of(limit, "causal_barrier") is World
    assert world_of({**limit, "overhead": "100ms"}) is World


def test_plain_python_takes_the_shared_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "is_compiled", lambda module: False)
    assert world_of({}) is World
