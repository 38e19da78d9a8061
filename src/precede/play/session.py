"""A session: one scenario and seed, played twice side by side, with the chosen order and without."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final, Literal

from precede.core.errors import BadInput
from precede.core.instants import Duration, Instant
from precede.experiments.run import Run
from precede.play.baseline import without_order
from precede.play.frames import SideFrames
from precede.play.judge import Judge
from precede.play.places import places_of
from precede.play.record import MOST_INPUTS, Input, Record, check_input
from precede.play.side import Side
from precede.protocols import registry
from precede.sim.world import FOREVER
from precede.witness.verdict import Order, read_order

SideName = Literal["unordered", "ordered"]
SIDES: Final[tuple[SideName, SideName]] = ("unordered", "ordered")
MOST_NODES: Final = 500
_SLICES: Final = 20
_PATIENCE_S: Final = 0.25


class Session:
    """Two worlds with one scenario, seed and list of inputs. `record` is everything that was done to them."""

    def __init__(self, run: Run, title: str = "") -> None:
        self.run = run
        self.title = title or Path(run.scenario).name
        self.order = order_of(run)
        self.inputs: list[Input] = []
        self.effective: list[Input] = []
        """The inputs that did something in the world with order."""
        self.ordered = side_of(run, "ordered")
        if len(self.ordered.names) > MOST_NODES:
            raise BadInput(
                f"{run.scenario}: {len(self.ordered.names):,} nodes; play shows at most {MOST_NODES}"
            )
        self.sides: dict[SideName, Side] = {"unordered": side_of(run, "unordered"), "ordered": self.ordered}
        self.frames = {
            name: SideFrames(side, Judge(self.order, allow_duplicates=name == "unordered"))
            for name, side in self.sides.items()
        }
        self.places = places_of(run, self.ordered.prepared.built.network, self.ordered.names)
        self.advance(0)

    @property
    def now(self) -> Instant:
        return self.ordered.now

    @property
    def ended(self) -> bool:
        return self.now >= self.ordered.end

    def record(self) -> Record:
        return Record(end_us=self.now, inputs=tuple(self.inputs))

    def advance(self, by: Duration) -> None:
        """Let time pass in both worlds. A world that needs long stops earlier: ask again."""
        begin = self.now
        until = min(begin + by, self.ordered.end)
        deadline = time.monotonic() + _PATIENCE_S
        for part in range(1, _SLICES + 1):
            instant = begin + (until - begin) * part // _SLICES
            for side in self.sides.values():
                side.advance(instant)
            if time.monotonic() > deadline:
                break

    def advance_to(self, instant: Instant) -> None:
        """Let time pass until an instant, however long that takes."""
        for side in self.sides.values():
            side.advance(instant)

    def apply(self, item: Input) -> list[str]:
        """Give both worlds an input now and record it. Return why nothing happened, for each world where so."""
        check_input(item, self.ordered.ids)
        if item.at_us != self.now:
            raise BadInput(f"an input at {item.at_us} us, but it is {self.now} us")
        if len(self.inputs) >= MOST_INPUTS:
            raise BadInput(f"at most {MOST_INPUTS:,} inputs")
        reasons = {name: side.apply(item) for name, side in self.sides.items()}
        self.inputs.append(item)
        if not reasons["ordered"]:
            self.effective.append(item)
        return list(dict.fromkeys(why for why in reasons.values() if why))

    def hello(self) -> dict[str, Any]:
        """Return what a page must know before the first frame."""
        built = self.ordered.prepared.built
        return {
            "title": self.title,
            "protocol": self.run.protocol,
            "about": registry.find(self.run.protocol).title,
            "order": self.order,
            "seed": self.run.seed,
            "kind": self.run.world["kind"],
            "nodes": list(self.ordered.names),
            "roles": [built.role(node) for node in range(len(built.names))],
            "speakers": list(built.all_sources()),
            "end": None if self.ordered.end >= FOREVER else self.ordered.end,
            "moves": self.places.moves,
        }

    def frame(self) -> dict[str, Any]:
        """Return what happened since the last frame in both worlds, and how things are now."""
        places = [None if place is None else _rounded(place) for place in self.places.at(self.now)]
        in_range = self.places.links(self.now)
        return {
            "now": self.now,
            "ended": self.ended,
            "places": places,
            "sides": {name: frames.frame(in_range) for name, frames in self.frames.items()},
        }


def side_of(run: Run, name: SideName, sink: Any = None) -> Side:
    """Return one side of a played run in which nothing has happened yet."""
    if name == "ordered":
        return Side(run, sink=sink)
    plain, entry = without_order(run)
    return Side(plain, entry, sink)


def order_of(run: Run) -> Order:
    """Return the order that both sides are judged by: what the protocol promises, or causal if nothing."""
    promised = registry.find(run.protocol).order
    return "causal" if promised == "none" else read_order(promised)


def _rounded(place: tuple[float, float]) -> tuple[float, float]:
    return round(place[0], 3), round(place[1], 3)
