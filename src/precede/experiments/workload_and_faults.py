"""The `[workload]` and `[faults]` tables of a scenario: what applications do and what goes wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.instants import seconds
from precede.experiments.tables import Table, csv_rows
from precede.sim.clocks import Clock
from precede.sim.faults import Crash, Fault, Stall
from precede.sim.randomness import Distribution, Streams
from precede.sim.workload import Birth, Destinations, Workload

WORKLOAD_KEYS: Final[dict[str, str]] = {
    "messages": "a CSV file: id,src,time (seconds), optional dst (names joined by spaces)",
    "script": 'list of { src, at, to = ["3", "4"], lifetime = "20s" }',
    "every": "time between two messages of a node: a duration or a distribution in seconds",
    "poisson": "mean time between two messages of a node, exponentially distributed",
    "first": "time from a node's entry to its first message; default as `every`",
    "count": "how many messages each node sends; default no limit",
    "until": "no message is born after this instant",
    "size": "payload bytes; default 100",
    "to": "how many destinations, drawn at random: a number or [least, most]; default 0: everybody",
    "groups": "nodes k, k + groups, k + 2 groups ... are a group; default 1",
    "selectivity": "probability that all destinations are of the sender's group; default 0",
    "rates": "relative sending rates, dealt out to the nodes in turn, as [1, 3]; the mean stays; default [1]",
    "lifetime": "lifetime of each message: a duration or a distribution in seconds",
    "replies": "probability that a delivery, of an answer too, is answered; times receivers below 1; default 0",
    "reply_after": "time to think before an answer; default 0s",
    "sources": "how many nodes send (the first ones), or a list of names; default all",
}
FAULT_KEYS: Final[dict[str, str]] = {
    "crashes": 'list of { node, at, after = 3, restart = "20s", keep = true, again = 5 }'
    " (steps of effects after `at`, after the restart); default keep: as option durable",
    "stalls": "list of { node, at, duration }",
    "skew": 'how far a clock is off, in seconds: "uniform(0, 30)" (drawn per node, either direction)',
    "drift_ppm": "how fast or slow a clock may run, drawn per node within plus or minus this",
}
_SCRIPTED: Final = ("src", "at", "to", "lifetime")
_CRASH: Final = ("node", "at", "after", "restart", "keep", "again")
_MOST_BYTES: Final = 1 << 28


def read_workload(table: Table, names: Sequence[str], sources: Sequence[NodeId]) -> Workload:
    """What the applications do."""
    table.check(WORKLOAD_KEYS)
    if table.has("every") and table.has("poisson"):
        raise table.wrong("poisson", "give `every` or `poisson`, not both")
    gap = table.distribution("every") if table.has("every") else None
    if table.has("poisson"):
        gap = Distribution(f"exponential({table.duration('poisson') / 1_000_000})")
    if gap is not None and gap.is_zero() and not table.has("count"):
        raise table.wrong(
            "every" if table.has("every") else "poisson", "no time between messages, and no count"
        )
    script = _read_messages(table.path("messages"), names) if table.has("messages") else []
    script += [_scripted(table, item, names) for item in table.entries("script", _SCRIPTED)]
    return Workload(
        gap=gap,
        first=table.distribution("first") if table.has("first") else None,
        count=table.whole("count") if table.has("count") else None,
        until=table.maybe_duration("until"),
        size=table.whole("size", 100, most=_MOST_BYTES),
        script=script,
        replies=table.number("replies", 0.0, most=1.0),
        reply_after=table.distribution("reply_after") if table.has("reply_after") else None,
        destinations=_read_destinations(table, len(names)),
        lifetime=table.distribution("lifetime") if table.has("lifetime") else None,
        sources=_read_sources(table, names, sources),
        rates=_read_rates(table),
        refuse=partial(table.wrong, "replies"),
    )


def _read_destinations(table: Table, nodes: int) -> Destinations:
    if isinstance(table.data.get("to"), list):
        pair = table.items("to")
        if len(pair) != 2 or not all(type(bound) is int for bound in pair) or not 1 <= pair[0] <= pair[1]:
            raise table.wrong("to", f"[least, most] is wanted, 1 or more, not {pair!r}")
        least, most = pair
    else:
        least = most = table.whole("to", 0)
    groups = table.whole("groups", 1, least=1)
    selectivity = table.number("selectivity", 0.0, most=1.0)
    if selectivity and nodes < 2 * groups:
        raise table.wrong("groups", f"{nodes} nodes in {groups} groups leave a node alone")
    return Destinations(least, most, groups, selectivity)


def _read_rates(table: Table) -> list[float]:
    rates = table.items("rates") if table.has("rates") else [1.0]
    if not rates or not all(type(rate) in (int, float) and rate > 0 for rate in rates):
        raise table.wrong("rates", f"a list of positive numbers is wanted, not {rates!r}")
    return [float(rate) for rate in rates]


def _scripted(table: Table, item: Any, names: Sequence[str]) -> Birth:
    node = _node(table, "script", table.field("script", item, "src"), names)
    to = item.get("to")
    if to is not None:
        if not isinstance(to, list):
            raise table.wrong("script", f"{item!r}: to is a list of names")
        to = tuple(sorted(_node(table, "script", name, names) for name in to))
    lifetime = table.instant("script", item, "lifetime") if "lifetime" in item else None
    return Birth(table.instant("script", item, "at"), node, to, lifetime)


def _read_sources(table: Table, names: Sequence[str], sources: Sequence[NodeId]) -> Sequence[NodeId]:
    value = table.data.get("sources")
    if value is None:
        return sources
    if isinstance(value, list):
        return [_node(table, "sources", name, names) for name in value]
    return sources[: table.whole("sources")]


def _read_messages(path: Path, names: Sequence[str]) -> list[Birth]:
    """`id,src,time` in seconds, and `dst` if there is one; the payload is the id."""
    number = {name: node for node, name in enumerate(names)}
    return [_birth(row, number, line) for line, row in csv_rows(path, ("id", "src", "time"))]


def _birth(row: Mapping[str, Any], number: Mapping[str, NodeId], place: str) -> Birth:
    if row["src"] not in number:
        raise BadInput(f"{place}: src: no node {row['src']!r}")
    try:
        at = seconds(float(row["time"]))
    except (TypeError, ValueError):
        raise BadInput(f"{place}: time: not a number: {row['time']!r}") from None
    if at < 0:
        raise BadInput(f"{place}: time: {row['time']} is before the beginning")
    to = None
    if row.get("dst"):
        wanted = row["dst"].split()
        unknown = [name for name in wanted if name not in number]
        if unknown:
            raise BadInput(f"{place}: dst: no node {unknown[0]!r}")
        to = tuple(sorted(number[name] for name in wanted))
    return Birth(at, number[row["src"]], to, None, str(row["id"]).encode())


def read_faults(table: Table, names: Sequence[str], keeps: bool | None = None) -> list[Fault]:
    """What goes wrong. `keeps`: do nodes persist what they must know after a crash? (None: nobody says.)"""
    table.check(FAULT_KEYS)
    faults: list[Fault] = []
    for item in table.entries("crashes", _CRASH):
        faults.append(_crash(table, item, names, keeps))
    for item in table.entries("stalls", ("node", "at", "duration")):
        node = _node(table, "stalls", table.field("stalls", item, "node"), names)
        at = table.instant("stalls", item, "at")
        faults.append(Stall(node, at, table.instant("stalls", item, "duration")))
    return faults


def _crash(table: Table, item: Any, names: Sequence[str], keeps: bool | None) -> Crash:
    node = _node(table, "crashes", table.field("crashes", item, "node"), names)
    at = table.instant("crashes", item, "at")
    keep = item.get("keep", bool(keeps))
    restart = table.instant("crashes", item, "restart") if "restart" in item else None
    for key in ("after", "again"):
        if key in item and (type(item[key]) is not int or item[key] < 0):
            raise table.wrong("crashes", f"{item!r}: {key} is a number of steps, 0 or more")
    if "again" in item and restart is None:
        raise table.wrong("crashes", f"{item!r}: crashes again without a restart")
    if type(keep) is not bool:
        raise table.wrong("crashes", f"{item!r}: keep is true or false")
    if keep and keeps is False and "restart" in item:
        raise table.wrong("crashes", f"{item!r}: nothing is kept while the protocol's option durable is off")
    if restart is not None and restart < at:
        raise table.wrong("crashes", f"{item!r}: restarts before it crashes")
    return Crash(node=node, at=at, after=item.get("after"), restart=restart, keep=keep, again=item.get("again"))


def _node(table: Table, key: str, name: Any, names: Sequence[str]) -> NodeId:
    if str(name) not in names:
        raise table.wrong(key, f"no node {name!r}")
    return list(names).index(str(name))


def read_clocks(table: Table, nodes: int, seed: int) -> dict[NodeId, Clock]:
    """A clock for each node, when clocks are off at all."""
    if not table.has("skew") and not table.has("drift_ppm"):
        return {}
    skew = table.distribution("skew", "constant(0)")
    drift = table.whole("drift_ppm", 0, most=999_999)
    clocks = {}
    for node in range(nodes):
        random = Streams(seed).python("clock", node)
        draw = skew.drawing(Streams(seed), "skew", node)
        offset = draw() if random.random() < 0.5 else -draw()
        clocks[node] = Clock(offset, random.randint(-drift, drift))
    return clocks
