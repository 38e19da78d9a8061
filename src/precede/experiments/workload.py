"""The `[workload]` table of a scenario: which messages the applications send, and when."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.instants import SECOND, Duration, Instant, seconds
from precede.core.settings import whole
from precede.experiments.keys import (
    count_or_names,
    distribution,
    duration,
    input_file,
    instant,
    items,
    key,
    names,
    read_table,
)
from precede.experiments.tables import Table, csv_rows
from precede.sim.randomness import Distribution
from precede.sim.workload import Birth, Destinations, Workload

_MOST_BYTES: Final = 1 << 28


def _destination_counts(value: Any) -> int | tuple[int, int]:
    if not isinstance(value, list):
        count = whole(value)
        if count < 0:
            raise ValueError(f"{count} is less than 0")
        return count
    if len(value) != 2 or not all(type(bound) is int for bound in value) or not 1 <= value[0] <= value[1]:
        raise ValueError(f"expected [least, most], 1 or more, got {value!r}")
    return value[0], value[1]


def _rates(value: Any) -> tuple[float, ...]:
    if not isinstance(value, list) or not value or not all(type(r) in (int, float) and r > 0 for r in value):
        raise ValueError(f"expected a list of positive numbers, got {value!r}")
    return tuple(float(rate) for rate in value)


class ScriptItem(Struct, frozen=True, kw_only=True):
    """One element of the key `script`: a message."""

    src: Annotated[str, key("name of its source")]
    at: Annotated[Instant, instant("when it is born")]
    to: Annotated[tuple[str, ...] | None, key("names of its destinations; none: all", read=names)] = None
    lifetime: Annotated[Duration | None, instant("how long it lives")] = None


class WorkloadTable(Struct, frozen=True, kw_only=True):
    """The keys of `[workload]`."""

    messages: Annotated[
        Path | None,
        input_file("CSV id,src,time (seconds), optional dst (names with spaces between), size (bytes)"),
    ] = None
    script: Annotated[tuple[ScriptItem, ...], items(ScriptItem, "single messages")] = ()
    every: Annotated[Distribution | None, distribution("time between two messages of a node")] = None
    poisson: Annotated[
        Duration | None, duration("mean time between two messages of a node, exponentially distributed")
    ] = None
    first: Annotated[
        Distribution | None, distribution("time from a node's entry to its first message; none: as `every`")
    ] = None
    count: Annotated[int | None, key("number of messages that each node sends; none: no limit")] = None
    until: Annotated[Duration | None, duration("no message is born after this instant")] = None
    size: Annotated[int, key("bytes of a payload", most=_MOST_BYTES)] = 100
    to: Annotated[
        int | tuple[int, int],
        key(
            "number of destinations, drawn at random; 0: all nodes",
            read=_destination_counts,
            shape="number or [least, most]",
        ),
    ] = 0
    groups: Annotated[int, key("nodes k, k + groups, k + 2 groups ... are a group", least=1)] = 1
    selectivity: Annotated[
        float, key("probability that all destinations are of the sender's group", most=1.0)
    ] = 0.0
    rates: Annotated[
        tuple[float, ...],
        key(
            "relative sending rates, dealt out to the nodes in turn; the mean stays the same",
            read=_rates,
            shape="list of numbers",
        ),
    ] = (1.0,)
    lifetime: Annotated[Distribution | None, distribution("lifetime of each message")] = None
    replies: Annotated[
        float,
        key("probability that a delivery is answered, an answer too; times receivers below 1", most=1.0),
    ] = 0.0
    reply_after: Annotated[
        Distribution | None, distribution("time between a delivery and its answer; none: 0s")
    ] = None
    sources: Annotated[
        int | tuple[str, ...] | None,
        key("nodes that send: how many (the first ones), or names; none: all", read=count_or_names),
    ] = None


def read_workload(table: Table, node_names: Sequence[str], sources: Sequence[NodeId]) -> Workload:
    """Read the workload that a table describes. `sources` are the nodes whose applications can send."""
    written = read_table(WorkloadTable, table)
    if written.every is not None and written.poisson is not None:
        raise table.wrong("poisson", "give `every` or `poisson`, not both")
    gap = written.every
    if written.poisson is not None:
        gap = Distribution(f"exponential({written.poisson / SECOND})")
    if gap is not None and gap.is_zero() and written.count is None:
        name = "poisson" if written.every is None else "every"
        raise table.wrong(name, "no time between messages, and no count")
    if written.selectivity and len(node_names) < 2 * written.groups:
        cause = f"{len(node_names)} nodes in {written.groups} groups leave a node alone"
        raise table.wrong("groups", cause)
    least, most = written.to if isinstance(written.to, tuple) else (written.to, written.to)
    script = [] if written.messages is None else _read_messages(written.messages, node_names)
    script += [_birth(table, item, node_names) for item in written.script]
    return Workload(
        gap=gap,
        first=written.first,
        count=written.count,
        until=written.until,
        size=written.size,
        script=script,
        replies=written.replies,
        reply_after=written.reply_after,
        destinations=Destinations(least, most, written.groups, written.selectivity),
        lifetime=written.lifetime,
        sources=_chosen_sources(table, written.sources, node_names, sources),
        rates=written.rates,
        refuse=partial(table.wrong, "replies"),
    )


def _birth(table: Table, item: ScriptItem, node_names: Sequence[str]) -> Birth:
    to = item.to
    destinations = None if to is None else tuple(sorted(table.node("script", name, node_names) for name in to))
    return Birth(item.at, table.node("script", item.src, node_names), destinations, item.lifetime)


def _chosen_sources(
    table: Table, chosen: int | tuple[str, ...] | None, node_names: Sequence[str], sources: Sequence[NodeId]
) -> Sequence[NodeId]:
    if isinstance(chosen, tuple):
        return [table.node("sources", name, node_names) for name in chosen]
    return sources[:chosen]


def _read_messages(path: Path, node_names: Sequence[str]) -> list[Birth]:
    """Read messages from CSV rows `id,src,time` in seconds, with optional `dst` and `size`."""
    number = {name: node for node, name in enumerate(node_names)}
    return [_birth_of_row(row, number, line) for line, row in csv_rows(path, ("id", "src", "time"))]


def _birth_of_row(row: Mapping[str, Any], number: Mapping[str, NodeId], place: str) -> Birth:
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
        destinations = row["dst"].split()
        unknown = [name for name in destinations if name not in number]
        if unknown:
            raise BadInput(f"{place}: dst: no node {unknown[0]!r}")
        to = tuple(sorted(number[name] for name in destinations))
    return Birth(at, number[row["src"]], to, None, _payload(row, place))


def _payload(row: Mapping[str, Any], place: str) -> bytes:
    """Return as many zero bytes as the column `size` says; without a size, the id as text."""
    if not row.get("size"):
        return str(row["id"]).encode()
    try:
        size = int(row["size"])
    except ValueError:
        raise BadInput(f"{place}: size: not a whole number: {row['size']!r}") from None
    if not 0 < size <= _MOST_BYTES:
        raise BadInput(f"{place}: size: {size} is not between 1 and {_MOST_BYTES}")
    return _zeros(size)


@lru_cache(1)
def _zeros(size: int) -> bytes:
    """Return zero bytes, the same object for messages of one size."""
    return bytes(size)
