"""The witness while a run goes on: rows come in pieces, late or twice, and what it says once stays said.

A row counts once every row of its process before it is there (steps count from 0 without a hole), and a
delivery once its broadcast counts. What has counted is therefore a consistent cut of the run, and whether a
delivery in it is late depends on its past alone, so the marks are those that `witness` gives to the whole log.
Total order is judged pair by pair: the delivery that completes a disagreement of two processes violates it.

A new life of a node counts from 0 again or goes on where the life before it ended. While its step 0 is not
there it goes on at a row `started`, or at any row in a log that does not tell when lives begin. So a life that
counts from 0 and whose rows come out of order can be taken for one that goes on (where rows tell: only at a
restart just there). When its first rows turn up the verdict is `unknown`; no violation depends on it.

Nothing here reads a clock, a vector or a barrier of any protocol. `pack` is the whole state as bytes.
"""

from __future__ import annotations

from array import array
from bisect import insort
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from precede.core.natural_order import natural
from precede.witness.history import name_message
from precede.witness.live.stories import Teller
from precede.witness.reading.column_names import BROADCAST, DELIVERED
from precede.witness.verdict import Offence, Order, Violation

Key: TypeAlias = tuple[str, int, int]
"""A message: the node and the life that broadcast it, and its number."""

TOLD_IN_FULL: Final = 10
"""So many violations of one call are told with their chains; the others in a sentence, for it takes time."""

STARTED: Final = 3
"""A kind beside those of `layout`: the process began here, or began again."""

_CONFLICTS_KEPT: Final = 20
_SHORT: Final = "I"


class LiveRow(NamedTuple):
    """One row of a process: `source`, `life`, `number` name the message, where there is one."""

    step: int
    kind: int
    source: str = ""
    life: int = 0
    number: int = 0
    to: list[str] | None = None
    deadline: int | None = None
    clock: int | None = None


class Process(Struct):
    """One life of a node, as far as its rows have come.

    It began at step `first`, with a row `started` or another, and `lowest` was its first number.
    """

    node: str
    life: int
    expected: int = 0
    began: bool = False
    held: dict[int, LiveRow] = {}
    queue: list[LiveRow] = []
    waits: Key | None = None
    clock: dict[int, int] = {}
    sent: int = 0
    last_number: int | None = None
    early: list[Key] = []
    odd: dict[int, Key] = {}
    sees: dict[int, int] = {}
    delivered: bytes = b""
    first: int = 0
    started: bool = False
    lowest: int | None = None


class State(Struct):
    """Everything a `LiveRun` knows, as it is kept between two calls."""

    order: Order
    allow: bool
    version: int
    rows: int
    deliveries: int
    counts: dict[str, int]
    conflicts: list[str]
    processes: list[Process]
    source: bytes
    rank: bytes
    born: bytes
    number: bytes
    past_start: bytes
    past: bytes
    deadline: dict[int, int]
    to: dict[int, list[str]]
    clock_missing: bool = False


class LiveRun:
    """One independent order. `add` takes rows of any processes and gives the violations that they prove."""

    def __init__(self, order: Order, allow_duplicates: bool = False) -> None:
        self.order: Order = order
        self.allow = allow_duplicates
        self.version = 0
        self.rows = 0
        self.deliveries = 0
        self.counts: dict[str, int] = {}
        self.conflicts: list[str] = []
        self.processes: list[Process] = []
        self.delivered: list[array[int]] = []
        """For each process the step + 1 at which it delivered each message; 0 where it did not."""
        self.source, self.rank, self.born = array(_SHORT), array(_SHORT), array(_SHORT)
        self.number = array("q")
        self.past_start, self.past = array("Q", [0]), array(_SHORT)
        self.deadline: dict[int, int] = {}
        self.to: dict[int, list[str]] = {}
        self.clock_missing = False
        self._places: dict[tuple[str, int], int] = {}
        self._ids: dict[Key, int] = {}
        self._coming: dict[Key, int] = {}
        self._waiting: dict[tuple[str, int], dict[int, list[int]]] = {}
        self._ready: list[int] = []
        self._found: list[Violation] = []
        self._lives: dict[str, list[int]] = {}
        self._teller = Teller(self)

    def add(self, rows: Iterable[tuple[str, int, LiveRow]]) -> list[Violation]:
        """Take rows as (node, life, row), in any order; rows that were there before change nothing."""
        self._found = []
        touched: dict[int, None] = {}
        for node, life, row in rows:
            p = self._place(node, life)
            process = self.processes[p]
            if row.step == process.expected and process.began and not process.held:
                self._take(p, row)
            elif process.began and row.step < process.expected:
                self._compare(p, row)
                continue
            elif row.step in process.held:
                if process.held[row.step] != row:
                    self._conflict(process, f"step {row.step} was told twice, differently")
                continue
            else:
                process.held[row.step] = row
            self.rows += 1
            touched[p] = None
        for p in touched:
            self._release(p)
        self._ready += reversed(touched)
        self._run_all()
        while self._break_ring():
            self._run_all()
        self.version += 1
        return self._found

    def pack(self) -> bytes:
        """The state as bytes."""
        for process, delivered in zip(self.processes, self.delivered, strict=True):
            process.delivered = delivered.tobytes()
        arrays = ("source", "rank", "born", "number", "past_start", "past")
        state = State(
            order=self.order,
            allow=self.allow,
            version=self.version,
            rows=self.rows,
            deliveries=self.deliveries,
            counts=self.counts,
            conflicts=self.conflicts,
            processes=self.processes,
            deadline=self.deadline,
            to=self.to,
            clock_missing=self.clock_missing,
            **{name: getattr(self, name).tobytes() for name in arrays},
        )
        return msgspec.msgpack.encode(state)

    @staticmethod
    def unpack(packed: bytes) -> LiveRun:
        """The run as it was when it was packed."""
        state = msgspec.msgpack.decode(packed, type=State)
        run = LiveRun(state.order, state.allow)
        kept = ("version", "rows", "deliveries", "counts", "conflicts", "processes", "deadline", "to")
        for name in (*kept, "clock_missing"):
            setattr(run, name, getattr(state, name))
        run.past_start = array("Q")
        for name in ("source", "rank", "born", "number", "past_start", "past"):
            getattr(run, name).frombytes(getattr(state, name))
        for p, process in enumerate(run.processes):
            run.delivered.append(array(_SHORT, process.delivered))
            run._places[process.node, process.life] = p
            insort(run._lives.setdefault(process.node, []), process.life)
            run._coming.update({row[2:5]: p for row in process.queue if row.kind == BROADCAST})
            if process.waits is not None:
                run._park(p, process.waits)
        for m in range(len(run.source)):
            run._ids[run.key_of(m)] = m
        return run

    @property
    def held(self) -> int:
        """Rows that wait for a step before them."""
        return sum(len(process.held) for process in self.processes)

    @property
    def parked(self) -> int:
        """Rows that wait for a broadcast that has not come."""
        return sum(len(process.queue) for process in self.processes)

    def waits_for(self, most: int = 5) -> list[str]:
        """What is missing, in words."""
        told = []
        for process in self.processes:
            if process.held:
                step = process.expected if process.began or not process.life else "its first"
                behind = f"{len(process.held)} rows behind it"
                told.append(f"node {self.who(process)} waits for step {step} ({behind})")
            elif process.waits is not None:
                source, life, number = process.waits
                told.append(
                    f"node {self.who(process)} waits for the broadcast of {name_message(source, life, number)}"
                )
        return told[:most] + ([f"and {len(told) - most} more"] if len(told) > most else [])

    def key_of(self, message: int) -> Key:
        process = self.processes[self.source[message]]
        return process.node, process.life, self.number[message]

    def who(self, process: Process) -> str:
        return f"{process.node} (incarnation {process.life})" if process.life else process.node

    def _place(self, node: str, life: int) -> int:
        place = self._places.get((node, life))
        if place is None:
            place = self._places[node, life] = len(self.processes)
            insort(self._lives.setdefault(node, []), life)
            self.processes.append(Process(node, life))
            self.delivered.append(array(_SHORT))
        return place

    def _release(self, p: int) -> None:
        """Take what has become contiguous, of this life and of those whose steps continue from it."""
        process = self.processes[p]
        if not process.began:
            self._begin(process)
        if not process.began:
            return
        while process.held:
            row = process.held.pop(process.expected, None)
            if row is None:
                break
            self._take(p, row)
        lives = self._lives[process.node]
        if process.life != lives[-1]:
            later = self._places[process.node, lives[lives.index(process.life) + 1]]
            if not self.processes[later].began:
                self._release(later)
                self._ready.append(later)

    def _begin(self, process: Process) -> None:
        """A life begins at step 0, or where the life before it ended."""
        lives = self._lives[process.node]
        place = lives.index(process.life)
        before = self.processes[self._places[process.node, lives[place - 1]]] if place else None
        if 0 in process.held:
            process.began, process.started = True, process.held[0].kind == STARTED
        elif before is not None and before.began and before.expected in process.held:
            process.started = process.held[before.expected].kind == STARTED
            if process.started or not before.started:
                process.expected = process.first = before.expected
                process.began = True

    def _take(self, p: int, row: LiveRow) -> None:
        process = self.processes[p]
        process.expected += 1
        if row.kind in (BROADCAST, DELIVERED):
            process.queue.append(row)
            if row.kind == BROADCAST:
                self._coming[row[2:5]] = p

    def _compare(self, p: int, row: LiveRow) -> None:
        """A row of a step that has counted: the same one again, or another?"""
        process, key = self.processes[p], row[2:5]
        if row.step < process.first:
            self._conflict(process, f"has rows before step {process.first}, where it was taken to begin")
            return
        if row.kind not in (BROADCAST, DELIVERED) or process.odd.get(row.step) == key:
            return
        message = self._ids.get(key)
        if message is not None and row.kind == BROADCAST:
            same = self.source[message] == p and self.born[message] == row.step
        else:
            mine = self.delivered[p]
            same = message is not None and message < len(mine) and mine[message] == row.step + 1
        if not same and row not in process.queue:
            self._conflict(process, f"step {row.step} was told twice, differently")

    def _conflict(self, process: Process, what: str) -> None:
        told = f"node {self.who(process)}: {what}"
        if len(self.conflicts) < _CONFLICTS_KEPT and told not in self.conflicts:
            self.conflicts.append(told)

    def _run_all(self) -> None:
        while self._ready:
            p = self._ready.pop()
            queue = self.processes[p].queue
            done = 0
            while done < len(queue) and self._count(p, queue[done]):
                done += 1
            del queue[:done]

    def _count(self, p: int, row: LiveRow) -> bool:
        """Count one row; False when it must wait."""
        if row.kind == BROADCAST:
            self._broadcast(p, row)
            return True
        process, key = self.processes[p], row[2:5]
        message = self._ids.get(key)
        if message is not None:
            process.waits = None
            self._deliver(p, process, message, row)
            return True
        if self._passed(key):
            self._unpark(p, process)
            self.deliveries += 1
            self._violate(p, process, row, "ghost", self._teller.ghost(process, row))
            return True
        if process.waits != key:
            self._unpark(p, process)
            self._park(p, key)
            process.waits = key
        return False

    def _passed(self, key: Key) -> bool:
        """Will this never be broadcast? Numbers ascend; rows before a step other than 0 may have lower ones."""
        place = self._places.get(key[:2])
        source = None if place is None else self.processes[place]
        if source is None or source.last_number is None or source.last_number <= key[2]:
            return False
        return not source.first or source.lowest is None or key[2] > source.lowest

    def _park(self, p: int, key: Key) -> None:
        self._waiting.setdefault(key[:2], {}).setdefault(key[2], []).append(p)

    def _unpark(self, p: int, process: Process) -> None:
        if process.waits is not None:
            waiting = self._waiting.get(process.waits[:2], {}).get(process.waits[2], [])
            if p in waiting:
                waiting.remove(p)
            process.waits = None

    def _broadcast(self, p: int, row: LiveRow) -> None:
        process, key = self.processes[p], row[2:5]
        self._coming.pop(key, None)
        if key[:2] != (process.node, process.life):
            self._conflict(process, f"broadcasts a message whose source is {key[0]} (step {row.step})")
            return
        if process.last_number is not None and row.number <= process.last_number:
            self._conflict(process, f"broadcasts number {row.number} after {process.last_number}")
            return
        process.last_number = row.number
        process.lowest = row.number if process.lowest is None else process.lowest
        message = self._ids[key] = len(self.source)
        process.sent += 1
        self.source.append(p)
        self.rank.append(process.sent)
        self.born.append(row.step)
        self.number.append(row.number)
        if self.order in ("causal", "multicast", "delta"):
            for entry in process.clock.items():
                self.past.extend(entry)
        self.past_start.append(len(self.past))
        if row.deadline is not None:
            self.deadline[message] = row.deadline
        if row.to is not None:
            self.to[message] = row.to
        waiting = self._waiting.get(key[:2])
        if waiting:
            for number in sorted(number for number in waiting if number <= row.number):
                self._ready += waiting.pop(number)

    def _deliver(self, p: int, process: Process, message: int, row: LiveRow) -> None:
        self.deliveries += 1
        mine = self.delivered[p]
        if message >= len(mine):
            mine.frombytes(bytes(mine.itemsize * (len(self.source) - len(mine))))
        teller = self._teller
        if mine[message] or (process.early and row[2:5] in process.early):
            process.odd[row.step] = row[2:5]
            if not self.allow:
                self._violate(p, process, row, "duplicate", teller.duplicate(p, message, row))
            return
        to = self.to.get(message)
        if to is not None and self.source[message] != p and process.node not in to:
            self._violate(p, process, row, "not_addressed", teller.not_addressed(process, message, row))
        if self.order == "total":
            self._compare_orders(p, process, message, row)
        elif not self._in_order(process, message):
            kind: Offence = self.order if self.order in ("fifo", "multicast") else "causal"
            in_full = len(self._found) < TOLD_IN_FULL
            self._violate(p, process, row, kind, teller.late(p, message, row, kind, in_full))
        deadline = self.deadline.get(message)
        self.clock_missing = self.clock_missing or row.clock is None
        if self.order == "delta" and deadline is not None and row.clock is not None and row.clock > deadline:
            self._violate(p, process, row, "expired", teller.expired(process, message, row, deadline))
        mine[message] = row.step + 1

    def _in_order(self, process: Process, message: int) -> bool:
        """Count a delivery in, unless something that it precedes was delivered before (`causal`, `fifo`)."""
        source, rank, clock = self.source[message], self.rank[message], process.clock
        if clock.get(source, 0) >= rank:
            return False
        entries = self.past[self.past_start[message] : self.past_start[message + 1]]
        for other, last in zip(entries[::2], entries[1::2], strict=True):
            if last > clock.get(other, 0):
                clock[other] = last
        clock[source] = rank
        return True

    def _compare_orders(self, p: int, process: Process, message: int, row: LiveRow) -> None:
        """Did anybody deliver this message before something that we delivered before it?"""
        against = -1
        for q, other in enumerate(self.processes):
            theirs = self.delivered[q]
            at = theirs[message] if q != p and message < len(theirs) else 0
            if not at:
                continue
            latest = process.sees.get(q, 0)
            if latest > at and against < 0:
                against = q
            process.sees[q] = max(latest, at)
            other.sees[p] = row.step + 1
        if against >= 0:
            told = self._teller.disagreement(p, against, message, row)
            self._violate(p, process, row, "total", told)

    def _violate(self, p: int, process: Process, row: LiveRow, kind: Offence, told: Violation) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if kind in ("ghost", "duplicate", "before_broadcast"):
            process.odd[row.step] = row[2:5]
        self._found.append(told)

    def _break_ring(self) -> bool:
        """Do processes wait for each other's broadcasts, all of which are there? Blame the lowest one."""
        for p in range(len(self.processes)):
            ring: list[int] = []
            at: int | None = p
            while at is not None and at not in ring:
                ring.append(at)
                waits = self.processes[at].waits
                at = None if waits is None else self._coming.get(waits)
            if at is not None:
                self._blame(ring[ring.index(at) :])
                return True
        return False

    def _blame(self, ring: Sequence[int]) -> None:
        p = min(ring, key=lambda q: (natural(self.processes[q].node), self.processes[q].life))
        process = self.processes[p]
        row = process.queue.pop(0)
        self._unpark(p, process)
        process.early.append(row[2:5])
        self.deliveries += 1
        self._violate(p, process, row, "before_broadcast", self._teller.too_early(process, row))
        self._ready.append(p)
