"""One side of a played world: a simulated run that is stepped to an instant and takes inputs there."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, cast

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from precede.core.instants import Instant
from precede.eventlog.recorder import Sink
from precede.experiments.run import Outcome, Run, prepare
from precede.play.played_world import PlayedWorld
from precede.play.record import Input, Record
from precede.protocols import registry
from precede.protocols.registry import Entry


class Tee:
    """A sink that keeps new rows until they are taken, and a digest of all rows; `behind` gets every block."""

    def __init__(self, behind: Sink | None = None) -> None:
        self._behind = behind
        self._new: list[pa.RecordBatch] = []
        self._digest = blake2b(digest_size=16)

    def write_events(self, block: pa.RecordBatch) -> None:
        if self._behind is None:
            self._new.append(block)
        else:
            self._behind.write_events(block)
        self._note(block)

    def write_gauges(self, block: pa.RecordBatch) -> None:
        if self._behind is not None:
            self._behind.write_gauges(block)

    def take(self) -> list[dict[str, Any]]:
        """Return the rows since the last call."""
        taken, self._new = self._new, []
        return [row for block in taken for row in block.to_pylist()]

    def digest(self) -> str:
        """Return a digest of all rows without their run id; the size of the blocks does not change it."""
        return self._digest.hexdigest()

    def _note(self, block: pa.RecordBatch) -> None:
        encode = msgspec.msgpack.encode
        columns = [block.column(name).to_pylist() for name in block.schema.names if name != "run_id"]
        self._digest.update(b"".join([encode(row) for row in zip(*columns, strict=True)]))


class Side:
    """A run that takes inputs. The same inputs at the same instants give the same rows, in any steps."""

    def __init__(self, run: Run, entry: Entry[Any] | None = None, sink: Sink | None = None) -> None:
        self.run = replace(run, gauges="none", log="full")
        self.entry = entry or registry.find(run.protocol)
        self.tee = Tee(sink)
        self.prepared = prepare(self.run, self.tee, self.entry, make_world=PlayedWorld)
        self.world = cast(PlayedWorld, self.prepared.world)
        self.names = self.prepared.built.names
        self.ids = {name: node for node, name in enumerate(self.names)}
        options = registry.read_options(
            self.entry, run.options, registry.usual_dissemination(str(run.world["kind"]))
        )
        self._keeps = bool(registry.is_durable(options))

    @property
    def now(self) -> Instant:
        return self.world.now

    @property
    def end(self) -> Instant:
        return self.prepared.end

    def advance(self, until: Instant) -> None:
        """Run to an instant, inclusive, but not beyond the end of the world."""
        self.world.run(min(until, self.end))

    def apply(self, item: Input) -> str:
        """Carry out an input now, with all that follows at this instant. Return why nothing happened, if so."""
        why = getattr(self, f"_{item.action}")(item)
        self.world.run(self.world.now)
        return str(why)

    def carry_out(self, record: Record) -> None:
        """Carry out a record from the beginning to its end."""
        for item in record.inputs:
            self.advance(item.at_us)
            self.apply(item)
        self.advance(record.end_us)

    def new_rows(self) -> list[dict[str, Any]]:
        """Return the rows since the last call."""
        self.prepared.recorder.flush()
        return self.tee.take()

    def outcome(self) -> Outcome:
        """Return the facts about the run that are not in its rows. It took no time that counts: cpu_s is 0."""
        self.prepared.recorder.flush()
        world = self.world
        return Outcome(
            run_id=self.run.id,
            order=self.entry.order,
            nodes=len(self.names),
            rows=self.prepared.recorder.rows,
            events=world.handled,
            end_us=world.now,
            cpu_s=0.0,
            counters={
                "refused": world.refused,
                "unborn": world.unborn,
                **self.prepared.built.network.counters(),
            },
            refusal=world.refusal,
            note=self.prepared.built.note,
        )

    def waiting(self) -> list[tuple[int, Any]]:
        """Return the messages that were received and cannot be delivered yet, each after its node."""
        return [(hosted.id, item) for hosted in self.world.nodes if hosted.up for item in hosted.node.waiting()]

    def down(self) -> list[int]:
        return [hosted.id for hosted in self.world.nodes if not hosted.up]

    # -- inputs ------------------------------------------------------------------------------------------

    def _say(self, item: Input) -> str:
        world, node = self.world, self.ids[item.node]
        if node not in self.prepared.built.all_sources():
            return f"{item.node} is a {self.prepared.built.role(node)}: it says nothing itself."
        to = None if item.to is None else tuple(sorted({self.ids[name] for name in item.to}))
        unborn, refused = world.unborn, world.refused
        first_refusal, world.refusal = world.refusal, ""
        world.broadcast(node, item.text.encode() or bytes(1), to)
        why = world.refusal
        world.refusal = first_refusal or why
        if world.unborn > unborn:
            return f"{item.node} is down and says nothing."
        return f"{item.node} may not say this: {why}." if world.refused > refused else ""

    def _crash(self, item: Input) -> str:
        node = self.ids[item.node]
        if not self.world.is_up(node):
            return f"{item.node} is down already."
        self.world.crash(node)
        return ""

    def _restart(self, item: Input) -> str:
        node = self.ids[item.node]
        if self.world.is_up(node):
            return f"{item.node} is up already."
        self.world.restart(node, keep=self._keeps)
        return "" if self.world.is_up(node) else f"{item.node} is not in this world now."

    def _cut(self, item: Input) -> str:
        assert item.peer is not None
        changed = self.world.cut(self.ids[item.node], self.ids[item.peer])
        return "" if changed else f"The link of {item.node} and {item.peer} is cut already."

    def _mend(self, item: Input) -> str:
        assert item.peer is not None
        changed = self.world.mend(self.ids[item.node], self.ids[item.peer])
        return "" if changed else f"The link of {item.node} and {item.peer} is not cut."
