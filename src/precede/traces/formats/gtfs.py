"""Reads GTFS: the motion of all vehicles on one service day. Instants count from midnight of that day.

A vehicle is a `block_id`, else a trip; `chain` joins trips without a block. `calendar` and `calendar_dates` say
which services run on a day; without `--date` the first day with the most trips is chosen. Times past 24:00:00
belong to the same service day. Vehicles follow `shapes`, else they go straight between stops; between the trips
of a block they stand. A stop far outside the feed (such as a latitude in the longitude column) is rejected;
vehicles pass its calls without stopping, and that is noted. Trips of a block that overlap are an error of the
feed: the later one is rejected with its calls.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np

from precede.core.errors import BadInput
from precede.files.lines import BadRow, name_of
from precede.files.rejects import Reject
from precede.traces.formats.gtfs_chain import TripEnds, chained
from precede.traces.formats.gtfs_feed import (
    MAX_HELD,
    Call,
    Feed,
    Services,
    Stop,
    Trip,
    calendar_day,
    read_calls,
    read_stops,
)
from precede.traces.formats.gtfs_motion import Anchor, Leg, Shape, layover, trip_legs
from precede.traces.geography import Projection, degrees
from precede.traces.lines import number
from precede.traces.records import Nodes, Row, SegmentRow, Summary


def read_gtfs(path: str | Path, summary: Summary, day: str | None = None, chain: bool = False) -> Iterator[Row]:
    """Yields the segments of all vehicles of a day, and rejects. `chain` joins trips without a block."""
    feed = Feed(Path(path))
    feed.require("trips.txt", "stops.txt", "stop_times.txt")
    services = Services(feed, summary)
    yield from services.rejects
    counts: Counter[str] = Counter(
        row.get("service_id", "") for _, row in feed.rows("trips.txt", Summary("", ""), "trip_id", "service_id")
    )
    chosen = _day(services, counts, day, feed)
    trips, others, unusable = _trips(feed, summary, services.on(chosen))
    yield from unusable
    stops, strays, projection, unusable = read_stops(feed, summary)
    yield from unusable
    yield from read_calls(feed, summary, trips, others, stops, strays)
    shapes, unusable = _shapes(feed, summary, {trip.shape for trip in trips.values()}, projection)
    yield from unusable
    summary.facts["service day"] = chosen.isoformat()
    summary.facts["centre"] = f"{projection.latitude:.4f}, {projection.longitude:.4f}"
    if any(True for _ in feed.rows("frequencies.txt", Summary("", ""))):
        summary.note("tables passed over: frequencies.txt (its trips run once, as stop_times.txt has them)")
    if chain:
        _chain(trips, stops, summary)
    yield from _vehicles(trips, stops, shapes, summary)


def _chain(trips: dict[str, Trip], stops: dict[str, Stop], summary: Summary) -> None:
    """Give trips without a block to vehicles that are free where they begin, and count them in the summary."""
    ends = {}
    for trip in trips.values():
        if trip.vehicle != trip.id:
            continue
        try:
            anchors = _anchors(list(trip.calls), stops, Summary("", ""))
        except BadRow:
            continue  # _vehicles rejects the trip
        ends[trip.id] = TripEnds(anchors[0], anchors[-1])
    vehicles = chained(ends)
    for trip_id, vehicle in vehicles.items():
        trips[trip_id].vehicle = vehicle
    joined = sum(1 for trip_id, vehicle in vehicles.items() if trip_id != vehicle)
    summary.note("trips without a block, joined to an earlier trip at its terminus", joined)


def _day(services: Services, trips: Counter[str], day: str | None, feed: Feed) -> date:
    """Return the service day: the requested one, else the busiest; raises BadInput if it has no trips."""
    span = services.span()
    if day is None and span is None:
        raise BadInput(f"{feed.path}: no day in calendar.txt or calendar_dates.txt")
    covered = f"the feed covers {f'{span[0]} to {span[1]}' if span else 'no day'}"
    if day is None:
        chosen = services.busiest(trips)
        if chosen is None:
            raise BadInput(f"{feed.path}: no trips on any day ({covered})")
        return chosen
    try:
        chosen = calendar_day(day)
    except BadRow as error:
        raise BadInput(f"--date: {error} (write 2016-09-19)") from error
    if not any(trips[service] for service in services.on(chosen)):
        raise BadInput(f"{feed.path}: no trips on {chosen} ({covered})")
    return chosen


def _trips(
    feed: Feed, summary: Summary, running: frozenset[str]
) -> tuple[dict[str, Trip], set[str], list[Reject]]:
    """Return the trips of the day, the ids of all other trips, and the rejects."""
    trips: dict[str, Trip] = {}
    others: set[str] = set()
    rejects: list[Reject] = []
    for line, row in feed.rows("trips.txt", summary, "trip_id", "service_id"):
        try:
            name = name_of(row.get("trip_id", ""))
            if name in trips or name in others:
                raise BadRow(f"a second trip with this id: {name}")
            block = row.get("block_id", "")
            vehicle = name_of(block or name)
        except BadRow as error:
            rejects.append(summary.reject(line, str(error), "trips.txt"))
            continue
        summary.rows_kept += 1
        if row.get("service_id", "") in running:
            trips[name] = Trip(name, line, vehicle, row.get("shape_id", ""))
        else:
            others.add(name)
        if len(trips) + len(others) > MAX_HELD:
            raise BadInput(f"{feed.path}: more than {MAX_HELD:,} trips")
    if others:
        summary.note("trips of other days, not needed", len(others))
    return trips, others, rejects


def _shapes(
    feed: Feed, summary: Summary, shape_ids: set[str], projection: Projection
) -> tuple[dict[str, Shape], list[Reject]]:
    """Return the shapes that trips of the day follow, and the rejects."""
    points: dict[str, list[tuple[float, float, float, float | None]]] = {}
    rejects: list[Reject] = []
    held = 0
    columns = ("shape_id", "shape_pt_lat", "shape_pt_lon", "shape_pt_sequence")
    for line, row in feed.rows("shapes.txt", summary, *columns):
        name = row.get("shape_id", "")
        try:
            latitude, longitude = degrees(row.get("shape_pt_lat", ""), row.get("shape_pt_lon", ""))
            sequence = number(row.get("shape_pt_sequence", ""), "shape_pt_sequence")
            along = row.get("shape_dist_traveled", "")
            distance = number(along, "shape_dist_traveled") if along else None
            place = projection.place(latitude, longitude)
        except BadRow as error:
            rejects.append(summary.reject(line, str(error), "shapes.txt"))
            continue
        summary.rows_kept += 1
        if name not in shape_ids:
            summary.note("points of shapes of other days, not needed")
            continue
        held += 1
        if held > MAX_HELD:
            raise BadInput(f"{feed.path}: more than {MAX_HELD:,} points of shapes on one day")
        points.setdefault(name, []).append((sequence, *place, distance))
    return {name: shape for name, held_points in points.items() if (shape := _shape(held_points))}, rejects


def _shape(points: list[tuple[float, float, float, float | None]]) -> Shape | None:
    """Return a shape from points (sequence, x, y, distance); None for fewer than two."""
    if len(points) < 2:
        return None
    points.sort(key=lambda point: point[0])
    xs, ys = np.array([p[1] for p in points]), np.array([p[2] for p in points])
    measured = [p[3] for p in points if p[3] is not None]
    along = np.array(measured) if len(measured) == len(points) else None
    if along is not None and (np.diff(along) < 0).any():
        along = None
    return Shape(xs, ys, along)


def _anchors(calls: list[Call], stops: dict[str, Stop], summary: Summary) -> list[Anchor]:
    """Return the calls of a trip that have a position and a time of their own; note the others."""
    calls.sort(key=lambda call: call.sequence)
    anchors: list[Anchor] = []
    for call in calls:
        stop = stops.get(call.stop)
        if stop is None:
            summary.note("calls at a rejected stop, passed between their neighbours")
            continue
        if call.arrival is None or call.departure is None:
            summary.note("calls without a time, passed between their neighbours")
            continue
        if anchors and call.arrival < anchors[-1].departure:
            raise BadRow("times of the trip go back")
        anchor = Anchor(call.arrival, call.departure, stop.x, stop.y, call.along)
        if anchors and call.arrival == anchors[-1].departure:
            if call.departure == call.arrival and call is not calls[-1]:
                summary.note("calls at the same instant as the one before, passed between their neighbours")
                continue
            before = anchors[-1]
            if before.arrival < before.departure:
                summary.note("calls left at the instant of the next arrival: left when they were reached")
                anchors[-1] = Anchor(before.arrival, before.arrival, before.x, before.y, before.along)
            else:
                if len(anchors) == 1:
                    summary.note("first calls at the instant of the next one: the trip begins there")
                anchors.pop()
        anchors.append(anchor)
    if len(anchors) < 2 or anchors[-1].arrival <= anchors[0].departure:
        raise BadRow("trip without motion: fewer than two calls with a time and a place")
    return anchors


def _vehicles(
    trips: dict[str, Trip], stops: dict[str, Stop], shapes: dict[str, Shape], summary: Summary
) -> Iterator[Row]:
    """Yield the segments of every vehicle: its trips in order, joined by layovers."""
    nodes = Nodes(summary)
    by_vehicle: dict[str, list[Trip]] = {}
    for trip in trips.values():
        by_vehicle.setdefault(trip.vehicle, []).append(trip)
    driven = 0
    for vehicle, block in by_vehicle.items():
        last: Leg | None = None
        plans: list[tuple[list[Anchor], Trip]] = []
        for trip in block:
            try:
                plans.append((_anchors(trip.calls, stops, summary), trip))
            except BadRow as error:
                yield from _rejected(trip, str(error), summary)
        plans.sort(key=lambda plan: (plan[0][0].arrival, plan[1].line))
        for anchors, trip in plans:
            if last is not None and anchors[0].arrival < last[3]:
                yield from _rejected(trip, f"overlaps another trip of its block: {vehicle}", summary)
                continue
            legs, on_shape = trip_legs(anchors, shapes.get(trip.shape))
            if not on_shape:
                summary.note("trips without a shape that fits, straight between stops")
            legs = legs if last is None else [*layover(last, legs[0]), *legs]
            yield from (SegmentRow(vehicle, *leg) for leg in legs)
            last = legs[-1]
            driven += 1
        if last is not None:
            nodes.add(vehicle)
    summary.facts["trips"] = f"{driven:,}"


def _rejected(trip: Trip, reason: str, summary: Summary) -> Iterator[Reject]:
    """Reject a trip together with its calls: correct the counts, and yield the rejects."""
    summary.rows_kept -= 1 + len(trip.calls)
    yield summary.reject(trip.line, reason, "trips.txt")
    for call in trip.calls:
        yield summary.reject(call.line, "call of a rejected trip", "stop_times.txt")
