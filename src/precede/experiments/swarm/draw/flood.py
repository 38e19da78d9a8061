"""Swarm worlds on the flood radio: loss, collisions, movement, partitions, crashes, joins, leaves (drift2006).

A view change needs a majority of the current view. In some worlds a source may be gone for good: it crashes,
loses its saved state, or leaves. There crashes, stalls, partitions and walking away hit only a minority of the
sources, besides nodes that are no sources, and the spared nodes stay connected. In the other worlds every node
is back in the end, so any node may have any fault before.

Required deliveries: a node that is up from the beginning delivers every message, except those of a source that
is gone for good that no node delivered. A node that comes later delivers everything behind its first message,
in the order of the nodes that have everything. Each log is checked for causal order as well as for total order.
"""

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final

import pyarrow as pa

from precede.core.identity import NodeId
from precede.core.instants import SECOND, Instant
from precede.experiments.run import Prepared, Run
from precede.experiments.swarm.events import Message, Process, events_of, message_of
from precede.experiments.swarm.plan import (
    WRONG_CLOCKS,
    Drawer,
    Plan,
    draw_script,
    draw_stall,
    partition_of,
    seconds_text,
)
from precede.experiments.swarm.swarm import up_at_end
from precede.sim.networks.motion import connected, scattered_connected
from precede.sim.randomness import Generators
from precede.witness.many_logs import verify_one_of_many

_SETTLE: Final = 150 * SECOND
_REACH: Final = 88.0
_ALL_IN_REACH: Final = 60


def draw(protocol: str, seed: int, random: Random) -> Plan:
    """Draw a world of a few radios in a small field, with faults."""
    nodes = random.randint(2, 9)
    heal_at = random.choice((10, 20, 40)) * SECOND
    crashing = protocol == "drift" and random.random() < 0.6
    founders = nodes - (random.choice((0, 0, 1, 2)) if nodes > 3 else 0)
    sources = sorted(random.sample(range(founders), random.randint(1, founders)))
    faults = _Faults(random, nodes, founders, heal_at, crashing, sources)
    world = _draw_air(random, nodes, crowded=not (crashing and faults.for_good))
    motion = _draw_motion(random)
    if not faults.for_good:
        world |= motion
    else:
        if not faults.spared_are_connected(seed, world["field"][0]):
            world["field"] = [_ALL_IN_REACH, _ALL_IN_REACH]
        world |= faults.restrict_motion(motion)
    world |= faults.draw_partitions()
    world |= {"presence": faults.draw_presence(), "linger": "10s"}
    crashes = faults.draw_crashes() if crashing else []
    run = Run(
        world=world,
        workload=draw_workload(random, nodes, heal_at),
        faults={"crashes": crashes, "stalls": faults.draw_stalls(), **faults.draw_clocks()},
        protocol=protocol,
        options=_draw_options(protocol, random, crashing, sources),
        seed=seed,
        gauges="none",
    )
    return Plan(run, heal_at, _SETTLE, tuple(faults.dead))


def _draw_air(random: Random, nodes: int, crowded: bool) -> dict[str, Any]:
    """Draw the radio. With `crowded`, collisions may keep a source from being heard for a long time."""
    side = random.choice((60, 120, 200))
    world: dict[str, Any] = {
        "kind": "flood",
        "nodes": nodes,
        "field": [side, side],
        "reach": _REACH,
        "delay": random.choice(("1ms", "uniform(0.001, 0.02)", "exponential(0.05)")),
        "loss": random.choice((0.0, 0.0, 0.1, 0.3)),
    }
    if random.random() < 0.4:
        world["jitter"] = random.choice(("uniform(0, 0.01)", "exponential(0.1)"))
    if random.random() < 0.4:
        world |= {
            "bandwidth": random.choice((20_000, 125_000) if crowded else (125_000, 1_000_000)),
            "collisions": True,
            "carrier_sense": random.random() < 0.5 or not crowded,
            "access": "uniform(0, 0.02)",
        }
    return world


def _draw_motion(random: Random) -> dict[str, Any]:
    motion: dict[str, Any] = {"connected": random.random() < 0.6}
    if random.random() < 0.4:
        motion["speed"] = random.choice((1, 5, 20))
    return motion


def draw_workload(random: Random, nodes: int, heal_at: Instant) -> dict[str, Any]:
    """Draw who broadcasts when, and how often nodes reply to deliveries."""
    return {
        "script": draw_script(random, nodes, heal_at, random.choice((3, 10, 40))),
        "until": seconds_text(heal_at),
        "size": 20,
        "replies": random.choice((0.0, 0.3, 0.8)) / nodes,
        "reply_after": random.choice(("constant(0)", "exponential(0.05)")),
    }


def _draw_options(protocol: str, random: Random, crashing: bool, sources: list[NodeId]) -> dict[str, Any]:
    options: dict[str, Any] = {
        "durable": crashing,
        "sources": " ".join(str(source) for source in sources),
        "relay_wait": random.choice(("0s", "10ms", "100ms")),
        "quiet": random.choice(("500ms", "2s")),
        "beacon": random.choice(("200ms", "1s")),
        "beacon_longest": "8s",
        "bootstrap_after": "0s",
    }
    if protocol == "drift":
        options["two_entries"] = random.random() < 0.3
        if random.random() < 0.3:
            options |= {
                "limit": random.randint(1, 3),
                "policy": random.choice(("least_sent", "round_robin", "random", "freshest")),
            }
        if crashing:
            options |= {
                "suspect_after": random.choice(("1s", "3s")),
                "vote_every": random.choice(("300ms", "1s")),
            }
    return options


class _Faults:
    """Draws the faults of a world, which hit only its victims.

    `for_good`: a source may be gone for good. Then the victims are nodes without which a majority of the
    sources remains; otherwise all nodes are victims. `dead`: nodes that crash and never restart.
    """

    def __init__(
        self,
        random: Random,
        nodes: int,
        founders: int,
        heal_at: Instant,
        crashing: bool,
        sources: list[NodeId],
    ) -> None:
        self.dead: list[NodeId] = []
        self.for_good = random.random() < 0.5
        self._random = random
        self._nodes = nodes
        self._founders = founders
        self._heal_at = heal_at
        self._crashing = crashing
        spared = self._draw_spared(sources, range(founders, nodes)) if self.for_good else []
        self._victims = [node for node in range(nodes) if node not in spared]

    def _draw_spared(self, sources: Sequence[NodeId], latecomers: Sequence[NodeId]) -> list[NodeId]:
        """Draw the nodes that get no faults: a majority of the sources, even if all latecomers become ones."""
        spared = self._random.sample(sources, len(sources) // 2 + 1)
        surplus = 2 * len(spared) - len(sources) - 1
        return [*spared, *latecomers[min(surplus, len(latecomers)) :]]

    def spared_are_connected(self, seed: int, side: float) -> bool:
        """Tell whether the founders without faults form a connected network."""
        places = scattered_connected(self._nodes, side, side, _REACH, Generators(seed))
        spared = [places[node] for node in range(self._founders) if node not in self._victims]
        return connected(spared, _REACH)

    def restrict_motion(self, motion: dict[str, Any]) -> dict[str, Any]:
        """Return the drawn motion, limited to victims (nodes that may have faults); empty if none may move."""
        if "speed" not in motion or not self._victims or not self._may_separate():
            return {}
        return {"speed": motion["speed"], "mobile": [str(node) for node in self._victims]}

    def draw_partitions(self) -> dict[str, Any]:
        random, partitions = self._random, []
        for _ in range(random.choice((0, 0, 1, 2)) if self._victims and self._may_separate() else 0):
            start = random.randrange(self._heal_at)
            inside = random.sample(self._victims, random.randint(1, min(len(self._victims), self._nodes - 1)))
            partitions.append(partition_of(start, start + random.randrange(self._heal_at), inside))
        return {"partitions": partitions} if partitions else {}

    def _may_separate(self) -> bool:
        """Tell whether nodes may be cut off from others.

        Not if a source may leave without view changes: a node that misses the leave would wait for it for ever.
        """
        return self._crashing or not self.for_good

    def draw_presence(self) -> list[dict[str, Any]]:
        """Draw when latecomers enter and, if `for_good`, which victims leave and announce it."""
        random = self._random
        stays: list[dict[str, Any]] = [
            {"node": str(node), "enter": seconds_text(random.randrange(1, self._heal_at))}
            for node in range(self._founders, self._nodes)
        ]
        if self.for_good:
            for node in self._victims:
                if node < self._founders and random.random() < 0.3:
                    stays.append({"node": str(node), "leave": seconds_text(random.randrange(1, self._heal_at))})
        return stays

    def draw_crashes(self) -> list[dict[str, Any]]:
        """Draw crashes of victims, with and without a restart, with and without their saved state."""
        random, crashes = self._random, []
        for _ in range(random.choice((0, 1, 2, 4)) if self._victims else 0):
            node = random.choice(self._victims)
            at = random.randrange(self._heal_at)
            crash: dict[str, Any] = {"node": str(node), "at": seconds_text(at)}
            if random.random() < 0.5:
                crash["after"] = random.randint(0, 8)
            chance = random.random() if self.for_good else 0.0
            if chance < 0.7:
                crash["restart"] = seconds_text(at + random.randrange(1, self._heal_at))
                crash["keep"] = chance < 0.4
            elif node not in self.dead:
                self.dead.append(node)
            crashes.append(crash)
        return crashes

    def draw_stalls(self) -> list[dict[str, Any]]:
        random = self._random
        return [
            draw_stall(random, random.choice(self._victims), self._heal_at)
            for _ in range(random.choice((0, 0, 1)) if self._victims and self._may_separate() else 0)
        ]

    def draw_clocks(self) -> Mapping[str, Any]:
        return WRONG_CLOCKS if self._random.random() < 0.3 else {}


def missing(plan: Plan, prepared: Prepared, log: pa.Table) -> list[str]:
    sequences: dict[Process, list[Message]] = {}
    started_at: dict[Process, int] = {}
    broadcasts: dict[Message, None] = {}
    for row in events_of(log, "started", "broadcast", "delivered"):
        process = (row["node"], row["incarnation"])
        if row["kind"] == "started":
            started_at.setdefault(process, row["at_us"])
            sequences.setdefault(process, [])
            continue
        message = message_of(row)
        if row["kind"] == "broadcast":
            broadcasts[message] = None
        else:
            sequences[process].append(message)
    up = up_at_end(prepared)
    delivered = {message for sequence in sequences.values() for message in sequence}
    due = [message for message in broadcasts if message in delivered or (message[0], message[1]) in up]
    founders = [process for process in up if started_at[process] == 0 and process[1] == 0]
    lacking = []
    for process in founders:
        own = set(sequences[process])
        lacking += [f"{process[0]} never delivered {m[0]}:{m[2]}" for m in due if m not in own]
    return lacking + _missed_by_latecomers(sequences, founders, up)


def _missed_by_latecomers(
    sequences: dict[Process, list[Message]], founders: list[Process], up: Iterable[Process]
) -> list[str]:
    """Describe messages that a latecomer missed after its first; the founder with most deliveries is right."""
    lacking = []
    reference = max((sequences[process] for process in founders), key=len, default=[])
    places = {message: place for place, message in enumerate(reference)}
    for process in up:
        sequence = sequences[process]
        if process in founders or not sequence or sequence[0] not in places:
            continue
        own = set(sequence)
        tail = reference[places[sequence[0]] :]
        lacking += [f"latecomer {process[0]}'{process[1]} missed {m[0]}:{m[2]}" for m in tail if m not in own]
    return lacking


def checks(plan: Plan, prepared: Prepared, log: pa.Table) -> dict[str, list[str]]:
    """Check that the log keeps causal order too, and that all nodes end in the same view."""
    verdict = verify_one_of_many(log, "causal")
    violations = []
    if verdict.verdict == "violated":
        violations.append(verdict.first.story if verdict.first is not None else "causal order violated")
    views = sorted({hosted.node.sizes().get("view", 0) for hosted in prepared.world.nodes if hosted.up})
    leaks = [f"views differ at the end: {views}"] if len(views) > 1 else []
    return {"violations": violations, "leaks": leaks}


DRAWER: Final = Drawer(draw, missing, checks)
