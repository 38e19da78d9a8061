"""`Run`, the complete description of one simulation, and how it is carried out.

A `Run` is plain data: the same run gives the same event log in this process and on a Spark worker. Its id is a
hash of the description and of the contents of the files it reads.
"""

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Struct

from precede import __version__
from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.instants import MINUTE, SECOND, Instant, format_duration
from precede.core.node import Context, Node
from precede.eventlog.recorder import Recorder, Sink
from precede.eventlog.sinks import ParquetSink, TwoSinks
from precede.experiments.code_version import made_by
from precede.experiments.contact_worlds.choosing import contact_engine
from precede.experiments.faults import read_clocks, read_faults
from precede.experiments.keys import read_key, read_table
from precede.experiments.plain_vcube.choosing import build_vertex, is_plain_vcube, vcube_world
from precede.experiments.run_table import NEVER, RunTable
from precede.experiments.tables import Table
from precede.experiments.workload import WorkloadTable, read_workload
from precede.experiments.worlds.kinds import BuiltWorld, Presence, WorldKind, WorldTable, find_kind
from precede.lake.integrity import local_file
from precede.lake.layout import Lake
from precede.lake.storage import is_url, joined
from precede.lake.stored_contacts import stored_files
from precede.protocols import registry
from precede.sim.choosing import world_for
from precede.sim.faults import plan_faults
from precede.sim.networks.network import NODES_ENTER, NODES_LEAVE, Network
from precede.sim.workload import Workload
from precede.sim.world import FOREVER, World

RUN_FILE: Final = "run.json"
_MEASURED: Final = ("warmup", "cooldown", "energy")

_LONGEST_IDLE: Final = 10 * MINUTE


class Run(Struct, frozen=True, kw_only=True):
    """Everything needed to carry out one simulation, as plain data. The tables are those of a scenario file."""

    world: Mapping[str, Any]
    workload: Mapping[str, Any]
    protocol: str
    options: Mapping[str, Any] = {}
    seed: int = 1
    faults: Mapping[str, Any] = {}
    end: str | None = None
    gauges: str | None = None
    log: str = "full"
    warmup: str | None = None
    cooldown: str | None = None
    energy: Mapping[str, float] = {}
    scenario: str = ""
    base: str = ""
    unread: tuple[str, ...] = ()

    def table(self) -> Table:
        """Return the keys about time, rows and measures as a `[run]` table, so that errors name the file."""
        written = {name: getattr(self, name) for name in ("end", "gauges", "log", *_MEASURED)}
        return Table({name: value for name, value in written.items() if value}, "run", self.scenario)

    @property
    def id(self) -> str:
        """A short name: protocol, seed and a hash. The same run has the same id everywhere.

        The hash covers the contents of the files that the run reads, so computing it reads them.
        """
        return self.id_with(self.file_digests())

    def file_digests(self) -> dict[str, str]:
        return {key: _digest(self.base, value) for key, value in _paths(self)}

    def id_with(self, files: dict[str, str]) -> str:
        described = msgspec.to_builtins(self)
        del described["base"], described["scenario"], described["unread"]
        described["world"].pop("lake", None)
        for name in _MEASURED:  # a run that does not use them has the id that it had before they existed
            if not described[name]:
                del described[name]
        text = msgspec.json.encode([described, files], order="sorted")
        return f"{self.protocol}-s{self.seed}-{blake2b(text, digest_size=6).hexdigest()}"


class Outcome(Struct, frozen=True, kw_only=True):
    """Facts about a finished run that are not in its event log."""

    run_id: str
    order: str
    nodes: int
    rows: int
    events: int
    end_us: int
    cpu_s: float
    counters: dict[str, int]
    refusal: str = ""
    note: str = ""


class Replay(Struct):
    """A measured network and workload in place of the run's own; `left` is when nodes really left."""

    network: Network
    workload: Workload
    left: Mapping[NodeId, Sequence[Instant]] = {}

    def presence(self, stays: Sequence[Presence]) -> tuple[Presence, ...]:
        """Return the planned stays, each extended until its node really left."""
        measured = []
        for stay in stays:
            late = [at for at in self.left.get(stay.node, ()) if stay.leave is not None and at >= stay.leave]
            measured.append(Presence(stay.node, stay.enter, min(late) if late else stay.leave))
        return tuple(measured)


class Prepared(Struct):
    """A world in which nothing has happened yet, with its recorder and the other parts of its run."""

    world: World
    built: BuiltWorld
    recorder: Recorder
    entry: registry.Entry[Any]
    end: Instant


def carry_out(
    run: Run,
    sink: Sink,
    entry: registry.Entry[Any] | None = None,
    watch: Callable[[World, Instant], None] | None = None,
) -> Outcome:
    """Carry out a run and write its rows to a sink. `entry` replaces the registered protocol.

    `watch` gets the world and its end before it runs, to show progress.
    """
    began = time.process_time()
    prepared = prepare(run, sink, entry)
    world, built = prepared.world, prepared.built
    if watch is not None:
        watch(world, prepared.end)
    world.run(prepared.end)
    if world.gauged:
        world.sample_gauges()
    prepared.recorder.flush()
    return Outcome(
        run_id=prepared.recorder.run_id,
        order=prepared.entry.order,
        nodes=len(built.names),
        rows=prepared.recorder.rows,
        events=world.handled,
        end_us=world.now,
        cpu_s=time.process_time() - began,
        refusal=world.refusal,
        note=built.note,
        counters={
            "refused": world.refused,
            "unborn": world.unborn,
            **dict(built.network.counters()),
        },
    )


def prepare(
    run: Run,
    sink: Sink,
    entry: registry.Entry[Any] | None = None,
    watch: Callable[[World], None] | None = None,
    replay: Replay | None = None,
    make_world: type[World] | None = None,
    build_node: registry.BuildNode = registry.build_node,
) -> Prepared:
    """Build the world of a run, and schedule its stays, workload, faults and gauges.

    `entry` replaces the registered protocol, `replay` network and workload; `watch` gets the world first.
    `make_world` is the class of the world, if not what `world_for` says; `build_node` makes its nodes.
    """
    entry = entry or registry.find(run.protocol)
    built = build_world(run)
    if replay is not None:
        built.network = replay.network
        built.presence = replay.presence(built.presence)
    recorder = Recorder(
        run.id, built.names, sink, packets_received=read_key(RunTable, run.table(), "log") == "full"
    )
    world, workload = _assemble(run, entry, built, recorder, make_world, build_node)
    if replay is not None:
        workload = replay.workload
    if watch is not None:
        watch(world)
    end = _end_of(run, built, workload)
    _schedule_presence(world, built, workload)
    durable = registry.is_durable(_read_options(run, entry))
    faults = read_faults(Table(run.faults, "faults", run.scenario), built.names, durable)
    leaving = any(stay.leave is not None for stay in built.presence)
    built.network.crashes = bool(faults) or leaving or world.may_crash
    plan_faults(world, faults)
    workload.begin(world)
    _schedule_gauges(world, run, end)
    built.network.begin()
    return Prepared(world, built, recorder, entry, end)


def carry_out_into(
    run: Run,
    folder: Path,
    entry: registry.Entry[Any] | None = None,
    watch: Callable[[World, Instant], None] | None = None,
    also: Sink | None = None,
) -> Outcome:
    """Carry out a run and write `events.parquet`, `gauges.parquet` and `run.json`, or nothing if it fails.

    `also` gets the rows too.
    """
    sink = ParquetSink(folder)
    try:
        outcome = carry_out(run, sink if also is None else TwoSinks(sink, also), entry, watch)
    except BaseException:
        sink.abandon()
        raise
    (folder / RUN_FILE).unlink(missing_ok=True)  # an earlier run's file does not describe the new rows
    sink.close()
    write_run_file(folder, run, outcome)
    return outcome


def write_run_file(folder: Path, run: Run, outcome: Outcome) -> None:
    """Write `run.json`: the run, its outcome, the versions of the code."""
    described = {
        "order": outcome.order,
        "run_id": outcome.run_id,
        "run": msgspec.to_builtins(run),
        "outcome": msgspec.to_builtins(outcome),
        "made_by": made_by(),
        "versions": {"precede": __version__, "python": platform.python_version(), "numpy": np.__version__},
    }
    temporary = folder / f".{RUN_FILE}.partial"
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(described), indent=2) + b"\n")
    temporary.replace(folder / RUN_FILE)


def build_world(run: Run) -> BuiltWorld:
    """Build the world that a run describes. Raise `BadInput` if a key is wrong or has no effect."""
    table = Table(run.world, "world", run.scenario, base=Path(run.base))
    kind = kind_of(table)
    world = read_table(kind.keys, table)
    for name, reason in world.unused().items():
        if name in table.data:
            raise table.wrong(name, f"has no effect {reason}; leave it out")
    built = kind.build(world, table, run.seed)
    _check_stays(built, run.scenario)
    return built


def kind_of(table: Table) -> WorldKind[Any]:
    if "kind" not in table.data:
        raise table.lacks("'kind'")
    return find_kind(read_key(WorldTable, table, "kind"))


def _check_stays(built: BuiltWorld, scenario: str) -> None:
    """Raise `BadInput` if a node leaves before it enters, or enters while it is present."""
    until: dict[NodeId, Instant] = {}
    for stay in sorted(built.presence, key=lambda stay: (stay.node, stay.enter)):
        leave = FOREVER if stay.leave is None else stay.leave
        if stay.enter < until.get(stay.node, 0) or leave < stay.enter:
            cause = "leaves before it enters" if leave < stay.enter else "enters while it is already there"
            where = f"{scenario}: " if scenario else ""
            raise BadInput(f"{where}node {built.names[stay.node]!r} {cause} (at {format_duration(stay.enter)})")
        until[stay.node] = leave


def _assemble(
    run: Run,
    entry: registry.Entry[Any],
    built: BuiltWorld,
    recorder: Recorder,
    make_world: type[World] | None,
    build_node: registry.BuildNode,
) -> tuple[World, Workload]:
    kind = str(run.world["kind"])
    if kind not in entry.worlds:
        raise BadInput(
            f"protocol {entry.name!r} does not run in a {kind} world (it needs {', '.join(entry.worlds)})"
        )
    members = built.all_members()
    options = _read_options(run, entry)
    table = Table(run.workload, "workload", run.scenario, base=Path(run.base))
    workload = read_workload(table, built.names, built.all_sources())
    if make_world is None:
        make_world = world_for(built.network, len(built.names))
        if not run.faults and build_node is registry.build_node:
            engine = contact_engine(built.network, workload, options, len(built.names), run.seed)
            if engine is not None:
                make_world, build_node = engine
            elif is_plain_vcube(entry, built, workload, options):
                make_world, build_node = vcube_world(), build_vertex

    def make_node(node: NodeId, incarnation: int, random: Random) -> Node:
        context = Context(node, members, options, random, incarnation)
        return build_node(entry, built.role(node), context)

    clocks = read_clocks(Table(run.faults, "faults", run.scenario), built.names, run.seed)
    world = make_world(run.seed, len(built.names), make_node, built.network, recorder, clocks)
    return world, workload


def _read_options(run: Run, entry: registry.Entry[Any]) -> Any:
    return registry.read_options(entry, run.options, registry.usual_dissemination(str(run.world["kind"])))


def _schedule_presence(world: World, built: BuiltWorld, workload: Workload) -> None:
    def enter(node: NodeId) -> None:
        world.enter(node)
        workload.node_entered(node)

    for stay in built.presence:
        world.schedule_phase(NODES_ENTER, stay.enter, enter, stay.node)
        if stay.leave is not None:
            world.schedule_phase(NODES_LEAVE, stay.leave, world.leave, stay.node, built.linger)


def _end_of(run: Run, built: BuiltWorld, workload: Workload) -> Instant:
    end = read_key(RunTable, run.table(), "end")
    if end is not None:
        return int(end)
    if built.end is not None:
        return max(built.end, workload.last_scripted)
    table = Table(run.workload, "workload", run.scenario)
    if workload.is_endless:
        raise table.wrong("until", "endless messages in an endless world: set `until`, or `end` in [run]")
    until = read_key(WorkloadTable, table, "until")
    return FOREVER if until is None else until + _LONGEST_IDLE


def _schedule_gauges(world: World, run: Run, end: Instant) -> None:
    every = read_key(RunTable, run.table(), "gauges")
    if every is None:
        every = max(end // 100, SECOND // 100) if end != FOREVER else 10 * SECOND
    if every == NEVER:
        return
    world.gauged = True

    def sample() -> None:
        world.sample_gauges()
        if world.busy():
            world.schedule(world.now + every, sample)

    world.schedule(0, sample)


def _paths(run: Run) -> list[tuple[str, str]]:
    """List the files that a run reads, each after its key; the files of its trace are included."""
    paths = []
    for name, table in (("world", run.world), ("workload", run.workload)):
        for key, value in table.items():
            if isinstance(value, str) and is_url(value) and key != "lake":
                paths.append((f"{name}.{key}", str(local_file(value))))
            elif isinstance(value, str) and run.base and (Path(run.base) / value).is_file():
                paths.append((f"{name}.{key}", value))
    if "trace" in run.world:
        lake, range_m = Lake(joined(run.base, run.world.get("lake", "lake"))), run.world.get("range")
        stored = stored_files(lake, run.world["trace"], None if range_m is None else float(range_m))
        paths += [(f"trace.{table}", str(path.absolute())) for table, _, path in stored]
    return paths


def _digest(base: str, path: str) -> str:
    file = Path(base) / path
    state = file.stat()
    return _digest_of(file, state.st_size, state.st_mtime_ns)


@lru_cache(256)
def _digest_of(path: Path, size: int, changed: int) -> str:
    """Return a digest of a file's contents, cached because the runs of a sweep read the same files."""
    with path.open("rb") as file:
        digest = blake2b(digest_size=16)
        while block := file.read(1 << 20):
            digest.update(block)
        return digest.hexdigest()
