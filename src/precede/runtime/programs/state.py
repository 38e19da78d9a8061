"""The settings of programs that run as nodes, their state, and what is counted."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from precede.core.identity import NodeId
from precede.core.instants import Duration
from precede.runtime.programs.observed import Broadcast, Observed
from precede.runtime.programs.program import Program

Watch: TypeAlias = Literal["deliver", "read"]
Fate: TypeAlias = Callable[[NodeId, NodeId], Duration | None]
"""Draws how long the next message from a node to another takes; None if it is lost."""


class Settings(Struct, frozen=True, kw_only=True):
    """How programs are run. `patience` is in seconds of the machine; `durable`: they keep their state."""

    command: Sequence[str]
    speed: float
    patience: float
    fate: Fate
    durable: bool = False
    watch: Watch = "deliver"


class Failure(Struct, frozen=True):
    """A program that was stopped, or stopped by itself, outside the plan."""

    node: str
    at_s: float
    cause: str


class Counts(Struct):
    """What happened, in numbers. `unlinked`, `cut` and `unread` messages were lost beside the `lost` ones."""

    broadcasts: int = 0
    refused: int = 0
    unsaid: int = 0
    deliveries: int = 0
    sent: int = 0
    carried: int = 0
    lost: int = 0
    unlinked: int = 0
    cut: int = 0
    unread: int = 0
    killed: int = 0
    restarted: int = 0
    late_us: int = 0


class Node:
    """The state of one node: its program while it runs, and the requests that it has not answered.

    `leaving` is a program whose input is closed, and when it is killed unless it has ended.
    """

    def __init__(self, place: NodeId, name: str, durable: bool) -> None:
        self.place = place
        self.name = name
        self.id = f"n{name}" if name.isdigit() else name
        self.program: Program | None = None
        self.leaving: tuple[Program, float] | None = None
        self.ready = False
        self.failed = False
        self.observed = Observed(name, durable)
        self.todo: deque[int] = deque()
        self.asked: dict[int, tuple[str, float, Broadcast | None]] = {}
        self.has: set[int] = set()
        self.in_flight = 0
