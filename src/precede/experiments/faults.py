"""The `[faults]` table of a scenario: crashes, stalls, and clocks that are wrong."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Struct

from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.experiments.keys import distribution, instant, items, key, read_table
from precede.experiments.tables import Table
from precede.sim.clocks import Clock
from precede.sim.faults import Crash, Fault, Stall
from precede.sim.randomness import Distribution, Generators


def _steps(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"expected a number of steps, 0 or more, got {value!r}")
    return value


def _strictly_bool(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"expected true or false, got {value!r}")
    return value


class CrashItem(Struct, frozen=True, kw_only=True):
    """One crash in the list `crashes` of a scenario's `[faults]`."""

    node: Annotated[str, key("name of the node")]
    at: Annotated[Instant, instant("when it goes down")]
    after: Annotated[int | None, key("it goes down so many steps of effects after `at`", read=_steps)] = None
    restart: Annotated[Instant | None, instant("when it is up again; none: never")] = None
    keep: Annotated[
        bool | None,
        key("it restarts with its saved state; none: if the option durable is on", read=_strictly_bool),
    ] = None
    again: Annotated[int | None, key("it goes down again so many steps after the restart", read=_steps)] = None


class StallItem(Struct, frozen=True, kw_only=True):
    """One stall in the list `stalls` of a scenario's `[faults]`."""

    node: Annotated[str, key("name of the node")]
    at: Annotated[Instant, instant("when it stops")]
    duration: Annotated[Duration, instant("how long it does nothing")]


class JumpItem(Struct, frozen=True, kw_only=True):
    """One jump in the list `jumps` of a scenario's `[faults]`."""

    node: Annotated[str, key("name of the node")]
    at: Annotated[Instant, instant("when its clock is set forward")]
    by: Annotated[Duration, instant("how far")]


class FaultTable(Struct, frozen=True, kw_only=True):
    """The keys of `[faults]`."""

    crashes: Annotated[tuple[CrashItem, ...], items(CrashItem, "nodes that go down")] = ()
    stalls: Annotated[tuple[StallItem, ...], items(StallItem, "nodes that do nothing for a while")] = ()
    jumps: Annotated[tuple[JumpItem, ...], items(JumpItem, "clocks that are set forward, once a node")] = ()
    skew: Annotated[
        Distribution | None, distribution("offset of a clock, drawn per node, in either direction; none: 0s")
    ] = None
    drift_ppm: Annotated[
        int | None,
        key("largest drift of a clock in parts per million, drawn per node, in either direction", most=999_999),
    ] = None


def read_faults(table: Table, names: Sequence[str], durable: bool | None = None) -> list[Fault]:
    """Read the crashes and stalls that a table lists. `durable` is the protocol's option, None without one."""
    written = read_table(FaultTable, table)
    crashes = [_crash(table, item, names, durable) for item in written.crashes]
    stalls = [Stall(table.node("stalls", item.node, names), item.at, item.duration) for item in written.stalls]
    return [*crashes, *stalls]


def _crash(table: Table, item: CrashItem, names: Sequence[str], durable: bool | None) -> Crash:
    node = table.node("crashes", item.node, names)
    keep = bool(durable) if item.keep is None else item.keep
    if item.again is not None and item.restart is None:
        raise table.wrong("crashes", f"node {item.node!r} crashes again without a restart")
    if keep and durable is False and item.restart is not None:
        cause = f"node {item.node!r} cannot keep its state while the protocol's option durable is off"
        raise table.wrong("crashes", cause)
    if item.restart is not None and item.restart < item.at:
        raise table.wrong("crashes", f"node {item.node!r} restarts before it crashes")
    return Crash(node=node, at=item.at, after=item.after, restart=item.restart, keep=keep, again=item.again)


def read_clocks(table: Table, names: Sequence[str], seed: int) -> dict[NodeId, Clock]:
    """Draw a clock for each node. Return no clocks if the table says nothing about clocks."""
    written = read_table(FaultTable, table)
    if written.skew is None and written.drift_ppm is None and not written.jumps:
        return {}
    jumps = {table.node("jumps", item.node, names): (item.at, item.by) for item in written.jumps}
    skew, drift = written.skew or Distribution("constant(0)"), written.drift_ppm or 0
    clocks = {}
    for node in range(len(names)):
        generator = Generators(seed).python("clock", node)
        draw = skew.drawing(Generators(seed), "skew", node)
        offset = draw() if generator.random() < 0.5 else -draw()
        clocks[node] = Clock(offset, generator.randint(-drift, drift), *jumps.get(node, ()))
    return clocks
