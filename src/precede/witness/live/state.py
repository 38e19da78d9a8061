"""The state of the live verifier for one run: rows that wait, messages and deliveries counted so far.

`pack` turns the whole state into bytes, `unpack` restores it.
"""

from __future__ import annotations

from array import array
from bisect import insort
from typing import Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from precede.witness.history import name_message, name_process
from precede.witness.verdict import Order

Key: TypeAlias = tuple[str, int, int]
"""A message: the node that broadcast it, the node's incarnation, the message's number."""

_CONFLICTS_KEPT: Final = 20
_UINT32: Final = "I"
_ARRAYS: Final = ("source", "rank", "born", "number", "past_start", "past")


class LiveRow(NamedTuple):
    """One row of a process. `source`, `source_incarnation` and `number` name its message, if it has one."""

    step: int
    kind: int
    source: str = ""
    source_incarnation: int = 0
    number: int = 0
    to: list[str] | None = None
    deadline: int | None = None
    clock: int | None = None

    @property
    def key(self) -> Key:
        return self[2:5]

    @property
    def message(self) -> str:
        return name_message(*self[2:5])


class Process(Struct):
    """One incarnation of a node, as far as its rows have arrived.

    `expected` is the next step; `began` says that its first step is known, which is `first`, and `started` that
    it has a row `started`. `held` has rows by step that wait for earlier ones, `queue` the contiguous rows that
    are not counted yet, `waits` the message whose broadcast the first of them waits for. `clock` has the rank
    of the last message of each source in the process's past. `early` and `odd` remember rows that broke a rule,
    `sees` the last step of other processes (for total order), `lowest` and `last_number` its first and last
    message.
    """

    node: str
    incarnation: int
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

    @property
    def name(self) -> str:
        return name_process(self.node, self.incarnation)


class _Packed(Struct):
    """A `LiveState` as msgpack stores it; arrays are bytes."""

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


class LiveState:
    """Everything that the live verifier knows about one run.

    Per message: `source` (a process), `rank` among the source's broadcasts, `born` (the step of the broadcast),
    `number`, and its past `past[past_start[m]:past_start[m + 1]]` as pairs of a source and a rank. `deadline`
    and `to` have the messages that carry them. `delivered[p][m]` is the step + 1 at which process p delivered
    m, or 0. `counts` has the violations by kind, `conflicts` rows that contradict each other.
    """

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
        self.source, self.rank, self.born = array(_UINT32), array(_UINT32), array(_UINT32)
        self.number = array("q")
        self.past_start, self.past = array("Q", [0]), array(_UINT32)
        self.deadline: dict[int, int] = {}
        self.to: dict[int, list[str]] = {}
        self.clock_missing = False
        self.places: dict[tuple[str, int], int] = {}
        self.ids: dict[Key, int] = {}
        self.incarnations: dict[str, list[int]] = {}

    @property
    def held(self) -> int:
        return sum(len(process.held) for process in self.processes)

    @property
    def parked(self) -> int:
        return sum(len(process.queue) for process in self.processes)

    def place(self, node: str, incarnation: int) -> int:
        """Return the index of a process. A new process is added."""
        place = self.places.get((node, incarnation))
        if place is None:
            place = self.places[node, incarnation] = len(self.processes)
            insort(self.incarnations.setdefault(node, []), incarnation)
            self.processes.append(Process(node, incarnation))
            self.delivered.append(array(_UINT32))
        return place

    def key_of(self, message: int) -> Key:
        process = self.processes[self.source[message]]
        return process.node, process.incarnation, self.number[message]

    def message_name(self, message: int) -> str:
        return name_message(*self.key_of(message))

    def conflict(self, process: Process, cause: str) -> None:
        """Remember, once, that rows of a process contradict each other; only the first conflicts are kept."""
        text = f"node {process.name}: {cause}"
        if len(self.conflicts) < _CONFLICTS_KEPT and text not in self.conflicts:
            self.conflicts.append(text)

    def waits_for(self, most: int = 5) -> list[str]:
        """Describe the missing rows and messages: at most `most` lines, and one that counts the rest."""
        lines = []
        for process in self.processes:
            if process.held:
                step = process.expected if process.began or not process.incarnation else "its first"
                behind = f"{len(process.held)} rows behind it"
                lines.append(f"node {process.name} waits for step {step} ({behind})")
            elif process.waits is not None:
                lines.append(f"node {process.name} waits for the broadcast of {name_message(*process.waits)}")
        return lines[:most] + ([f"and {len(lines) - most} more"] if len(lines) > most else [])

    def pack(self) -> bytes:
        """Encode the whole state as bytes."""
        for process, delivered in zip(self.processes, self.delivered, strict=True):
            process.delivered = delivered.tobytes()
        fields = {
            name: getattr(self, name).tobytes() if name in _ARRAYS else getattr(self, name)
            for name in _Packed.__struct_fields__
        }
        return msgspec.msgpack.encode(_Packed(**fields))

    @staticmethod
    def unpack(packed: bytes) -> LiveState:
        """Restore the state that `pack` encoded."""
        stored = msgspec.msgpack.decode(packed, type=_Packed)
        state = LiveState(stored.order, stored.allow)
        state.past_start = array("Q")
        for name in _Packed.__struct_fields__:
            if name in _ARRAYS:
                getattr(state, name).frombytes(getattr(stored, name))
            else:
                setattr(state, name, getattr(stored, name))
        for p, process in enumerate(state.processes):
            state.delivered.append(array(_UINT32, process.delivered))
            state.places[process.node, process.incarnation] = p
            insort(state.incarnations.setdefault(process.node, []), process.incarnation)
        for message in range(len(state.source)):
            state.ids[state.key_of(message)] = message
        return state
