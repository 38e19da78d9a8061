"""The mobility generators that a world of contacts can name, and the keys that each of them has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from precede.core.errors import BadInput
from precede.core.instants import SECOND
from precede.experiments.tables import Table
from precede.traces.contacts import ContactList
from precede.traces.mobility import Mobility

if TYPE_CHECKING:
    from precede.experiments.worlds.contacts import ContactsTable
    from precede.traces.walks import Walkers

GeneratorName: TypeAlias = Literal[
    "city-bus",
    "pedestrians",
    "random-waypoint",
    "random-walk",
    "gauss-markov",
    "street-waypoint",
    "working-day",
]
_ALL: Final = ("generator_seed", "range")
_WALK: Final = (*_ALL, "nodes", "duration", "field", "speed")
_STREETS: Final = ("streets", "blocks")
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "city-bus": (*_ALL, "layout", "buses"),
    "pedestrians": (*_ALL, "layout", "duration", "rate"),
    "random-waypoint": (*_WALK, "pause"),
    "random-walk": (*_WALK, "leg"),
    "gauss-markov": (*_WALK, "alpha", "step"),
    "street-waypoint": (*_WALK, *_STREETS, "pause"),
    "working-day": (*_WALK, *_STREETS, "offices", "spots"),
}
RANGE_M: Final = {"city-bus": 200.0, "pedestrians": 50.0}
_USUAL_RANGE_M: Final = 30.0
_MOST_PEDESTRIANS: Final = 100_000


def generated(world: ContactsTable, table: Table, seed: int, range_m: float | None) -> ContactList:
    """Return the contacts of generated movement within a range; None is the generator's usual range."""
    seed = seed if world.generator_seed is None else world.generator_seed
    name = str(world.generator)
    range_m = RANGE_M.get(name, _USUAL_RANGE_M) if range_m is None else range_m
    try:
        return mobility(world, table, seed).contacts(range_m)
    except BadInput as error:
        raise (
            error if str(error).startswith(table.file or "\0") else table.wrong("generator", str(error))
        ) from None


def mobility(world: ContactsTable, table: Table, seed: int) -> Mobility:
    """Return the movement that a world's generator makes from a seed."""
    from precede.traces import city_bus, pedestrians, walks

    if world.generator == "city-bus":
        return city_bus.city_bus(seed, world.layout, world.buses)
    if world.generator == "pedestrians":
        if world.rate * world.duration / SECOND > _MOST_PEDESTRIANS:
            most = f"more than {_MOST_PEDESTRIANS:,} pedestrians would enter at each entrance"
            raise table.wrong("rate", most)
        return pedestrians.pedestrians(seed, world.layout, world.duration, world.rate)
    if not isinstance(world.nodes, int):
        raise table.lacks(f"'nodes', a number, with the generator {world.generator}")
    walkers = walks.Walkers(
        nodes=world.nodes, duration=world.duration, field=world.field, speed=world.speed, pause=world.pause
    )
    if world.generator == "random-waypoint":
        return walks.random_waypoint(seed, walkers)
    if world.generator == "random-walk":
        return walks.random_walk(seed, walkers, world.leg)
    if world.generator == "gauss-markov":
        return walks.gauss_markov(seed, walkers, world.alpha, world.step)
    return _on_streets(world, seed, walkers)


def _on_streets(world: ContactsTable, seed: int, walkers: Walkers) -> Mobility:
    from precede.traces import streets

    if world.streets is not None:
        graph = streets.read_streets(world.streets)
    else:
        columns, rows = (int(count) for count in world.blocks)
        graph = streets.street_grid(columns, rows, world.field)
    if world.generator == "street-waypoint":
        return streets.street_waypoint(seed, walkers, graph)
    return streets.working_day(seed, walkers, graph, world.offices, world.spots)
