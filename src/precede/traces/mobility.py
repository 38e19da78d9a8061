"""Movement of nodes as a value: names and straight segments. Presence and contacts follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from precede.core.errors import BadInput
from precede.core.instants import Instant
from precede.core.natural_order import natural
from precede.traces.contacts import ContactList, Presence, of_intervals
from precede.traces.intervals import Floats, Ints, Segments
from precede.traces.records import SegmentRow


@dataclass(frozen=True, eq=False)
class Mobility:
    """Segments sorted by (node, t0); ids index `names`. A node is present while a segment of it lasts."""

    names: tuple[str, ...]
    segments: Segments

    def presence(self) -> Presence:
        """Return the presence of each node: segments that join are one interval."""
        s = self.segments
        if len(s.node) == 0:
            return Presence(s.node, s.t0_us, s.t1_us)
        begins = np.ones(len(s.node), dtype=bool)
        begins[1:] = (s.node[1:] != s.node[:-1]) | (s.t0_us[1:] > s.t1_us[:-1])
        ends = np.append(begins[1:], True)
        return Presence(s.node[begins], s.t0_us[begins], s.t1_us[ends])

    def contacts(self, range_m: float) -> ContactList:
        """Return the exact contacts within a range, with the presence of all nodes."""
        from precede.traces.kernel import find_contacts

        return of_intervals(self.names, find_contacts(self.segments, range_m), self.presence())


def mobility_of(rows: Iterable[SegmentRow | tuple[str, int, float, float, int, float, float]]) -> Mobility:
    """Return movement from segments with names, in any order. Raises BadInput if a node's segments overlap."""
    segments = list(rows)
    names = sorted({row[0] for row in segments}, key=natural)
    ids = {name: place for place, name in enumerate(names)}
    return sorted_mobility(names, [(ids[row[0]], *row[1:]) for row in segments])


def sorted_mobility(
    names: Sequence[str], rows: Sequence[tuple[int, Instant, float, float, Instant, float, float]]
) -> Mobility:
    """Return movement from segments with ids, in any order; raises BadInput if segments of one node overlap."""
    if not rows:
        ints, floats = np.empty(0, dtype=np.int64), np.empty(0)
        return Mobility(tuple(names), Segments(ints, ints, floats, floats, ints, floats, floats))
    columns = list(zip(*rows, strict=True))
    node, t0, t1 = (np.array(columns[k], dtype=np.int64) for k in (0, 1, 4))
    x0, y0, x1, y1 = (np.array(columns[k], dtype=np.float64) for k in (2, 3, 5, 6))
    order = np.lexsort((t0, node))
    s = Segments(node[order], t0[order], x0[order], y0[order], t1[order], x1[order], y1[order])
    overlapping = (s.node[1:] == s.node[:-1]) & (s.t0_us[1:] < s.t1_us[:-1])
    if overlapping.any():
        where = int(np.argmax(overlapping))
        raise BadInput(f"node {names[int(s.node[where])]} is in two places at {int(s.t0_us[where + 1])} us")
    return Mobility(tuple(names), s)


@dataclass(frozen=True)
class Spread:
    """Minimum, maximum, mean and standard deviation in seconds: the four values in the tables of guidec2021."""

    least: float
    most: float
    mean: float
    deviation: float

    @classmethod
    def of(cls, durations_us: Ints) -> Spread:
        """Return the values for some durations; all 0 if there are none."""
        values: Floats = durations_us.astype(np.float64) / 1e6
        if len(values) == 0:
            return cls(0.0, 0.0, 0.0, 0.0)
        mean = float(values.mean())
        return cls(float(values.min()), float(values.max()), mean, sqrt(float(((values - mean) ** 2).mean())))


@dataclass(frozen=True)
class Statistics:
    """The figures that Tables I and IV of guidec2021 give for a scenario."""

    duration_s: float
    nodes: int
    most_at_once: int
    activity: Spread
    contacts: int
    contact: Spread


def statistics(contacts: ContactList) -> Statistics:
    """Compute the figures of a contact list, which must have presence; a node's activity is the sum of it."""
    presence = contacts.presence
    if presence is None:
        raise BadInput("statistics need a contact list with presence")
    activity = np.bincount(
        presence.node,
        weights=(presence.leave_us - presence.enter_us).astype(np.float64),
        minlength=contacts.nodes,
    ).astype(np.int64)
    instants = np.concatenate((presence.leave_us, presence.enter_us))
    steps = np.repeat(np.array([-1, 1]), len(presence.node))
    at_once = np.cumsum(steps[np.argsort(instants, kind="stable")])
    begin, end = contacts.span()
    return Statistics(
        duration_s=(end - begin) / 1e6,
        nodes=contacts.nodes,
        most_at_once=int(at_once.max()) if len(at_once) else 0,
        activity=Spread.of(activity),
        contacts=len(contacts),
        contact=Spread.of(contacts.end_us - contacts.start_us),
    )
