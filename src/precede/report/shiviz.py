"""A run's log as ShiViz (https://bestchai.bitbucket.io/shiviz) reads it: each event with its vector clock.

Its default expression reads it: `(?<event>.*)\\n(?<host>\\S*) (?<clock>{.*})`. Broadcasts and deliveries are
the events: a delivery has its message's broadcast in its past.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from precede.report.run_data import SHOWN, Log


def shiviz_lines(log: Log) -> Iterator[str]:
    """Two lines for each broadcast and delivery, causes first."""
    hosts = ["_".join(name.split()) for name in log.nodes]
    clocks: list[dict[int, int]] = [{} for _ in hosts]
    stamps: dict[int, dict[int, int]] = {}
    broadcast, delivered = SHOWN.index("broadcast"), SHOWN.index("delivered")
    for node, kind, message in zip(log.node.tolist(), log.kind.tolist(), log.message.tolist(), strict=True):
        if kind not in (broadcast, delivered):
            continue
        clock = clocks[node]
        if kind == delivered:
            for other, count in stamps.get(message, {}).items():
                clock[other] = max(count, clock.get(other, 0))
        clock[node] = clock.get(node, 0) + 1
        if kind == broadcast:
            stamps[message] = dict(clock)
        written = ",".join(f"{json.dumps(hosts[other])}:{count}" for other, count in sorted(clock.items()))
        yield f"{SHOWN[kind]} {log.name(message)}"
        yield f"{hosts[node]} {{{written}}}"
