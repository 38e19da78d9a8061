"""The experiments of sections 5 and 6 of drift2006: `experiments.toml` as points, a point and a seed as a run.

A run is simulated with TOF observed in parallel, verified, and measured from its rows (`measures.py`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from precede.core.instants import SECOND, Instant
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.experiments.tables import read_toml
from precede.reproduction.drift2006.backbones import Backbone, backbone_of
from precede.reproduction.drift2006.measures import Rows, Window, measure_floods, measure_latencies
from precede.reproduction.units import ENGINE, Finding, Unit, expand, finding_about, seeds_of, unit_of
from precede.sim.networks.motion import scattered_connected
from precede.sim.randomness import Generators
from precede.witness.verify import verify

FIELD: Final = 400.0
REACH: Final = 88.0
SPACING: Final = 70.0
FLOODS: Final = 1000
GRID_SIDE: Final = 10
ORIGINATORS: Final = {"centre": (55,), "origin": (0,), "two": (0, 99), "four": (0, 9, 90, 99)}
"""The nodes that send in each grid experiment.

Figure 6 has the central source at [350, 350], which is column 5 and row 5; the text has it at [315, 315].
"""

_MOTES: Final = (5, 6, 9, 10)
_AFTER: Final = 10 * SECOND
"""How long a run continues after the last broadcast; a flood takes milliseconds."""


class Point(Struct, frozen=True):
    """One point of one experiment. `layout`: field, grid (one flood a second) or motes."""

    experiment: str
    nodes: int = 100
    base_rate: float = 100.0
    rate_delay: float = 0.0
    messages: int = 15
    start: str = "uniform"
    sources: int | None = None
    mobile: str = "none"
    speed: float = 0.0
    limit: int | None = None
    policy: str = "least_sent"
    layout: str = "field"
    originators: str = ""
    floods: int = FLOODS
    collisions: bool = False
    backbone: Backbone = "all"

    def senders(self) -> tuple[int, ...]:
        if self.layout == "grid":
            return ORIGINATORS[self.originators]
        if self.layout == "motes":
            return _MOTES
        return tuple(range(self.nodes if self.sources is None else self.sources))

    def intervals(self) -> list[float]:
        return [self.base_rate + place * self.rate_delay for place in range(len(self.senders()))]

    def run(self, seed: int) -> Run:
        """Describe one simulation of this point."""
        return Run(
            world=self._world(),
            workload=self._workload(),
            protocol="drift",
            options={
                "sources": "all" if self.layout == "grid" else " ".join(map(str, self.senders())),
                "quiet": "0s",
                "beacon": "0s",
                "shadow": self.layout != "grid",
                "policy": self.policy,
                **self._relays(seed),
                **({} if self.limit is None else {"limit": self.limit}),
            },
            seed=seed,
            end=f"{self.last_birth() / SECOND + _AFTER / SECOND}s",
            gauges="none",
            log="messages",
        )

    def _relays(self, seed: int) -> dict[str, str]:
        """Return the option that names the relaying nodes, by the places that this seed draws."""
        if self.backbone == "all":
            return {}
        side_m = FIELD * (self.nodes / 100) ** 0.5
        places = scattered_connected(self.nodes, side_m, side_m, REACH, Generators(seed))
        return {"backbone": backbone_of(self.backbone, places, REACH)}

    def hop_delay(self) -> str:
        """Return how long a transmission takes besides its bytes, in seconds."""
        return "uniform(0.001, 0.005)"

    def radio_reach(self) -> float:
        return REACH

    def last_birth(self) -> Instant:
        if self.layout == "grid":
            return self.floods * SECOND
        return round(self.messages * max(self.intervals()) * SECOND)

    def _world(self) -> dict[str, Any]:
        world: dict[str, Any] = {
            "kind": "flood",
            "reach": self.radio_reach(),
            "delay": self.hop_delay(),
            "bandwidth": 125_000,
            "collisions": self.collisions,
        }
        if self.layout != "field":
            side = GRID_SIDE if self.layout == "grid" else 4
            return {**world, "grid": [side, side], "spacing": SPACING}
        side_m = FIELD * (self.nodes / 100) ** 0.5
        world |= {"nodes": self.nodes, "field": [side_m, side_m]}
        if self.mobile != "none" and self.speed:
            world |= {
                "speed": self.speed,
                "mobile": self.nodes if self.mobile == "all" else len(self.senders()),
            }
        return world

    def _workload(self) -> dict[str, Any]:
        """Return the workload table: a script on the grid, otherwise relative rates and their mean interval."""
        senders = self.senders()
        if self.layout == "grid":
            script = [{"src": str(senders[k % len(senders)]), "at": f"{k + 1}s"} for k in range(self.floods)]
            return {"script": script, "size": 128}
        by_node = dict(zip(senders, self.intervals(), strict=True))
        rates = [1 / by_node.get(node, self.base_rate) for node in range(max(senders) + 1)]
        every = len(rates) / sum(rates)
        within = every if self.start == "uniform" else every / 1000
        return {
            "every": f"constant({every!r})",
            "first": f"uniform(0, {within!r})",
            "rates": rates,
            "sources": [str(node) for node in senders],
            "until": f"{self.last_birth() / SECOND}s",
            "size": 128,
        }

    def window(self) -> Window:
        """Return the window of broadcasts that are measured."""
        if self.layout == "grid":
            return Window(0, (self.floods - 2 * GRID_SIDE * 2) * SECOND)
        slowest = round(max(self.intervals()) * SECOND)
        return Window(slowest, self.last_birth() - slowest)


class SlowPoint(Point, frozen=True):
    """A point whose hops take another time than ours: the paper does not give it."""

    hop: str = ""

    def hop_delay(self) -> str:
        return self.hop


class FarPoint(Point, frozen=True):
    """A point whose radios reach so far that moving nodes are hardly ever cut off."""

    reach: float = REACH

    def radio_reach(self) -> float:
        return self.reach


def _point(given: Mapping[str, Any]) -> Point:
    kind = SlowPoint if "hop" in given else FarPoint if "reach" in given else Point
    return msgspec.convert(given, kind)


def units(folder: Path, scale: str, more: bool = False) -> list[Unit]:
    quick = scale == "quick"
    tables, _ = read_toml(folder / "experiments.toml")
    return [
        unit_of("drift2006", point, seed)
        for name, table in tables["experiment"].items()
        for point in expand(name, table, quick, _point)
        for seed in seeds_of(tables, table["quick_runs" if quick else "runs"], more)
    ]


def runs(unit: Unit) -> list[Run]:
    return [_point(unit.given).run(unit.seed)]


def measure(unit: Unit) -> Finding:
    return measure_run(_point(unit.given), unit.seed)


def measure_run(point: Point, seed: int) -> Finding:
    """Carry out one run of a point, verified and measured. Raises `Slower` if TOVF was ever later than TOF."""
    sink = TableSink()
    outcome = carry_out(point.run(seed), sink)
    log = sink.events()
    verdict = verify(log, "total", engine=ENGINE)
    rows = Rows(log)
    if point.layout == "grid":
        measures = measure_floods(rows, point.window(), ORIGINATORS[point.originators], GRID_SIDE)
    else:
        measures = measure_latencies(rows, point.window())
    measures["cpu_s"] = outcome.cpu_s
    return finding_about(measures, verdict)
