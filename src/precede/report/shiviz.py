"""A run's log for ShiViz (https://bestchai.bitbucket.io/shiviz): each event with its vector clock.

ShiViz's default expression reads it: `(?<event>.*)\\n(?<host>\\S*) (?<clock>{.*})`. Events are broadcasts and
deliveries; the broadcast of a message happens before its deliveries.
"""

import json
from collections.abc import Iterator

from precede.report.run_data import SHOWN, Log


def shiviz_lines(log: Log) -> Iterator[str]:
    """Yield two lines for each broadcast and delivery, in an order in which causes come first."""
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
