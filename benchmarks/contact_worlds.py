"""Moving nodes for the contact benchmarks: random waypoints, and walks in short legs as a phone logs them."""

from __future__ import annotations

import numpy as np

from precede.core.instants import SECOND
from precede.traces.intervals import Segments

Rows = list[np.ndarray]


def waypoints(nodes: int, side_m: float, seconds: int, seed: int = 1) -> Segments:
    """Nodes go straight to random places, one after the other, at 1 to 10 m/s."""
    random = np.random.default_rng(seed)
    x, y = random.uniform(0, side_m, nodes), random.uniform(0, side_m, nodes)
    t = np.zeros(nodes, dtype=np.int64)
    end = seconds * SECOND
    who = np.arange(nodes)
    parts: list[Rows] = []
    while len(who):
        x1, y1 = random.uniform(0, side_m, len(who)), random.uniform(0, side_m, len(who))
        way = np.hypot(x1 - x, y1 - y)
        t1 = t + np.maximum(1, (way / random.uniform(1, 10, len(who)) * SECOND).astype(np.int64))
        part = np.minimum(1.0, (end - t) / (t1 - t))
        x1, y1, t1 = x + (x1 - x) * part, y + (y1 - y) * part, np.minimum(t1, end)
        parts.append([who, t, x, y, t1, x1, y1])
        going = t1 < end
        who, t, x, y = who[going], t1[going], x1[going], y1[going]
    return Segments(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def walks(nodes: int, side_m: float, seconds: int, leg_s: int = 10, seed: int = 1) -> Segments:
    """Pedestrians at 1 to 2 m/s who turn a little at every leg, and turn back at the edge of the square."""
    random = np.random.default_rng(seed)
    legs = seconds // leg_s
    heading = random.uniform(0, 2 * np.pi, (nodes, 1)) + random.normal(0, 0.4, (nodes, legs)).cumsum(axis=1)
    step = random.uniform(1, 2, (nodes, 1)) * leg_s
    columns = []
    for turn in (np.cos, np.sin):
        free = random.uniform(0, side_m, (nodes, 1)) + np.hstack(
            (np.zeros((nodes, 1)), (step * turn(heading)).cumsum(axis=1))
        )
        columns.append(side_m - np.abs(free % (2 * side_m) - side_m))
    x, y = columns
    t = np.broadcast_to(np.arange(legs + 1, dtype=np.int64) * leg_s * SECOND, (nodes, legs + 1))
    node = np.broadcast_to(np.arange(nodes)[:, None], (nodes, legs))
    ends = (t[:, :-1], x[:, :-1], y[:, :-1], t[:, 1:], x[:, 1:], y[:, 1:])
    return Segments(node.ravel(), *(column.ravel() for column in ends))
