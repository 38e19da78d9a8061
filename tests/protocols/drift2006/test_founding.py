"""Listed founders agree on their group: who delivers what after late hearing, cuts and crashes at the start."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from precede.core.effects import Persist, Send
from precede.core.errors import BadInput, NotYet
from precede.core.instants import SECOND
from precede.core.node import Context, round_trip
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, prepare
from precede.experiments.swarm.events import events_of
from precede.protocols.drift2006.entry import DRIFT
from precede.protocols.drift2006.node import DriftNode
from precede.protocols.drift2006.options import DriftOptions
from precede.protocols.drift2006.packets import ControlPacket, FoundingPrepare

OPTIONS: dict[str, Any] = {
    "founding": "agreed",
    "bootstrap_after": "2s",
    "quiet": "500ms",
    "beacon": "500ms",
    "beacon_longest": "4s",
}


def run(
    nodes: int, script: list[tuple[int, float]], seed: int = 1, until: int = 60, **more: Any
) -> tuple[Any, list[list[str]]]:
    """Run a script of (source, second). Returns the world, and what each node delivered in its order."""
    sink = TableSink()
    options = {**OPTIONS, **more.pop("options", {})}
    world = {"kind": "flood", "nodes": nodes, "field": [60, 60], "delay": "uniform(0.001, 0.01)"}
    described = Run(
        world={**world, **more.pop("world", {})},
        workload={"script": [{"src": str(source), "at": f"{at}s"} for source, at in script]},
        protocol="drift",
        options=options,
        seed=seed,
        end=f"{until}s",
        gauges="none",
        **more,
    )
    prepared = prepare(described, sink)
    prepared.world.run(prepared.end)
    prepared.recorder.flush()
    sequences: list[list[str]] = [[] for _ in range(nodes)]
    for row in events_of(sink.events(), "delivered"):
        sequences[int(row["node"])].append(f"{row['message_source']}:{row['message_number']}")
    return prepared.world, sequences


def cut(start: str, end: str, *groups: list[int]) -> dict[str, Any]:
    return {"partitions": [{"start": start, "end": end, "groups": [[str(n) for n in g] for g in groups]}]}


def numbers(world: Any) -> set[int]:
    return {hosted.node.state.group for hosted in world.nodes}


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_founders_that_do_not_hear_each_other_deliver_nothing_alone(seed: int, durable: bool) -> None:
    """Three founders are apart for 20 s. Each broadcast fails until they have founded one group."""
    script = [(node, at) for at in (10, 30) for node in range(3)]
    world, sequences = run(3, script, seed, world=cut("0s", "20s", [0], [1], [2]), options={"durable": durable})
    assert world.refused == 3
    assert sorted(sequences[0]) == ["0:1", "1:1", "2:1"]
    assert sequences == [sequences[0]] * 3
    assert len(numbers(world)) == 1


@pytest.mark.parametrize("seed", range(16))
def test_the_first_message_of_five_founders_reaches_all(seed: int) -> None:
    _, sequences = run(5, [(seed % 5, 4), ((seed + 1) % 5, 4.2)], seed, 30)
    assert len(sequences[0]) == 2
    assert sequences == [sequences[0]] * 5


@pytest.mark.parametrize("durable", [False, True])
def test_five_founders_that_are_up_can_broadcast_after_four_seconds(durable: bool) -> None:
    for seed in range(20):
        world, sequences = run(
            5, [(node, 4) for node in range(5)], seed, 20, options={"durable": durable, "quiet": "5s"}
        )
        assert world.refused == 0, seed
        assert sequences == [sequences[0]] * 5, seed


def test_with_stores_an_absent_founder_blocks_nobody_and_delivers_everything_later() -> None:
    world, sequences = run(
        3,
        [(0, 12), (1, 13), (2, 45)],
        world={"presence": [{"node": "2", "enter": "30s"}], "members": ["0", "1", "2"]},
        options={"durable": True},
        until=80,
    )
    assert sequences == [["0:1", "1:1", "2:1"]] * 3
    assert len(numbers(world)) == 1


def test_without_stores_an_absent_founder_prevents_the_founding() -> None:
    world, sequences = run(
        3, [(0, 12)], world={"presence": [{"node": "2", "enter": "30s"}], "members": ["0", "1", "2"]}, until=29
    )
    assert (sequences, world.refused) == ([[], [], []], 1)


@pytest.mark.parametrize("seed", range(4))
def test_a_minority_founds_nothing_and_follows_the_majority(seed: int) -> None:
    world, sequences = run(
        5,
        [(0, 15), (3, 16), (4, 17), (0, 40), (4, 41)],
        seed,
        world=cut("0s", "25s", [0, 1], [2, 3, 4]),
        options={"durable": True},
        until=80,
    )
    assert world.refused == 1
    assert sequences[0][:2] == ["3:1", "4:1"]
    assert sequences == [sequences[0]] * 5
    assert len(sequences[0]) == 4


@pytest.mark.parametrize("after", range(24))
def test_a_founder_with_a_store_may_crash_between_any_two_effects(after: int) -> None:
    crashes = [
        {"node": "0", "at": "600ms", "after": after, "restart": "6s"},
        {"node": "1", "at": "900ms", "after": after // 2, "restart": "4s"},
    ]
    world, sequences = run(
        3,
        [(0, 30), (1, 31), (2, 32)],
        after,
        faults={"crashes": crashes},
        options={"durable": True},
        until=70,
    )
    assert sequences == [["0:1", "1:1", "2:1"]] * 3
    assert len(numbers(world)) == 1


def test_a_founder_that_lost_its_store_does_not_vote_again() -> None:
    """Node 1 votes, loses its store, and alone with node 2 it may not found a second group."""
    world, sequences = run(
        3,
        [(0, 20), (2, 21), (1, 80)],
        world=cut("3s", "60s", [0], [1, 2]),
        faults={"crashes": [{"node": "1", "at": "4s", "restart": "5s", "keep": False}]},
        options={"durable": True, "suspect_after": "3s", "vote_every": "500ms"},
        until=120,
    )
    assert len(numbers(world)) == 1
    assert sequences[0] == sequences[2]
    assert "1:1" in sequences[1]


def test_a_group_founded_alone_gives_way_to_one_that_was_agreed_on() -> None:
    """Node 0 founds alone; nodes 1 and 2 agree on a group; node 0 moves there when it hears them."""
    sink = TableSink()
    described = Run(
        world={"kind": "flood", "nodes": 3, "field": [60, 60], **cut("0s", "20s", [0], [1, 2])},
        workload={"script": [{"src": "0", "at": "10s"}, {"src": "1", "at": "11s"}, {"src": "0", "at": "40s"}]},
        protocol="drift",
        options={**OPTIONS, "durable": True},
        end="70s",
        gauges="none",
    )

    def build(role: str, context: Context[DriftOptions]) -> DriftNode:
        mode: Any = "alone" if context.node == 0 else "agreed"
        return DriftNode(role, replace(context, options=replace(context.options, founding=mode)))

    prepared = prepare(described, sink, replace(DRIFT, build=build))
    prepared.world.run(prepared.end)
    prepared.recorder.flush()
    rows = [(r["node"], r["message_source"]) for r in events_of(sink.events(), "delivered")]
    assert len({hosted.node.state.group for hosted in prepared.world.nodes}) == 1
    assert [source for node, source in rows if node == "2"] == ["1", "0"]
    assert [source for node, source in rows if node == "0"] == ["0", "0"]


def founder(me: int, members: tuple[int, ...], **options: Any) -> DriftNode:
    chosen = DriftOptions(founding="agreed", durable=True, **options)
    return DriftNode("node", Context(me, members, chosen, Random(1)))


def test_a_store_that_has_voted_belongs_to_its_list() -> None:
    node = founder(1, (0, 1, 2))
    node.start(0, {})
    ballots = node.groups.election.ballots
    effects: list[Any] = []
    ballots.receive(FoundingPrepare(ballots.number, (1, 0, 1)), 0, effects)
    store = {effect.key: effect.value for effect in effects if isinstance(effect, Persist)}
    founder(1, (0, 1, 2)).start(0, round_trip(store))
    with pytest.raises(BadInput, match="voted on a group with other founders"):
        founder(1, (0, 1, 2, 3)).start(0, round_trip(store))


def test_a_founder_that_says_it_is_returning_never_votes() -> None:
    node = founder(1, (0, 1, 2), returning=True)
    effects = [*node.start(0, {}), *node.timer(("join", "knock"), SECOND)]
    assert not [e for e in effects if isinstance(e, Send) and isinstance(e.packet, ControlPacket)]
    with pytest.raises(NotYet, match="no member of it was heard"):
        node.broadcast(b"", SECOND)


def test_two_lists_with_disjoint_majorities_keep_their_groups_and_say_so() -> None:
    def build(role: str, context: Context[DriftOptions]) -> DriftNode:
        members = (0, 1, 2) if context.node < 3 else (3, 4, 5)
        return DriftNode(role, replace(context, members=members))

    sink = TableSink()
    described = Run(
        world={"kind": "flood", "nodes": 6, "field": [60, 60]},
        workload={"script": [{"src": str(node), "at": "20s"} for node in range(6)]},
        protocol="drift",
        options={**OPTIONS, "durable": True},
        end="60s",
        gauges="none",
    )
    prepared = prepare(described, sink, replace(DRIFT, build=build))
    prepared.world.run(prepared.end)
    assert len(numbers(prepared.world)) == 2
    assert all(hosted.node.sizes()["foreign_groups"] == 1 for hosted in prepared.world.nodes)
