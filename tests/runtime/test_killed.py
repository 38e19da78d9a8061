"""`kill -9`: real processes with compressed contacts, a third of them killed and started again at random.

No message is delivered twice or out of order, and every message that has not expired is delivered everywhere.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from random import Random

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precede.api import open_member
from precede.core.instants import SECOND, Instant
from precede.core.plan import LinkChange, Plan, PlannedBroadcast, Stay
from precede.runtime.emulation.members import Clock
from precede.runtime.emulation.processes import Processes
from precede.runtime.emulation.stage import Stage
from precede.witness.verify import verify

TOGETHER = 60 * SECOND
"""From so long before the end of the plan on, all nodes form a ring, until nothing is delivered any more."""

FOREVER = 1 << 60


def contacts(nodes: int, minutes: int, random: Random) -> Plan:
    """Random contacts of pairs; in the last minute all nodes form a ring."""
    end = minutes * 60 * SECOND
    free, links = end - TOGETHER, list[LinkChange]()
    for a in range(nodes):
        for b in range(a + 1, nodes):
            at = random.randrange(free)
            if random.random() < 5 / nodes:
                links += [LinkChange(at, a, b, True), LinkChange(min(at + 40 * SECOND, free), a, b, False)]
        links.append(LinkChange(free + 1, min(a, (a + 1) % nodes), max(a, (a + 1) % nodes), True))
    broadcasts = [
        PlannedBroadcast(random.randrange(2 * SECOND, free), node, 200)
        for node in range(nodes)
        for _ in range(minutes)
    ]
    return Plan(
        run_id="killed",
        protocol="causal_barrier",
        order="causal",
        options={"dissemination": "epidemic"},
        names=tuple(f"n{node}" for node in range(nodes)),
        roles=("node",) * nodes,
        members=tuple(range(nodes)),
        stays=tuple(Stay(node, 0) for node in range(nodes)),
        links=tuple(sorted(links, key=lambda link: link.at)),
        broadcasts=tuple(sorted(broadcasts, key=lambda one: one.at)),
        end=end,
    )


def with_lifetimes(plan: Plan) -> Plan:
    options = {**plan.options, "lifetime": 4 * 3600 * SECOND}
    return msgspec.structs.replace(plan, protocol="delta_causal", order="delta", options=options)


def put_through(plan: Plan, folder: Path, speed: float, random: Random) -> tuple[pa.Table, Instant]:
    """Run a plan with a process for each node, a third of them killed; returns the event log and its end."""
    nodes = range(len(plan.names))
    clock = Clock(time.time_ns() // 1000 + 1_000_000, speed)
    stage = Stage(plan, folder, open_member, clock)
    processes = Processes(stage, [[node] for node in nodes], FOREVER)
    victims = random.sample(nodes, len(nodes) // 3)
    killed = {node: random.randrange(60 * SECOND, plan.end - 100 * SECOND) for node in victims}
    begun = {node: at + random.randrange(1, 40 * SECOND) for node, at in killed.items()}
    doings = [(at, node, "kill") for node, at in killed.items()]
    doings += [(at, node, "begin") for node, at in begun.items()]
    try:
        for node in nodes:
            processes.start(node)
        for at, node, what in sorted(doings):
            wait(clock, at)
            assert not processes.failed
            if what == "kill":
                while not processes.up(node):
                    time.sleep(0.05)  # on a busy machine the process may not have started yet
                processes.kill(node)
            else:
                processes.start(node, restart=True)
        wait(clock, plan.end)
        settle(processes)
        ended = clock.now()
    finally:
        processes.stop(30.0)
        stage.close()
    assert not processes.failed
    for node in nodes:
        stage.write_log(node)
    return pa.concat_tables([pq.read_table(path) for path in sorted(stage.log.rglob("*.parquet"))]), ended


def settle(processes: Processes, quiet: float = 8.0, longest: float = 180.0) -> None:
    """Wait until no node has delivered anything for a while; this depends on the machine."""
    began = changed = time.monotonic()
    seen = -1
    while time.monotonic() - changed < quiet and time.monotonic() - began < longest:
        time.sleep(0.25)
        delivered = processes.tally().delivered
        if delivered != seen:
            seen, changed = delivered, time.monotonic()


def wait(clock: Clock, at: Instant) -> None:
    left = (at - clock.now()) / SECOND / clock.speed
    if left > 0:
        time.sleep(left)


def judged(events: pa.Table, plan: Plan, end: Instant) -> Counter[str]:
    verdict = verify(events, plan.order)
    assert verdict.holds, verdict.first
    kinds: Counter[str] = Counter(events.column("kind").to_pylist())
    columns = ["node", "kind", "message_source", "message_number", "deadline_us"]
    rows = events.select(columns).to_pylist()
    broadcasts = [row for row in rows if row["kind"] == "broadcast"]
    alive = [
        (row["message_source"], row["message_number"])
        for row in broadcasts
        if row["deadline_us"] is None or row["deadline_us"] > end
    ]
    assert alive
    had = Counter(
        (row["node"], row["message_source"], row["message_number"])
        for row in rows
        if row["kind"] == "delivered"
    )
    assert max(had.values()) == 1
    missing = [(name, *message) for name in plan.names for message in alive if (name, *message) not in had]
    assert missing == []
    return kinds


@pytest.mark.parametrize("lifetimes", [False, True])
def test_nine_processes_three_of_them_killed(lifetimes: bool, tmp_path: Path) -> None:
    random = Random(11 + lifetimes)
    plan = contacts(9, 4, random)
    if lifetimes:
        plan = with_lifetimes(plan)
    events, end = put_through(plan, tmp_path, 40.0, random)
    assert judged(events, plan, end)["started"] == 9 + 3


@pytest.mark.long
@pytest.mark.parametrize("trial", range(20))
def test_thirty_processes_a_third_of_them_killed(trial: int, tmp_path: Path) -> None:
    random = Random(100 + trial)
    plan = contacts(30, 10, random)
    if trial % 2:
        plan = with_lifetimes(plan)
    events, end = put_through(plan, tmp_path, 25.0, random)
    kinds = judged(events, plan, end)
    print(f"trial {trial}: {dict(kinds)}")
    assert kinds["started"] == 30 + 10
