"""Draws swarm worlds for WAS: radio cells with loss, fast movement, crashes, joins, leaves and dead spots.

There are four regimes. `reordering`: the radio reorders frames and loses up to a fifth. `hurried`: it loses two
fifths, and hosts stay a tenth of a second in a cell. `forgetful`: the down time-out is shorter than many
absences. `contention`: a shared channel with collisions, and fast walkers.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

import pyarrow as pa

from precede.core.identity import NodeId
from precede.core.instants import MILLISECOND, SECOND, Instant
from precede.experiments.run import Prepared, Run
from precede.experiments.swarm.events import broadcasts_and_deliveries
from precede.experiments.swarm.plan import Drawer, Plan, seconds_text
from precede.protocols.was2021.host import WasHost
from precede.protocols.was2021.station import WasStation

REGIMES: Final = ("reordering", "hurried", "forgetful", "contention")
_SETTLE: Final = 30 * SECOND


def draw(protocol: str, seed: int, random: Random) -> Plan:
    """Draw a world of a few stations and hosts that runs for a few seconds, with faults of all kinds."""
    regime = REGIMES[seed % len(REGIMES)]
    stations, hosts = random.randint(2, 6), random.randint(2, 7)
    heal_at = random.choice((2, 4)) * SECOND
    patient = regime != "forgetful" and random.random() < 0.5
    world = draw_world(random, regime, stations, hosts, heal_at)
    crashes = _draw_crashes(random, hosts, heal_at)
    options = _draw_options(random, regime, stations)
    if patient:
        world, crashes, options = _spare_leavers(world, crashes, options)
    run = Run(
        world=world,
        workload=_draw_workload(random, hosts, heal_at),
        faults={"crashes": crashes},
        protocol=protocol,
        options=options,
        seed=seed,
        gauges="none",
        log="messages",
    )
    dead = (stations + random.randrange(hosts),) if hosts > 3 and random.random() < 0.2 else ()
    return Plan(run, heal_at, _SETTLE, () if patient else dead)


def _spare_leavers(
    world: dict[str, Any], crashes: list[dict[str, Any]], options: dict[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """Change a world so that hosts that leave do not crash, and have 20 s until the leave must be confirmed.

    Down decisions are switched off, so that they cannot hide an error of the protocol.
    """
    leavers = {stay["node"] for stay in world["stays"] if "leave" in stay}
    kept = [crash for crash in crashes if crash["node"] not in leavers]
    return world | {"linger": "20s"}, kept, options | {"down_after": "10min", "collision_limit": 1.0}


def draw_world(random: Random, regime: str, stations: int, hosts: int, heal_at: Instant) -> dict[str, Any]:
    """Draw the world's table: stations on a tree, delays, movement, radio."""
    world: dict[str, Any] = {
        "kind": "cellular",
        "stations": stations,
        "hosts": hosts,
        "links": [[f"s{random.randrange(number)}", f"s{number}"] for number in range(1, stations)],
        "wired_delay": random.choice(("constant(0.01)", "uniform(0.004, 0.014)", "exponential(0.02)")),
        "stays": _draw_stays(random, hosts, heal_at),
        "linger": "3s",
    }
    if regime == "contention":
        return world | {
            "movement": "walk",
            "speed": random.choice((5.0, 30.0, 60.0)),
            "turn": "1s",
            "step": "100ms",
            "range": random.choice((20.0, 50.0)),
            "duration": seconds_text(heal_at),
            "bitrate": random.choice((1e6, 20e6)),
            "retries": random.choice((0, 0, 6)),
        }
    dwell = {"reordering": 300, "hurried": 100, "forgetful": 300}[regime] * MILLISECOND
    return world | {
        "movement": "moves",
        "moves": _draw_moves(random, stations, hosts, dwell, heal_at),
        "radio": "lossy",
        "loss": 0.4 if regime == "hurried" else random.choice((0.05, 0.2)),
        "radio_delay": "constant(0.001)" if regime == "hurried" else "uniform(0.0005, 0.02)",
        "fifo": regime == "hurried",
    }


def _draw_stays(random: Random, hosts: int, heal_at: Instant) -> list[dict[str, Any]]:
    stays = []
    for number in range(1, hosts):
        stay: dict[str, Any] = {"node": f"h{number}"}
        if random.random() < 0.3:
            stay["enter"] = seconds_text(random.randrange(heal_at // 2))
        if random.random() < 0.2:
            stay["leave"] = seconds_text(random.randrange(heal_at // 2, heal_at))
        if len(stay) > 1:
            stays.append(stay)
    return stays


def _draw_moves(
    random: Random, stations: int, hosts: int, dwell: int, heal_at: Instant
) -> list[dict[str, Any]]:
    """Draw each host's cells and when it enters them; sometimes it is out of coverage."""
    moves = []
    for number in range(hosts):
        at, cell = 0, -1
        while at < heal_at:
            others = [other for other in range(stations) if other != cell]
            cell = -1 if cell >= 0 and random.random() < 0.15 else random.choice(others)
            moves.append(
                {"host": f"h{number}", "at": seconds_text(at), "cell": f"s{cell}" if cell >= 0 else ""}
            )
            at += 1 + round(random.expovariate(1 / dwell))
    return moves


def _draw_crashes(random: Random, hosts: int, heal_at: Instant) -> list[dict[str, Any]]:
    """Draw crashes at an instant or between two effects; most hosts restart soon, few without saved state."""
    crashes = []
    for _ in range(random.choice((0, 1, 3, 8))):
        at = random.randrange(heal_at)
        crash: dict[str, Any] = {"node": f"h{random.randrange(hosts)}", "at": seconds_text(at)}
        if random.random() < 0.6:
            crash["after"] = random.randint(0, 8)
        if random.random() < 0.9:
            crash["restart"] = seconds_text(at + 1 + round(random.expovariate(1 / 200_000)))
            crash["keep"] = random.random() < 0.9
        crashes.append(crash)
    return crashes


def _draw_workload(random: Random, hosts: int, heal_at: Instant) -> dict[str, Any]:
    return {
        "poisson": f"{random.choice((30, 80, 300))}ms",
        "until": seconds_text(heal_at),
        "size": 20,
        "replies": random.choice((0.0, 0.3)) / hosts,
    }


def _draw_options(random: Random, regime: str, stations: int) -> dict[str, Any]:
    quick = random.random() < 0.5
    return {
        "stations": stations,
        "durable": True,
        "down_after": "500ms" if regime == "forgetful" else "8s",
        "ack_interval": "60ms" if quick else "200ms",
        "retransmit": "120ms" if quick else "400ms",
        "uplink_retransmit": random.choice(("40ms", "150ms")),
        "connect_retry": random.choice(("10ms", "25ms", "60ms")),
        "station_ack_interval": random.choice(("10ms", "50ms")),
        "private_window": random.choice((2, 128)),
        "uplink_window": random.choice((1, 32)),
        "collision_limit": random.choice((0.5, 1.0)),
    }


def missing(plan: Plan, prepared: Prepared, log: pa.Table) -> list[str]:
    """List the messages that a working host should have delivered and has not.

    Due is every message broadcast since the host was last admitted without a record from another station. A
    message of a host that left, crashed or lost its state is due only if some host delivered it.
    """
    world, names = prepared.world, prepared.built.names
    admitted = _admissions(prepared)
    up = {
        (names[hosted.id], hosted.incarnation): admitted.get(hosted.id, plan.end)
        for hosted in world.nodes
        if hosted.up and not hosted.gone and isinstance(hosted.node, WasHost)
    }
    broadcasts, deliveries = broadcasts_and_deliveries(log)
    delivered = {process: dict.fromkeys(messages) for process, messages in deliveries.items()}
    delivered_anywhere = {message: None for messages in delivered.values() for message in messages}
    return [
        f"{node} never delivered {message[0]}:{message[2]}"
        for (node, incarnation), since in up.items()
        for message, at in broadcasts.items()
        if at > since
        and (message in delivered_anywhere or message[:2] in up)
        and message not in delivered.get((node, incarnation), {})
    ]


def _admissions(prepared: Prepared) -> dict[NodeId, Instant]:
    """Return when each host was last admitted, in world time: a station notes it by its own clock."""
    admissions: dict[NodeId, Instant] = {}
    for hosted in prepared.world.nodes:
        if isinstance(hosted.node, WasStation):
            for host, reading in hosted.node.registrations.admitted.items():
                admissions[host] = max(hosted.world_time(reading), admissions.get(host, 0))
    return admissions


def checks(plan: Plan, prepared: Prepared, log: pa.Table) -> Mapping[str, Sequence[str]]:
    """Check that at the end every working host is connected and registered only at the station of its cell."""
    world, names = prepared.world, prepared.built.names
    network: Any = prepared.built.network
    unconnected, leftovers = [], []
    home: dict[NodeId, NodeId] = {}
    for hosted in world.nodes:
        if isinstance(hosted.node, WasHost) and hosted.up and not hosted.gone:
            home[hosted.id] = network.cell[hosted.id]
            if not hosted.node.connected:
                unconnected.append(f"{names[hosted.id]} is not connected")
    for hosted in world.nodes:
        if isinstance(hosted.node, WasStation):
            leftovers += [
                f"{names[hosted.id]} has a record of {names[host]}"
                for host in hosted.node.records
                if home.get(host) != hosted.id
            ]
    return {"undelivered": unconnected, "leaks": leftovers}


DRAWER: Final = Drawer(draw, missing, checks)
