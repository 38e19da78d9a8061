"""The state of the live verifier for one run: rows that wait, messages and deliveries counted so far.

The state is kept in *pieces*: one for the run, two for each process, and for every block of messages one with
the messages and one for each process that delivered some of them. `changes` gives the pieces that changed since
it was called last, so that only these are written; `restore` makes a state of pieces.
"""

from __future__ import annotations

from array import array
from bisect import insort
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from precede.witness.history import name_message, name_process
from precede.witness.live.ranges import Numbers, Ranks
from precede.witness.verdict import Order

Key: TypeAlias = tuple[str, int, int]
"""A message: the node that broadcast it, the node's incarnation, the message's number."""

BLOCK: Final = 256
"""The number of messages in a block."""

_CONFLICTS_KEPT: Final = 20
_UINT32: Final = "I"


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


class Message(Struct, array_like=True, gc=False):
    """One message: its source (a process), its rank among the source's broadcasts, the step of the broadcast.

    `past` has pairs of a source and a rank, as the bytes of 32-bit numbers; `clock` is the source's at the
    broadcast.
    """

    source: int
    rank: int
    born: int
    number: int
    past: bytes
    deadline: int | None
    to: list[str] | None
    clock: int | None

    def entries(self) -> Iterator[tuple[int, int]]:
        """The last message of each source in the message's past, as pairs of the source and a rank."""
        numbers = array(_UINT32, self.past)
        return zip(numbers[::2], numbers[1::2], strict=True)


class Process(Struct):
    """One incarnation of a node, as far as its rows have arrived.

    `expected` is the next step; `began` says that its first step is known, which is `first`, and `started` that
    it has a row `started`; `closed` that its last row is `left`. `held` has rows by step that wait for earlier
    ones, `queue` the contiguous rows that are not counted yet, `waits` the message whose broadcast the first of
    them waits for. `clock` has the rank of the last message of each source in the process's past, `taken`
    counts its deliveries. `early` and `odd` remember rows that broke a rule; steps below `unchecked` are no
    longer compared with repeated rows. `sees` is the last step of other processes (for total order), `lowest`
    and `last_number` are its first and last message. `doubtful` has ranges of numbers whose broadcasts may be
    among rows that never came.

    `forgotten` are the numbers and ranks of its own forgotten messages (see `witness/live/forget.py`).
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
    taken: int = 0
    last_number: int | None = None
    early: list[Key] = []
    odd: dict[int, Key] = {}
    unchecked: int = 0
    sees: dict[int, int] = {}
    first: int = 0
    started: bool = False
    closed: bool = False
    lowest: int | None = None
    doubtful: list[tuple[int, int]] = []
    forgotten: Numbers = msgspec.field(default_factory=Numbers)

    @property
    def name(self) -> str:
        return name_process(self.node, self.incarnation)


class Missed(Struct):
    """What a process had not delivered of the forgotten messages: their ranks, by source.

    `barred` are those of them that were not addressed to it.
    """

    skipped: dict[int, Ranks] = {}
    barred: dict[int, Ranks] = {}


class RunFacts(Struct):
    """The piece of the state that is about the whole run.

    `counts` has the violations by kind, `conflicts` rows that contradict each other or could not be judged.
    Messages have numbers in the order of their broadcasts; there were `messages`, and the first `forgotten` of
    them were forgotten. The latest of their deadlines is `last_deadline`; `undated` says that one of them had
    none, `addressed` that one had destinations. `newest` is the latest clock of any row.
    """

    order: Order
    allow: bool
    block: int = BLOCK
    rows: int = 0
    deliveries: int = 0
    counts: dict[str, int] = {}
    conflicts: list[str] = []
    messages: int = 0
    forgotten: int = 0
    last_deadline: int | None = None
    undated: bool = False
    addressed: bool = False
    newest: int | None = None
    clock_missing: bool = False
    timed: bool = False


class LiveState:
    """Everything that the live verifier knows about one run.

    `delivered[p]` has for process p, by block, the step + 1 at which it delivered each message, or 0.
    """

    def __init__(self, facts: RunFacts) -> None:
        self.facts = facts
        self.processes: list[Process] = []
        self.missed: list[Missed] = []
        self.delivered: list[dict[int, array[int]]] = []
        self.messages: dict[int, Message] = {}
        self.places: dict[tuple[str, int], int] = {}
        self.ids: dict[Key, int] = {}
        self.incarnations: dict[str, list[int]] = {}
        self.changed: dict[str, None] = {}

    @property
    def order(self) -> Order:
        return self.facts.order

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
            skipped = {
                source: Ranks([(1, other.forgotten.rank)])
                for source, other in enumerate(self.processes)
                if other.forgotten.rank
            }
            place = self._add(Process(node, incarnation), Missed(skipped))
            self.changed[f"s{place}"] = None
        self.changed[f"p{place}"] = None
        return place

    def _add(self, process: Process, missed: Missed) -> int:
        place = self.places[process.node, process.incarnation] = len(self.processes)
        insort(self.incarnations.setdefault(process.node, []), process.incarnation)
        self.processes.append(process)
        self.missed.append(missed)
        self.delivered.append({})
        return place

    def add_message(self, key: Key, message: Message) -> None:
        """Add a message that was broadcast."""
        number = self.ids[key] = self.facts.messages
        self.messages[number] = message
        self.facts.messages += 1
        self.changed[f"m{number // self.facts.block}"] = None

    def delivered_at(self, p: int, message: int) -> int:
        """Return the step + 1 at which process p delivered a message; 0 if it has not."""
        block = self.delivered[p].get(message // self.facts.block)
        return 0 if block is None else block[message % self.facts.block]

    def deliver(self, p: int, message: int, step: int) -> None:
        """Remember at which step process p delivered a message."""
        number, place = divmod(message, self.facts.block)
        block = self.delivered[p].get(number)
        if block is None:
            block = self.delivered[p][number] = array(_UINT32, bytes(4 * self.facts.block))
        block[place] = step + 1
        self.changed[f"d{p}.{number}"] = None

    def deliveries_of(self, p: int) -> Iterator[tuple[int, int]]:
        """The messages that process p delivered, as pairs of step + 1 and message; not the forgotten ones."""
        for number, block in self.delivered[p].items():
            yield from ((at, number * self.facts.block + place) for place, at in enumerate(block) if at)

    def drop_block(self, number: int) -> None:
        """Remove a block of messages, with the deliveries of all processes."""
        for message in range(number * self.facts.block, (number + 1) * self.facts.block):
            if message in self.messages:
                del self.ids[self.key_of(message)]
                del self.messages[message]
        self.changed[f"m{number}"] = None
        for p, blocks in enumerate(self.delivered):
            if blocks.pop(number, None) is not None:
                self.changed[f"d{p}.{number}"] = None

    def forgotten_rank(self, key: Key) -> int | None:
        """Return the rank of a forgotten message, 0 if it is no longer known; None if it was not forgotten."""
        place = self.places.get(key[:2])
        return None if place is None else self.processes[place].forgotten.rank_of(key[2])

    def key_of(self, message: int) -> Key:
        process = self.processes[self.messages[message].source]
        return process.node, process.incarnation, self.messages[message].number

    def message_name(self, message: int) -> str:
        return name_message(*self.key_of(message))

    def conflict(self, process: Process, cause: str) -> None:
        """Remember, once, why rows of a process cannot be judged; only the first causes are kept."""
        text = f"node {process.name}: {cause}"
        if len(self.facts.conflicts) < _CONFLICTS_KEPT and text not in self.facts.conflicts:
            self.facts.conflicts.append(text)

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

    def pieces(self) -> dict[str, bytes]:
        """Encode the whole state."""
        names = ["run", *(f"{kind}{p}" for kind in "ps" for p in range(len(self.processes)))]
        names += dict.fromkeys(f"m{message // self.facts.block}" for message in self.messages)
        names += [f"d{p}.{number}" for p, blocks in enumerate(self.delivered) for number in blocks]
        return {name: piece for name in names if (piece := self._piece(name)) is not None}

    def changes(self) -> dict[str, bytes | None]:
        """Encode the pieces that changed since the last call; None is a piece that was removed."""
        names = ["run", *self.changed]
        self.changed = {}
        return {name: self._piece(name) for name in names}

    def _piece(self, name: str) -> bytes | None:
        value: Any
        if name == "run":
            value = self.facts
        elif name[0] == "p":
            value = self.processes[int(name[1:])]
        elif name[0] == "s":
            value = self.missed[int(name[1:])]
        elif name[0] == "m":
            first = int(name[1:]) * self.facts.block
            numbers = range(first, first + self.facts.block)
            value = [(number, self.messages[number]) for number in numbers if number in self.messages]
        else:
            p, _, number = name[1:].partition(".")
            block = self.delivered[int(p)].get(int(number))
            return None if block is None else block.tobytes()
        return msgspec.msgpack.encode(value) if value else None

    @staticmethod
    def restore(pieces: Mapping[str, bytes]) -> LiveState:
        """Make the state that these pieces describe."""
        state = LiveState(msgspec.msgpack.decode(pieces["run"], type=RunFacts))
        for place in range(sum(name[0] == "p" for name in pieces)):
            process = msgspec.msgpack.decode(pieces[f"p{place}"], type=Process)
            state._add(process, msgspec.msgpack.decode(pieces[f"s{place}"], type=Missed))
        messages: list[tuple[int, Message]] = []
        for name, piece in pieces.items():
            if name[0] == "m":
                messages += msgspec.msgpack.decode(piece, type=list[tuple[int, Message]])
            elif name[0] == "d":
                p, _, number = name[1:].partition(".")
                state.delivered[int(p)][int(number)] = array(_UINT32, piece)
        state.messages = dict(sorted(messages))
        state.ids = {state.key_of(message): message for message in state.messages}
        return state
