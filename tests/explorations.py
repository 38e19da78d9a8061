"""Runs the explorations of small worlds and prints one row of a table for each: states, seconds.

    python -m tests.explorations           the bounds that `make test` has, and a little more
    python -m tests.explorations --long    larger bounds; about half an hour
    python -m tests.explorations joining   those whose name has this word

`docs/reference/explorations.md` has the table. A broken invariant ends the run with the schedule that broke it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from precede.protocols import registry
from tests.protocols.drift2006 import founders, voters
from tests.protocols.explored import test_restarts_explored as restarts
from tests.protocols.explored import test_total_order_explored as total
from tests.protocols.explored import test_vcube_explored as vcube
from tests.protocols.explored.crash_stop import CrashStopExplorer
from tests.protocols.explored.total_order import TotalOrderExplorer
from tests.protocols.was2021.exploration import Explorer as HandoffExplorer
from tests.protocols.was2021.exploration_state import Bounds as HandoffBounds
from tests.runtime.links import test_handshake_explored as handshakes
from tests.runtime.links.handshakes import Explorer as HandshakeExplorer


class Row(NamedTuple):
    """An exploration. `run(most)` visits at most so many states in each world and returns how many."""

    name: str
    run: Callable[[int], int]
    most: int
    most_long: int


def handoffs(most: int) -> int:
    count = 0
    for bounds in (HandoffBounds(sessions=4, acks=1), HandoffBounds(sessions=3, crashes=1, acks=1)):
        report = HandoffExplorer(bounds, most=most).run()
        assert not report.broken, report.broken
        assert not report.stuck
        count += report.states
    return count


def layered(most: int) -> int:
    bounds: tuple[Any, ...] = ((2, 1), 1, 2)
    return sum(restarts.explorer(*pair, *bounds, heal_every=8).explore(most) for pair in restarts.PAIRS)


def diagnosis(most: int) -> int:
    entry = registry.find("vcube")
    worlds = [CrashStopExplorer(entry, vcube.OPTIONS, heal_every=100, **bounds) for bounds in vcube.SMALL]
    return sum(world.explore(most) for world in worlds)


def votes(most: int) -> int:
    bounds: list[dict[str, Any]] = [{"leads": 2, "crashes": 1}, {"holds": (1, 2, 0), "sent": 2, "leads": 2}]
    return sum(voters.Explorer(**each).explore(most) for each in bounds)


def ballots(most: int) -> int:
    bounds: list[dict[str, Any]] = [{"leads": 2}, {"leads": 1, "crashes": 2}]
    return sum(founders.Explorer(**each).explore(most, recover_every=500) for each in bounds)


def deviations(*names: str) -> Callable[[int], int]:
    """Each deviation of these worlds; with fewer states only each so manyth."""

    def run(every: int) -> int:
        return sum(total.deviations(total.WORLDS[name]).explore_deviations(1, every) for name in names)

    return run


def after_a_removal(is_long: int) -> int:
    """Each crash, or with larger bounds each deviation, after a view has removed the newcomer."""
    kinds = {} if is_long else {"kinds_tried": ("crash",)}
    return total.deviations(total.ONE_JOINS_TWO, **kinds).explore_after_cut(2, 1)


def breadth_first(world: dict[str, Any]) -> Callable[[int], int]:
    def run(most: int) -> int:
        explorer = TotalOrderExplorer(registry.find("drift"), **world, timers=2, crashes=1, heal_every=50)
        return explorer.explore(most)

    return run


def shaking_hands(most: int) -> int:
    return sum(HandshakeExplorer(**world, heal_every=50).explore(most) for world in handshakes.LARGE)


ROWS = [
    Row("handoff (WAS)", handoffs, 10_000_000, 10_000_000),
    Row("restarts of layered orders", layered, 1_000, 20_000),
    Row("diagnosis and joins (VCube)", diagnosis, 1_500, 20_000),
    Row("vote on the next view (DRIFT)", votes, 10_000, 200_000),
    Row("ballots of founders (DRIFT)", ballots, 10_000, 200_000),
    Row("joining, each deviation", deviations("one joins two", "one joins three", "two join two"), 9, 1),
    Row("joining again after a removal", after_a_removal, 0, 1),
    Row("joining, breadth first", breadth_first(total.ONE_JOINS_TWO), 2_000, 30_000),
    Row("founding, each deviation", deviations("three found", "three found and one joins"), 9, 1),
    Row("founding, breadth first", breadth_first(total.THREE_FOUND), 2_000, 30_000),
    Row("handshake of the links", shaking_hands, 3_000, 100_000),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("words", nargs="*", help="only explorations whose name has one of these words")
    parser.add_argument("--long", action="store_true", help="larger bounds")
    options = parser.parse_args()
    print("| exploration | states | CPU seconds | broken |\n| --- | --- | --- | --- |", flush=True)
    for row in ROWS:
        if options.words and not any(word in row.name for word in options.words):
            continue
        began = time.process_time()
        states = row.run(row.most_long if options.long else row.most)
        print(f"| {row.name} | {states:,} | {time.process_time() - began:.0f} | 0 |", flush=True)


if __name__ == "__main__":
    main()
