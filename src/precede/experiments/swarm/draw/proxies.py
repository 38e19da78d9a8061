"""Draws swarm worlds for CK and prs_mobile: radio cells with loss, fast movement and late joins.

The worlds are those of three regimes of `cellular`, without crashes and leaves, which neither paper has.
prs_mobile sends to sets of hosts, CK to everybody.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

import pyarrow as pa

from precede.core.instants import SECOND, Instant, parse_duration
from precede.experiments.run import Prepared, Run
from precede.experiments.swarm.draw.cellular import draw_world
from precede.experiments.swarm.events import events_of
from precede.experiments.swarm.plan import Drawer, Plan, seconds_text
from precede.protocols.cells.proxy_host import ProxyHost
from precede.protocols.cells.proxy_station import ProxyStation

REGIMES: Final = ("reordering", "hurried", "contention")
_SETTLE: Final = 30 * SECOND
_JOIN_KNOWN_AFTER: Final = SECOND
"""The time after a host joined in which every station gets to know of it."""


def draw(protocol: str, seed: int, random: Random) -> Plan:
    stations, hosts = random.randint(2, 6), random.randint(2, 7)
    heal_at = random.choice((2, 4)) * SECOND
    world = draw_world(random, REGIMES[seed % len(REGIMES)], stations, hosts, heal_at)
    world["stays"] = [
        {"node": stay["node"], "enter": stay["enter"]} for stay in world["stays"] if "enter" in stay
    ]
    options: dict[str, Any] = {
        "frames": random.choice(("cell", "host")),
        "retransmit": random.choice(("10ms", "25ms", "80ms")),
        "batch": random.choice(("0ms", "20ms", "100ms")),
        "uplink_retransmit": random.choice(("40ms", "150ms")),
        "connect_retry": random.choice(("10ms", "25ms", "60ms")),
    }
    workload: dict[str, Any] = {"until": seconds_text(heal_at), "size": 20}
    if protocol == "prs_mobile":
        options["stations"] = stations
        workload["script"] = _draw_script(random, hosts, heal_at)
    else:
        workload["poisson"] = f"{random.choice((30, 80, 300))}ms"
    workload["replies"] = random.choice((0.0, 0.3)) / hosts
    run = Run(
        world=world,
        workload=workload,
        protocol=protocol,
        options=options,
        seed=seed,
        gauges="none",
        log="messages",
    )
    return Plan(run, heal_at, _SETTLE)


def _draw_script(random: Random, hosts: int, heal_at: Instant) -> list[dict[str, Any]]:
    """Draw the messages of prs_mobile: most go to a random set of hosts, some to everybody."""
    gap = random.choice((30, 80, 300)) * 1000 / hosts
    births = []
    at = random.expovariate(1 / gap)
    while at < heal_at:
        source = random.randrange(hosts)
        others = [f"h{number}" for number in range(hosts) if number != source]
        birth: dict[str, Any] = {"src": f"h{source}", "at": seconds_text(round(at))}
        if random.random() < 0.9:
            birth["to"] = random.sample(others, random.randint(1, len(others)))
        births.append(birth)
        at += random.expovariate(1 / gap)
    return births


def missing_of_ck(plan: Plan, prepared: Prepared, log: pa.Table) -> list[str]:
    """List the messages broadcast after every station knew of a host that it has not delivered."""
    names = prepared.built.names
    admitted: dict[str, Instant] = {}
    for hosted in prepared.world.nodes:
        if isinstance(hosted.node, ProxyStation):
            admissions = hosted.node.moves.admitted.items()
            admitted |= {names[host]: hosted.world_time(reading) for host, reading in admissions}
    sent: dict[tuple[str, int], Instant] = {}
    delivered: dict[str, dict[tuple[str, int], None]] = {}
    for row in events_of(log, "broadcast", "delivered"):
        message = (row["message_source"], row["message_number"])
        if row["kind"] == "broadcast":
            sent[message] = row["at_us"]
        else:
            delivered.setdefault(row["node"], {})[message] = None
    known = {host: _known_by_all(plan, since) for host, since in admitted.items()}
    return [
        f"{host} never delivered {message[0]}:{message[1]}"
        for host, since in known.items()
        for message, at in sent.items()
        if at > since and message not in delivered.get(host, {})
    ]


def _known_by_all(plan: Plan, since: Instant) -> Instant:
    """Return when every station knows of a host that joined; it waits for cut wires and stalled stations."""
    pauses = [
        (parse_duration(cut["start"]), parse_duration(cut["end"]))
        for cut in plan.run.world.get("wire_cuts", ())
    ]
    for stall in plan.run.faults.get("stalls", ()):
        start = parse_duration(stall["at"])
        pauses.append((start, start + parse_duration(stall["duration"])))
    known = since + _JOIN_KNOWN_AFTER
    for start, end in sorted(pauses):
        if start < known and end > since:
            known = max(known, end + _JOIN_KNOWN_AFTER)
    return known


def checks(plan: Plan, prepared: Prepared, log: pa.Table) -> Mapping[str, Sequence[str]]:
    """Check that at the end every host is connected, and its record is only at the station of its cell."""
    names = prepared.built.names
    network: Any = prepared.built.network
    unconnected, leftovers = [], []
    for hosted in prepared.world.nodes:
        if isinstance(hosted.node, ProxyHost) and not hosted.node.connected:
            unconnected.append(f"{names[hosted.id]} is not connected")
        if isinstance(hosted.node, ProxyStation):
            leftovers += [
                f"{names[hosted.id]} has a record of {names[host]}"
                for host in hosted.node.hosts
                if network.cell[host] != hosted.id
            ]
    return {"undelivered": unconnected, "leaks": leftovers}


CK: Final = Drawer(draw, missing_of_ck, checks)
PRS_MOBILE: Final = Drawer(draw, None, checks)
