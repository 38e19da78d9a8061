"""Joins the trips of a feed without blocks into vehicles.

A vehicle that ends a trip waits at the terminus. The next trip that begins there, within `NEAR_M` of it and
`LONGEST_WAIT` after it, takes the vehicle that has waited longest. Any other trip takes a new vehicle, which
has the name of its first trip. Such a feed does not say which vehicle drives which trip, so this is an
assumption; the summary counts the trips that were joined by it.
"""

from collections.abc import Mapping
from math import floor, hypot
from typing import Final, NamedTuple

from precede.core.instants import HOUR
from precede.traces.formats.gtfs_motion import Anchor

NEAR_M: Final = 150.0
LONGEST_WAIT: Final = HOUR


class TripEnds(NamedTuple):
    """The first and the last call of a trip."""

    first: Anchor
    last: Anchor


def chained(trips: Mapping[str, TripEnds]) -> dict[str, str]:
    vehicles: dict[str, str] = {}
    waiting: dict[tuple[int, int], list[str]] = {}
    by_end = sorted(trips, key=lambda trip: (trips[trip].last.departure, trip))
    ended = 0
    for trip in sorted(trips, key=lambda trip: (trips[trip].first.arrival, trip)):
        first = trips[trip].first
        while ended < len(by_end) and trips[by_end[ended]].last.departure <= first.arrival:
            waiting.setdefault(_cell(trips[by_end[ended]].last), []).append(by_end[ended])
            ended += 1
        before = _longest_waiting(trips, waiting, first)
        if before is not None:
            waiting[_cell(trips[before].last)].remove(before)
        vehicles[trip] = trip if before is None else vehicles[before]
    return vehicles


def _longest_waiting(
    trips: Mapping[str, TripEnds], waiting: Mapping[tuple[int, int], list[str]], first: Anchor
) -> str | None:
    """Return the trip whose vehicle waits longest near the start of another trip; None if there is none."""
    column, row = _cell(first)
    near = []
    for cell in ((column + across, row + up) for across in (-1, 0, 1) for up in (-1, 0, 1)):
        for trip in waiting.get(cell, ()):
            last = trips[trip].last
            soon = first.arrival - last.departure <= LONGEST_WAIT
            if soon and hypot(last.x - first.x, last.y - first.y) <= NEAR_M:
                near.append((last.departure, trip))
    return min(near)[1] if near else None


def _cell(anchor: Anchor) -> tuple[int, int]:
    """Return the square of the map in which a vehicle's stop lies; near ones share it or an adjacent one."""
    return floor(anchor.x / NEAR_M), floor(anchor.y / NEAR_M)
