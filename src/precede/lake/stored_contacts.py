"""Contacts of a trace in the lake: what `trace = "NAME"` in a scenario means.

A trace has contacts from one of two sources. A file of meetings becomes the unit `NAME` of `contacts`. A file
of movement becomes the unit `NAME` of `segments`; `precede contacts` computes its contacts for a radio range,
the unit `NAME@50m`. Segments also tell when each node is present.
"""

from pathlib import Path

import numpy as np

from precede.core.errors import BadInput
from precede.lake.columns import distinct_names, indices
from precede.lake.layout import Lake, contacts_unit, trace_of
from precede.traces.contacts import ContactList, Presence, of_intervals
from precede.traces.intervals import Intervals, Ints


def find_contacts_unit(lake: Lake, trace: str, range_m: float | None = None) -> str:
    """Return the unit of `contacts` to use for a trace.

    It is the unit for the range if one is given, else that of meetings from a file, else the only computed one.
    Raises BadInput when there is none, or when the trace has several ranges and `range_m` does not choose.
    """
    if range_m is not None:
        unit = contacts_unit(trace, range_m)
        if not lake.has("contacts", unit):
            raise BadInput(_missing(lake, trace, range_m))
        return unit
    if lake.has("contacts", trace):
        return trace
    computed = computed_units(lake, trace)
    if len(computed) > 1:
        ranges = ", ".join(unit.rpartition("@")[2].removesuffix("m") for unit in computed)
        raise BadInput(f"trace {trace!r} has contacts for several ranges: say which (range = one of {ranges})")
    if not computed:
        raise BadInput(_missing(lake, trace, None))
    return computed[0]


def computed_units(lake: Lake, trace: str) -> list[str]:
    """Return the units of `contacts` that were computed from a trace's movement, one for each range."""
    return [unit for unit in lake.units("contacts") if unit.rpartition("@")[0] == trace]


def stored_files(lake: Lake, trace: str, range_m: float | None = None) -> list[tuple[str, str, Path]]:
    """The files that `read_stored_contacts` reads: contacts, and segments if the contacts were computed.

    Each comes with its table and unit. Those of an object store are copies on this machine.
    """
    unit = find_contacts_unit(lake, trace, range_m)
    units = [("contacts", unit)]
    if _is_of_movement(lake, trace, unit):
        units.append(("segments", trace))
    return [(table, unit, lake.file(table, unit)[0]) for table, unit in units]


def stored_traces(lake: Lake) -> list[str]:
    """Return the names of all traces in a lake, with or without contacts."""
    return sorted({trace_of(unit) for table in ("contacts", "segments") for unit in lake.units(table)})


def read_stored_contacts(lake: Lake, trace: str, range_m: float | None = None) -> ContactList:
    """Read the contacts of a trace from the lake, with the presence of nodes if they come from movement."""
    unit = find_contacts_unit(lake, trace, range_m)
    table = lake.read("contacts", unit, ["a", "b", "start_us", "end_us"])
    start, end = table["start_us"].to_numpy(), table["end_us"].to_numpy()
    if not _is_of_movement(lake, trace, unit):
        names = distinct_names(table["a"], table["b"])
        return of_intervals(
            names, Intervals(indices(table["a"], names), indices(table["b"], names), start, end)
        )
    moves = lake.read("segments", trace, ["node", "t0_us", "t1_us"])
    names = distinct_names(table["a"], table["b"], moves["node"])
    intervals = Intervals(indices(table["a"], names), indices(table["b"], names), start, end)
    node = indices(moves["node"], names)
    return of_intervals(names, intervals, _presence(node, moves["t0_us"].to_numpy(), moves["t1_us"].to_numpy()))


def _is_of_movement(lake: Lake, trace: str, unit: str) -> bool:
    return unit != trace and lake.has("segments", trace)


def _presence(node: Ints, enter: Ints, leave: Ints) -> Presence:
    """Return when each node is present. Segments of one node that touch or overlap become one interval."""
    order = np.lexsort((enter, node))
    node, enter, leave = node[order], enter[order], leave[order]
    if not len(node):
        return Presence(node, enter, leave)
    begins = np.ones(len(node), dtype=bool)
    begins[1:] = (node[1:] != node[:-1]) | (enter[1:] > _latest_end(node, leave)[:-1])
    ends = np.append(np.flatnonzero(begins)[1:] - 1, len(node) - 1)
    return Presence(node[begins], enter[begins], _latest_end(node, leave)[ends])


def _latest_end(node: Ints, leave: Ints) -> Ints:
    """Return, for every segment, the latest end among the node's segments up to it, sorted by node."""
    base = leave.min()
    width = int(leave.max() - base) + 1
    latest: Ints = np.maximum.accumulate(node * width + (leave - base)) - node * width + base
    return latest


def _missing(lake: Lake, trace: str, range_m: float | None) -> str:
    """Return the error for contacts that are not in the lake: the command for them, or other traces."""
    if lake.has("segments", trace):
        missing = "no contacts" if range_m is None else f"no contacts within {range_m:g} m"
        metres = "METRES" if range_m is None else f"{range_m:g}"
        command = f"precede contacts {trace} --range {metres} --lake {lake.location}"
        return f"trace {trace!r} has {missing} in {lake.location}: {command}"
    traces = sorted({trace_of(unit) for unit in lake.units("contacts")})
    return f"no trace {trace!r} in {lake.location} (there are: {', '.join(traces) or 'none'})"
